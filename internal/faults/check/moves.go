package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// moves looks at the moves of boards. That nothing else is lost on the way, and that nobody is
// told otherwise, the other checkers see.
func moves(h *history.History) (problems []Problem) {
	for _, m := range h.Moves {
		if m.End == history.Forever && m.State != "" {
			problems = append(problems, Problem{Text: fmt.Sprintf("the move of board %s to %s, begun at %v, is %s for ever", m.Board, m.To, m.Begin, m.State)})
		}
	}
	return problems
}
