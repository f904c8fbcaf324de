package check

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// ticks looks at the jobs of schedules: of each tick there is one, and it comes once.
func ticks(h *history.History) (problems []Problem) {
	for _, s := range h.Schedules {
		if !s.WentOn {
			problems = append(problems, Problem{Text: fmt.Sprintf("schedule %s posted nothing any more after its tick of %s", s.Name, s.From.Format(time.RFC3339))})
		}
		seen := map[string]string{}
		for what, ids := range map[string][]string{"was purged": s.Purged, "is on the board": s.Jobs} {
			for _, id := range ids {
				if before, ok := seen[id]; ok {
					problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("the job of a tick of schedule %s %s, and %s as well: it was posted twice", s.Name, before, what)})
				}
				seen[id] = what
			}
		}
		// Of the last tick the schedule may not have written yet that it was posted.
		least, most := s.Due(s.From), s.Due(s.To)+1
		if n := len(seen); n < least || n > most {
			problems = append(problems, Problem{Text: fmt.Sprintf("%d ticks of schedule %s were posted, and %d to %d have been", n, s.Name, least, most)})
		}
	}
	return problems
}
