package client

import (
	"log/slog"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// blip is for how long a worker's calls may fail without a word: a server that is started
// anew is back by then.
const blip = 3 * time.Second

// outage says once that a worker's server cannot be reached, and once that it answers again.
type outage struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // when the first of the tries began that failed in a row; zero: the last one did not
	told  bool
}

// tried takes note of a try of a call; err is nil where the server answered.
func (o *outage) tried(began time.Time, err error) {
	o.mu.Lock()
	since, told := o.since, o.told
	switch {
	case err == nil:
		o.since, o.told = time.Time{}, false
	case since.IsZero():
		o.since, since = began, began
		fallthrough
	default:
		o.told = told || time.Since(since) >= blip
	}
	tell := o.told && !told
	o.mu.Unlock()
	switch {
	case tell:
		o.log.Warn("the server cannot be reached; the worker goes on trying", "error", err)
	case err == nil && told:
		o.log.Warn("the server answers again", "after", time.Since(since).Round(time.Second))
	}
}

// refusal says, of the first try of some that fail in a row, that the server answers and
// refuses for now: the others fail as it cannot be reached.
func (o *outage) refusal(failed int, err error) {
	if kind := job.KindOf(err); failed == 0 && (kind == job.QuotaExceeded || kind == job.Internal) {
		o.log.Warn("the server refuses for now; the worker goes on trying", "error", err)
	}
}
