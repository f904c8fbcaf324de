package binding

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A policy that cannot be made for a reason that may pass is tried again after TryAgain, and then
// after twice as long each time, up to TryAgainLongest.
const (
	TryAgain        = time.Second
	TryAgainLongest = 5 * time.Minute
)

// another is the next try to make what a board was given. InForce.mu guards it.
type another struct {
	of     string             // what was tried last
	due    bool               // something of that could not be made, for a reason that may pass
	fresh  bool               // something of that was made which the board did not ask before
	pause  time.Duration      // before the next try
	cancel context.CancelFunc // calls the next try off; nil: there is none
}

// begin is called before what is written in text is made. It reports whether that was tried before.
func (a *another) begin(text string) (again bool) {
	again = a.of == text
	if a.callOff(); !again {
		a.pause = 0
	}
	a.of, a.due, a.fresh = text, false, false
	return again
}

// failed notes why a policy could not be made.
func (a *another) failed(err error) {
	kind := job.KindOf(err)
	a.due = a.due || kind != job.Invalid && kind != job.NotFound // the same module fails again
}

// callOff ends the wait for the next try.
func (a *another) callOff() {
	if a.cancel != nil {
		a.cancel()
		a.cancel = nil
	}
}

// tryAgain has Deploy called again in a while, if that may help. The caller holds r.mu.
func (r *InForce) tryAgain(given func() catalog.Deployment) {
	a := &r.another
	if !a.due {
		a.pause = 0
		return
	}
	a.pause = min(max(TryAgain, 2*a.pause), TryAgainLongest)
	ctx, cancel := context.WithCancel(r.serving.Running)
	a.cancel = cancel
	pause := a.pause
	r.serving.Go(func() {
		defer cancel()
		if sleep.For(ctx, pause) == nil {
			r.Deploy(given)
		}
	})
}
