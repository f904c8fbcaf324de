// Package webhook tells addresses what happens on boards: that jobs ended, went to the
// trash or ran out of attempts, and that the oldest one waits for too long.
//
// Nothing that lasts is kept in memory. A teller follows a board and posts a job for each
// event on another board, that of the deliveries, and keeps there how far it is; what it posts
// has an ID that is made of the event, so that any number of servers post it once. A sender
// claims these jobs and sends them, as any worker would, so that retries, leases, the trash and
// all else are those of the board.
//
// Requests are signed as Standard Webhooks says (https://www.standardwebhooks.com), and reach
// no address of the server's own network but those of Hook.Networks.
package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits of webhooks.
const (
	MaxPerBoard    = 16
	MaxURL         = 2048 // bytes
	MaxSecrets     = 4    // of one webhook, each of which signs
	MinSecret      = 24   // bytes of a secret, decoded
	MaxSecret      = 64
	MaxNetworks    = 64
	MinTimeout     = time.Second
	DefaultTimeout = 15 * time.Second
	MaxTimeout     = time.Minute
	MinWaiting     = 10 * time.Second
	MaxWaiting     = 30 * 24 * time.Hour
)

// How a delivery is tried again where its board does not say: after FirstRetry, then after
// twice as long each time, at most MaxRetry. MaxTries takes about three days.
const (
	MaxTries   = 24
	FirstRetry = 5 * time.Second
	MaxRetry   = 6 * time.Hour
)

// AtOnce is how many requests to one webhook a server has under way at most.
const AtOnce = 8

// Kind says what an event is about.
type Kind uint8

// The kinds. All but the last two can be asked for by name.
const (
	Ended     Kind = iota // consumed, canceled or archived
	Trashed               // set aside by its worker or by a person
	Exhausted             // set aside because its attempts ran out
	Waiting               // the oldest job that may be claimed waits for too long
	Trial                 // nothing: somebody tries whether it arrives
)

var types = [...]string{"job.ended", "job.trashed", "job.exhausted", "board.waiting", "webhook.trial"}

// String returns the kind as requests have it.
func (k Kind) String() string { return types[k] }

// Kinds returns the names under which events are asked for, in the order of the kinds.
func Kinds() []string { return []string{"ENDED", "TRASHED", "EXHAUSTED"} }

// Hook is one address that is told of a board.
type Hook struct {
	Board, Name string // of the board that it is told of, and its own

	URL        string
	Secrets    Secrets
	Events     []Kind
	Waiting    time.Duration // of the oldest job, from which on it is told so; 0: never
	Deliveries string        // the board of the same tenant on which deliveries are jobs
	Timeout    time.Duration // of a request; 0: DefaultTimeout

	// Networks are those of the server's own network that may be reached. Without any, the
	// address is one of the internet, reached by https.
	Networks []netip.Prefix
}

// Check reports what is wrong with a hook, beside the board of its deliveries.
func (h *Hook) Check() error {
	wrong := func(format string, args ...any) error { return job.Errorf(job.Invalid, format, args...) }
	switch {
	case len(h.Networks) > MaxNetworks:
		return wrong("networks: %d are too many: want at most %d", len(h.Networks), MaxNetworks)
	case len(h.Secrets) == 0 || len(h.Secrets) > MaxSecrets:
		return wrong("secrets: want 1 to %d, got %d", MaxSecrets, len(h.Secrets))
	case h.Waiting != 0 && (h.Waiting < MinWaiting || h.Waiting > MaxWaiting):
		return wrong("oldestWaiting: want %s to %s, got %s", MinWaiting, MaxWaiting, h.Waiting)
	case h.Timeout != 0 && (h.Timeout < MinTimeout || h.Timeout > MaxTimeout):
		return wrong("timeout: want %s to %s, got %s", MinTimeout, MaxTimeout, h.Timeout)
	case len(h.Events) == 0 && h.Waiting == 0:
		return wrong("events: there are none, and no oldestWaiting: nothing would be told")
	case h.Deliveries == "":
		return wrong("deliveries: want the name of another board of the tenant, on which each delivery is a job")
	case h.Deliveries == h.Board:
		return wrong("deliveries: it is the board itself, whose deliveries would be told of again: want another one")
	}
	if err := CheckURL(h.URL, h.Networks); err != nil {
		return wrong("url: %s", job.MessageOf(err))
	}
	return nil
}

// key names the hook among those of its tenant, and is the name of its deliveries.
func (h *Hook) key() string { return h.Board + "/" + h.Name }

func (h *Hook) wants(k Kind) bool {
	if k == Waiting {
		return h.Waiting > 0
	}
	return slices.Contains(h.Events, k)
}

func (h *Hook) timeout() time.Duration {
	if h.Timeout == 0 {
		return DefaultTimeout
	}
	return h.Timeout
}

// equal reports whether a hook goes on as it is.
func (h *Hook) equal(o *Hook) bool {
	a, b := *h, *o
	same := slices.Equal(a.Events, b.Events) && slices.Equal(a.Networks, b.Networks) && a.Secrets.equal(b.Secrets)
	return same && a.Board == b.Board && a.Name == b.Name && a.URL == b.URL && a.Waiting == b.Waiting && a.Deliveries == b.Deliveries && a.Timeout == b.Timeout
}

// CheckURL says what is wrong with an address that is to be told.
func CheckURL(text string, networks []netip.Prefix) error {
	wrong := func(format string, args ...any) error { return job.Errorf(job.Invalid, format, args...) }
	u, err := url.Parse(text)
	switch {
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
