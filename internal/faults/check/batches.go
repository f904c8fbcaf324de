package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// batches looks at batches whose jobs have all left their board: each is counted where it
// went, and what follows comes once, not before.
func batches(h *history.History) (problems []Problem) {
	for i := range h.Batches {
		b := &h.Batches[i]
		complain := func(text string, args ...any) {
			problems = append(problems, Problem{Text: fmt.Sprintf("batch %s: ", b.Name) + fmt.Sprintf(text, args...)})
		}
		if b.Early {
			complain("it was followed while a job of it was open")
		}
		if !b.Done {
			complain("all of its jobs have left the board, and it is not done")
			continue
		}
		if b.Shown != b.BatchCounts {
			complain("it counts %+v, and %+v became of its jobs", b.Shown, b.BatchCounts)
		}
		switch {
		case b.Away && b.Listed:
			complain("job %s follows it, was purged, and was posted once more", b.Then)
		case !b.Away && !b.Listed:
			complain("it is done, and job %s, which follows it, is not on the board", b.Then)
		}
	}
	return problems
}
