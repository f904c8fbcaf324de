package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// bound is how long it may take until everybody knows of a change, while nothing is broken:
// a hundred times as long as it does, on a machine that does much else.
const bound = 5 * time.Second

// back is how much longer it may take once a store is there again: servers and drivers come
// back to it after pauses that have grown meanwhile.
const back = 20 * time.Second

// start is how much longer it may take once a process runs again that was killed or ended, or
// ended since it had no memory: its fault is over when it is launched, and a server reads its
// boards first.
const start = 5 * time.Second

// mended returns until when everybody has to know of everything after a fault has ended.
func mended(h *history.History, f *history.Fault) time.Duration {
	patience := bound
	switch what, how, _ := strings.Cut(f.Name, " "); {
	case what == "store":
		patience += back
	case how == "killed" || how == "ended" || how == "without memory":
		patience += start
	}
	return f.End + h.Stretched(f.End, patience)
}

// due returns until when everybody has to know of what stands at a time: what is broken before
// that puts it off.
func due(h *history.History, at time.Duration) time.Duration {
	until := at + h.Stretched(at, bound)
	for again := true; again; {
		again = false
		for i := range h.Faults {
			f := &h.Faults[i]
			if end := mended(h, f); f.Begin <= until && end >= at && end > until {
				until, again = end, true
			}
		}
	}
	return until
}

// soon finds jobs that a server did not offer although another one had posted them, and
// changes that a watcher was shown too late.
func soon(h *history.History) (problems []Problem) {
	for _, r := range h.Relays {
		until := due(h, max(r.Ready, r.Asked))
		switch {
		case r.Got == history.Forever && r.Asked+r.Wait >= until:
			problems = append(problems, Problem{Job: r.Job, Text: fmt.Sprintf("%s had posted it at %v, and a claim at %s from %v on, which waited for %v, was answered without it", r.From, r.Ready, r.To, r.Asked, r.Wait)})
		case r.Got != history.Forever && r.Got > until:
			problems = append(problems, Problem{Job: r.Job, Text: fmt.Sprintf("%s had posted it at %v, and a claim at %s from %v on got it at %v only", r.From, r.Ready, r.To, r.Asked, r.Got)})
		}
	}
	for _, w := range h.Watchers {
		problems = append(problems, shownLate(h, w)...)
	}
	return problems
}

// shownLate finds what was acknowledged and shown to a watcher later than it has to be. What
// was not shown at all is another checker's.
func shownLate(h *history.History, w history.Watcher) []Problem {
	return eachTold(h, w, func(op *history.Op, event job.EventType, times []time.Duration) string {
		if len(times) == 0 || slices.Min(times) <= due(h, op.End) {
			return ""
		}
		return fmt.Sprintf("%s by %s was done at %v, and watcher %s was shown %v at %v only", op.Call, op.Client, op.End, w.Name, event, slices.Min(times))
	})
}
