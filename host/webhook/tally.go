package webhook

import (
	"maps"
	"sync"
	"time"
)

// What came of a try to deliver something, as a Tally has it.
const (
	Delivered = "delivered"
	Failed    = "failed"   // it is to be tried again
	GivenUp   = "given_up" // its receiver wants no more of it, or its tries were used up
)

// Tally counts what a server did for the webhooks of a board. It outlives the couriers of the
// board. Its maps are made when there is something to count: most boards have no webhooks.
type Tally struct {
	mu    sync.Mutex
	tries map[string]int64
	stuck map[string]time.Time // hooks of which nothing can be told, since when
}

// NewTally returns one that has counted nothing.
func NewTally() *Tally { return &Tally{} }

// Tries returns how often deliveries that are jobs on the board were tried, by what came of it.
func (t *Tally) Tries() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	tries := map[string]int64{Delivered: 0, Failed: 0, GivenUp: 0}
	maps.Copy(tries, t.tries)
	return tries
}

// Stuck returns since when what happens on the board cannot be made deliveries, of one of its
// webhooks at least; zero: it can.
func (t *Tally) Stuck() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.stuck {
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return since
}

func (t *Tally) tried(outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tries == nil {
		t.tries = map[string]int64{}
	}
	t.tries[outcome]++
}

// fails notes that a hook cannot be told of anything, or that it can, or need not, any more.
func (t *Tally) fails(hook string, so bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, already := t.stuck[hook]
	switch {
	case !so:
		delete(t.stuck, hook)
	case t.stuck == nil:
		t.stuck = map[string]time.Time{hook: time.Now()}
	case !already:
		t.stuck[hook] = time.Now()
	}
}
