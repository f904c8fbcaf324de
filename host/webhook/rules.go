package webhook

import (
	"net/netip"
	"net/url"
	"slices"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Flaw is one thing that is wrong with a hook.
type Flaw struct {
	Field string // as the API calls it
	Text  string
}

// Flaws returns everything that is wrong with a hook but for what only its boards know, which
// CheckTarget looks at. These are the rules of the API and of the configuration: each of them
// says where in its own words.
func (h *Hook) Flaws() (list []Flaw) {
	wrong := func(field, format string, args ...any) {
		list = append(list, Flaw{field, job.Errorf(job.Invalid, format, args...).Message})
	}
	if err := checkURL(h.URL, h.Networks); err != nil {
		wrong("url", "%s", job.MessageOf(err))
	}
	if len(h.Secrets) == 0 || len(h.Secrets) > MaxSecrets {
		wrong("secrets", "want 1 to %d, got %d", MaxSecrets, len(h.Secrets))
	}
	switch {
	case slices.ContainsFunc(h.Events, func(k Kind) bool { return int(k) >= len(names) }):
		wrong("events", "there are only %v", Kinds())
	case len(h.Events) == 0 && h.Waiting == 0:
		wrong("events", "there are none, and the oldest job may wait for ever: nothing would be told")
	}
	if h.Waiting != 0 && (h.Waiting < MinWaiting || h.Waiting > MaxWaiting) {
		wrong("oldestWaiting", "want %s to %s, got %s", MinWaiting, MaxWaiting, h.Waiting)
	}
	if len(h.Networks) > MaxNetworks {
		wrong("networks", "%d are too many: want at most %d", len(h.Networks), MaxNetworks)
	}
	if h.Timeout != 0 && (h.Timeout < MinTimeout || h.Timeout > MaxTimeout) {
		wrong("timeout", "want %s to %s, got %s", MinTimeout, MaxTimeout, h.Timeout)
	}
	switch h.Deliveries {
	case "":
		wrong("deliveries", "it is missing: want the name of another board of the tenant, on which each delivery is a job")
	case h.Board:
		wrong("deliveries", "it is the board itself, whose deliveries would be told of again: want another one")
	}
	return list
}

// Check reports the first of the flaws as an error that begins with its field.
func (h *Hook) Check() error {
	for _, flaw := range h.Flaws() {
		return job.Errorf(job.Invalid, "%s: %s", flaw.Field, flaw.Text)
	}
	return nil
}

// checkURL says what is wrong with an address that is to be told.
func checkURL(text string, networks []netip.Prefix) error {
	wrong := func(format string, args ...any) error { return job.Errorf(job.Invalid, format, args...) }
	u, err := url.Parse(text)
	switch {
	case text == "":
		return wrong("it is missing: want an address such as https://example.com/hook")
	case err != nil || len(text) > MaxURL || u.Hostname() == "":
		return wrong("%q is not an address; want one such as https://example.com/hook, of at most %d bytes", shorten.To(text, 64), MaxURL)
	case u.User != nil:
		return wrong("a name or password in the address would stand in logs; requests are signed instead")
	case u.Fragment != "":
		return wrong("what follows the # is not sent; leave it out")
	case u.Scheme == "http" && len(networks) == 0:
		return wrong("http is only for addresses in networks; want https")
	case u.Scheme != "https" && u.Scheme != "http":
		return wrong("want https, got %q", shorten.To(u.Scheme, 16))
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil {
		return checkAddress(at, networks, u.Scheme == "http")
	}
	return nil
}

// ParseNetwork reads a network that a hook may reach.
func ParseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Masked() != network {
		return netip.Prefix{}, job.Errorf(job.Invalid, `%q is not a network: want one such as "10.1.0.0/16" or "fd00:1::/64"`, shorten.Text(text))
	}
	return network, nil
}

// Target is what is known of the board of a hook's deliveries.
type Target struct {
	Observed bool // nothing is posted on it
	Hooked   bool // it has webhooks itself
	Used     bool // it has jobs, schedules or batches that are none of deliveries
}

// CheckTarget reports why a board cannot have the hook's deliveries.
func (h *Hook) CheckTarget(t Target) error {
	switch {
	case t.Observed:
		return job.Errorf(job.Invalid, "the board %q is only observed: nothing is posted on it", h.Deliveries)
	case t.Hooked:
		return job.Errorf(job.Invalid, "the board %q has webhooks itself: want one that has none", h.Deliveries)
	case t.Used:
		return job.Errorf(job.Precondition, "the board %q has jobs, schedules or batches: want one that has nothing but deliveries", h.Deliveries)
	}
	return nil
}
