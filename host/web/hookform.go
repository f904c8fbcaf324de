package web

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// hookForm is a webhook as a form has it: text, which is shown again as it was written, but for
// secrets.
type hookForm struct {
	Name, URL, Deliveries, Waiting, Timeout, Networks, Version string

	Events    []string
	Paused    bool
	NewSecret bool

	Kinds  []string // of events
	Boards []string // on which deliveries may be
	Made   bool     // it is there, and is changed
	Inside bool     // the visitor may say which networks it reaches
}

var hookFormFields = []string{"url", "secrets", "events", "oldestWaiting", "networks", "deliveries"} // beside those of jobs

// newHookForm is a form for a webhook that there is not yet.
func newHookForm() hookForm { return hookForm{Events: webhook.Kinds(), Kinds: webhook.Kinds()} }

// hookFormOf is the form of a webhook that there is.
func hookFormOf(s *admin.HookState) hookForm {
	f := hookForm{
		Name: s.Name, URL: s.URL, Deliveries: s.Deliveries, Waiting: written(s.Hook.Waiting), Timeout: written(s.Timeout), Paused: s.Paused,
		Version: formatVersion(s.Version), Kinds: webhook.Kinds(), Made: true,
	}
	for _, kind := range s.Events {
		f.Events = append(f.Events, f.Kinds[kind])
	}
	for _, n := range s.Networks {
		f.Networks += n.String() + "\n"
	}
	return f
}

// written is a duration as the form has it; none is nothing.
func written(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return brief(d)
}

func hookFormFrom(form url.Values) hookForm {
	get := func(field string) string { return strings.TrimSpace(form.Get(field)) }
	return hookForm{
		Name: get("name"), URL: get("url"), Deliveries: get("deliveries"), Waiting: get("oldestWaiting"), Timeout: get("timeout"),
		Networks: form.Get("networks"), Version: get("version"), Events: form["event"], Paused: form.Has("paused"), NewSecret: form.Has("newSecret"),
		Kinds: webhook.Kinds(),
	}
}

// Has reports whether an event is ticked.
func (f *hookForm) Has(event string) bool { return slices.Contains(f.Events, event) }

// hook reads the form, with the secrets that it came with. Its errors begin with the field that
// they are about, as those of the API do, which sees to the rest.
func (f *hookForm) hook(board, secrets string) (n admin.NewWebhook, err error) {
	n = admin.NewWebhook{
		Hook:      webhook.Hook{Board: board, Name: f.Name, URL: f.URL, Deliveries: f.Deliveries, Paused: f.Paused},
		NewSecret: f.NewSecret,
	}
	for _, name := range f.Events {
		kind, ok := webhook.KindNamed(name)
		if !ok {
			return n, job.Errorf(job.Invalid, "events: want some of %s", strings.Join(f.Kinds, ", "))
		}
		n.Events = append(n.Events, kind)
	}
	if n.Waiting, err = duration("oldestWaiting", f.Waiting); err != nil {
		return n, err
	}
	if n.Timeout, err = duration("timeout", f.Timeout); err != nil {
		return n, err
	}
	if n.Networks, err = f.networks(); err != nil {
		return n, err
	}
	if secrets != "" {
		if n.Secrets, err = webhook.ParseSecrets(secrets); err != nil {
			return n, job.Errorf(job.Invalid, "secrets: %s", plain(err))
		}
	}
	return n, nil
}

func (f *hookForm) networks() (list []netip.Prefix, err error) {
	for text := range strings.FieldsSeq(f.Networks) {
		network, err := webhook.ParseNetwork(text)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "networks: %s", plain(err))
		}
		list = append(list, network)
	}
	return list, nil
}
