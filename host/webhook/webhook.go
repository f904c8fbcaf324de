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
	"slices"
	"time"
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
	MaxAnswer      = 512 // bytes of what a receiver answers a trial that are kept
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

// names are those under which events are asked for, in the order of the kinds.
var names = [...]string{"ENDED", "TRASHED", "EXHAUSTED"}

// Kinds returns the names under which events are asked for, in the order of the kinds.
func Kinds() []string { return slices.Clone(names[:]) }

// KindNamed returns the kind that is asked for under a name.
func KindNamed(name string) (Kind, bool) {
	i := slices.Index(names[:], name)
	return Kind(max(i, 0)), i >= 0 //nolint:gosec // one of them
}

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

	Paused bool // it is told of the board, and its deliveries wait
}

// Key names the hook among those of its tenant, and is the name of its deliveries.
func (h *Hook) Key() string { return h.Board + "/" + h.Name }

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

// equal reports whether a hook goes on as it is: whether it is paused is not looked at.
func (h *Hook) equal(o *Hook) bool {
	a, b := *h, *o
	same := slices.Equal(a.Events, b.Events) && slices.Equal(a.Networks, b.Networks) && a.Secrets.equal(b.Secrets)
	return same && a.Board == b.Board && a.Name == b.Name && a.URL == b.URL && a.Waiting == b.Waiting && a.Deliveries == b.Deliveries && a.Timeout == b.Timeout
}
