package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

type position struct{ generation, position uint64 }

func (p position) less(q position) bool {
	return p.generation < q.generation || p.generation == q.generation && p.position < q.position
}

func at(e history.Event) position { return position{e.Generation, e.Position} }

// watchers looks at what each watcher saw: by itself, beside what the others saw
// meanwhile, and beside what was acknowledged meanwhile.
func watchers(h *history.History) (problems []Problem) {
	boards := map[string][]history.Watcher{}
	foreign := touched(h)
	for _, w := range h.Watchers {
		if h.Store == "zookeeper" && len(foreign) > 0 {
			// What TaskFlow does there each server tells when it finds it, at a position of that time.
			w.Events = slices.DeleteFunc(slices.Clone(w.Events), func(e history.Event) bool { return foreign[e.Job] })
		}
		problems = append(problems, monotone(w)...)
		boards[w.Board] = append(boards[w.Board], w)
	}
	for _, all := range boards {
		problems = append(problems, gaps(all)...)
	}
	for _, w := range h.Watchers {
		problems = append(problems, shown(h, w)...)
	}
	return problems
}

// monotone finds a cursor that is not above the one before. An extension changes nothing
// that a store counts, and may have the cursor of the change before it.
func monotone(w history.Watcher) []Problem {
	for i := 1; i < len(w.Events); i++ {
		a, b := w.Events[i-1], w.Events[i]
		if !at(a).less(at(b)) && b.Type != job.Resync && (b.Type != job.Extended || at(b).less(at(a))) {
			return []Problem{{Job: b.Job, Text: fmt.Sprintf("watcher %s saw %v at %d.%d and then %v at %d.%d", w.Name, a.Type, a.Generation, a.Position, b.Type, b.Generation, b.Position)}}
		}
	}
	return nil
}

// gaps finds events that one watcher saw and another, which watched on both sides of
// it without a Resync, did not, and positions that two saw differently.
func gaps(all []history.Watcher) (problems []Problem) {
	known := map[position]history.Event{} // but for extensions, which need not be shown
	for _, w := range all {
		for _, e := range w.Events {
			other, ok := known[at(e)]
			if ok && e.Type != job.Resync && e.Type != job.Extended && (other.Type != e.Type || other.Job != e.Job) {
				problems = append(problems, Problem{Job: e.Job, Text: fmt.Sprintf("at %d.%d watcher %s saw %v, and another one %v of job %s", e.Generation, e.Position, w.Name, e.Type, other.Type, other.Job)})
			}
			if e.Type != job.Resync && e.Type != job.Extended {
				known[at(e)] = e
			}
		}
	}
	for _, w := range all {
		seen := map[position]bool{}
		for _, e := range w.Events {
			seen[at(e)] = true
		}
		for _, part := range unbroken(w) {
			for p, e := range known {
				if !part[0].less(p) || !p.less(part[1]) || seen[p] {
					continue
				}
				problems = append(problems, Problem{Job: e.Job, Text: fmt.Sprintf("watcher %s saw what was before and after %d.%d and not the event %v there", w.Name, p.generation, p.position, e.Type)})
			}
		}
	}
	return problems
}

// unbroken returns the stretches of a watch without a Resync, by their ends.
func unbroken(w history.Watcher) (parts [][2]position) {
	begin := 0
	for i := 0; i <= len(w.Events); i++ {
		if i < len(w.Events) && w.Events[i].Type != job.Resync {
			continue
		}
		if i-begin >= 2 {
			parts = append(parts, [2]position{at(w.Events[begin]), at(w.Events[i-1])})
		}
		begin = i + 1
	}
	return parts
}

// announced says as which event a call that was done is shown.
var announced = map[history.Call]job.EventType{
	history.Post: job.Posted, history.Claim: job.ClaimedEvent, history.Consume: job.ConsumedEvent, history.Abandon: job.Abandoned,
	history.Trash: job.TrashedEvent, history.SetAside: job.TrashedEvent, history.Restore: job.Restored, history.Purge: job.PurgedEvent,
	history.Cancel: job.CanceledEvent,
}

// shown finds what was acknowledged and not shown to somebody who watched all the
// while. What a call does that is repeated is shown once, so a watcher must have as
// many events as there were claims, and at least one for a post or an ending.
func shown(h *history.History, w history.Watcher) (problems []Problem) {
	if !w.Caught {
		return []Problem{{Text: fmt.Sprintf("watcher %s, open from %v to %v, was not shown what came last", w.Name, w.Opened, w.Closed)}}
	}
	return eachTold(h, w, func(op *history.Op, event job.EventType, times []time.Duration) string {
		if n := len(times); n > 0 && (op.Call != history.Claim || n == 1) {
			return ""
		}
		return fmt.Sprintf("%s by %s was done from %v to %v, and watcher %s, open from %v to %v, has %d events %v of it",
			op.Call, op.Client, op.Begin, op.End, w.Name, w.Opened, w.Closed, len(times), event)
	})
}

// eachTold goes through the calls of which a watcher was to be shown an event, with when it
// was, and returns what find has to say of them, by job; "": nothing. Whoever was told to read
// the board anew need not be shown anything.
func eachTold(h *history.History, w history.Watcher, find func(op *history.Op, event job.EventType, times []time.Duration) string) (problems []Problem) {
	if slices.ContainsFunc(w.Events, func(e history.Event) bool { return e.Type == job.Resync }) {
		return nil
	}
	seen := told(w)
	for id, ops := range byJob(h.Ops) {
		for i := range ops {
			key, ok := seen.of(w, ops, ops[i])
			if !ok {
				continue
			}
			if text := find(&ops[i], key.event, seen.times(key, ops, ops[i])); text != "" {
				problems = append(problems, Problem{Job: id, Text: text})
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Job, b.Job) })
	return problems
}

// what is something that a watcher may be shown of a job.
type what struct {
	job   string
	event job.EventType
	owner string // of a claim; empty: any
}

// tale is when a watcher was shown what.
type tale map[what][]time.Duration

func told(w history.Watcher) tale {
	seen := tale{}
	for _, e := range w.Events {
		seen[what{e.Job, e.Type, ""}] = append(seen[what{e.Job, e.Type, ""}], e.Seen)
		if e.Type == job.ClaimedEvent {
			seen[what{e.Job, e.Type, e.Owner}] = append(seen[what{e.Job, e.Type, e.Owner}], e.Seen)
		}
	}
	return seen
}

// of returns as what a watcher has to be shown an op among those on its job, and false where
// it need not be.
func (tale) of(w history.Watcher, ops []history.Op, op history.Op) (what, bool) {
	event, ok := announced[op.Call]
	if !ok || op.Outside || op.Outcome != history.Done || op.Begin <= w.Opened || op.Board != w.Board || repeats(ops, op) {
		return what{}, false
	}
	key := what{op.Job, event, ""}
	if op.Call == history.Claim {
		key.owner = op.Owner
	}
	return key, true
}

// times returns when a watcher was shown what has to be shown of an op. Of a job with a number
// of attempts the last abandonment is shown as what comes of it.
func (t tale) times(key what, ops []history.Op, op history.Op) []time.Duration {
	if op.Call == history.Abandon && attemptsOf(ops) > 0 {
		return slices.Concat(t[key], t[what{key.job, job.TrashedEvent, ""}])
	}
	return t[key]
}

// repeats reports whether an op may only have said once more what an earlier one did:
// then its event may be from before the watch.
func repeats(ops []history.Op, op history.Op) bool {
	_, ok := find(ops, func(o history.Op) bool {
		return o.Call == op.Call && o.From != op.From && o.Token == op.Token && o.Owner == op.Owner && possible(o) && o.Begin <= op.Begin
	})
	return ok
}
