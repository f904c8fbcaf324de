package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// webhooks looks at what came to receivers: everything that happened and nothing else, signed,
// and of each job in order.
func webhooks(h *history.History) (problems []Problem) {
	for i := range h.Webhooks {
		w := &h.Webhooks[i]
		of := map[string][]history.Request{}
		for _, q := range w.Requests {
			if !q.Signed {
				problems = append(problems, Problem{Job: q.Job, Text: fmt.Sprintf("webhook %s: request %s, %q, is not signed as it has to be", w.Name, q.ID, q.Tells)})
			}
			of[q.Job] = append(of[q.Job], q)
		}
		for j := range w.Jobs {
			l := &w.Jobs[j]
			wanted, passing := w.Wanted(l), w.Passing(l)
			text := misTold(slices.Concat(passing, wanted), of[l.Job])
			if text != "" && gapped(h, w, l) { // then that may have been missed, or come late
				text = misTold(wanted, slices.DeleteFunc(of[l.Job], func(q history.Request) bool { return slices.Contains(passing, q.Tells) }))
			}
			if text != "" && !l.Unsure {
				problems = append(problems, Problem{Job: l.Job, Text: fmt.Sprintf("webhook %s: %s", w.Name, text)})
			}
			delete(of, l.Job)
		}
		for id, requests := range of {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("webhook %s was told %q of a job that nobody posted", w.Name, requests[0].Tells)})
		}
	}
	return problems
}

// gapAfter is how long after its post a job goes into the trash at most, where nothing holds it up.
const gapAfter = 5 * time.Second

// gapped reports whether who tells of a job may not have seen its changes one by one: its board moved,
// or on ZooKeeper, of which a driver knows the changes since it was started, a server or a driver
// ended about the time at which the job was in the trash.
func gapped(h *history.History, w *history.Webhook, l *history.Life) bool {
	return h.Moved(w.Board, l.Begin, history.Forever) || h.Store == "zookeeper" && slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		return (strings.HasPrefix(f.Name, "driver ") || strings.HasPrefix(f.Name, "server ")) && f.Begin <= l.Begin+gapAfter && f.End >= l.Begin
	})
}

// event is one of which a webhook was told, perhaps more than once.
type event struct {
	id, tells string
	first     int64 // when it had come the first time
	taken     int64 // when the receiver had it the first time; 0: never
}

// misTold says what is wrong with the requests about one job.
func misTold(wanted []string, requests []history.Request) string {
	var events []event
	for _, q := range requests { // in the order in which they came
		i := slices.IndexFunc(events, func(e event) bool { return e.id == q.ID })
		if i < 0 {
			i = len(events)
			events = append(events, event{id: q.ID, tells: q.Tells, first: q.From})
		}
		e := &events[i]
		if e.tells != q.Tells {
			return fmt.Sprintf("request %s told %q, and told %q later", q.ID, e.tells, q.Tells)
		}
		if q.To > 0 && (e.taken == 0 || q.To < e.taken) {
			e.taken = q.To
		}
	}
	var told []string
	for i, e := range events {
		told = append(told, e.tells)
		if i > 0 && (events[i-1].taken == 0 || e.first < events[i-1].taken) {
			return fmt.Sprintf("%q was told before %q had been taken", e.tells, events[i-1].tells)
		}
	}
	switch {
	case !slices.Equal(told, wanted):
		return fmt.Sprintf("it was told %q, and %q happened", told, wanted)
	case len(events) > 0 && events[len(events)-1].taken == 0:
		return fmt.Sprintf("it refused %q, and was not told again", told[len(told)-1])
	}
	return ""
}
