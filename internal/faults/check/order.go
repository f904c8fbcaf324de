package check

import (
	"fmt"
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// Drainer is the client that, at rest, claims one job after another.
const Drainer = "drainer"

// order looks at lists of a board at rest, at the jobs that a lone client then claims,
// and at whether a job's number says when it was posted.
func order(h *history.History) (problems []Problem) {
	ranks := postings(h)
	for _, board := range boardsOf(h) {
		d, _ := follow(h, board)
		rules, known := d.final()
		if !known {
			continue
		}
		var least []Problem
		for i, rule := range rules { // one of them was in force
			if found := orderedBy(h, board, sorting{rule, ranks, len(h.Moves) > 0}); i == 0 || len(found) < len(least) {
				least = found
			}
		}
		problems = append(problems, least...)
	}
	return append(problems, ages(h)...)
}

// boardsOf returns the boards that were listed.
func boardsOf(h *history.History) (boards []string) {
	for _, l := range h.Lists {
		if !slices.Contains(boards, l.Board) {
			boards = append(boards, l.Board)
		}
	}
	return boards
}

// orderedBy finds what is not in the order that a board has at rest.
func orderedBy(h *history.History, board string, s sorting) (problems []Problem) {
	jobs := map[string]history.Listed{}
	for _, l := range h.Lists {
		if !l.Final || l.State != job.Unclaimed || l.Board != board {
			continue
		}
		for i, j := range l.Jobs {
			jobs[j.Job] = j
			if i > 0 && !s.first(l.Jobs[i-1], j) {
				problems = append(problems, Problem{Job: j.Job, Text: fmt.Sprintf("%s lists it (%s) after %s (%s)", l.Server, s.say(j), l.Jobs[i-1].Job, s.say(l.Jobs[i-1]))})
			}
		}
	}
	var last history.Listed
	for _, op := range h.Ops {
		if op.Client != Drainer || op.Call != history.Claim || op.Outcome != history.Done || op.Job == "" || op.Board != board {
			continue
		}
		j, known := jobs[op.Job]
		if !known {
			continue // it came after the list
		}
		if last.Job != "" && last.Job != op.Job && !s.first(last, j) { // its timeout may be over before it is consumed
			problems = append(problems, Problem{Job: op.Job, Text: fmt.Sprintf("at rest it (%s) is claimed after %s (%s)", s.say(j), last.Job, s.say(last))})
		}
		last = j
	}
	return problems
}

// sorting is the order of a board's jobs.
type sorting struct {
	rule  history.Rule
	posts map[string]history.Op
	moves bool // the board may have moved: jobs have kept their age, and not their numbers
}

func (s sorting) first(a, b history.Listed) bool {
	if x, y := s.rank(a), s.rank(b); x != y {
		return x > y
	}
	if a.Priority == b.Priority && (s.posts[a.Job].Outside || s.posts[b.Job].Outside) {
		return true // TaskFlow says by its own clock how old its jobs are
	}
	if s.moves && a.Priority == b.Priority && a.Created != b.Created {
		return a.Created < b.Created
	}
	return a.Priority < b.Priority || a.Priority == b.Priority && a.Sequence < b.Sequence
}

// rank is what the policy in force goes by: the highest comes first.
func (s sorting) rank(j history.Listed) int {
	switch rank := s.posts[j.Job].Rank; {
	case s.rule.Serial == 0:
		return 0
	case s.rule.Reversed:
		return -rank
	default:
		return rank
	}
}

func (s sorting) say(j history.Listed) string {
	text := fmt.Sprintf("priority %d, number %d", j.Priority, j.Sequence)
	if s.moves {
		text += fmt.Sprintf(", posted at %d", j.Created)
	}
	if s.rule.Serial != 0 {
		text += fmt.Sprintf(", rank %d by rule %d", s.rank(j), s.rule.Serial)
	}
	return text
}

// ages finds two jobs of which the one that was posted first has the larger number.
func ages(h *history.History) (problems []Problem) {
	posted := map[string][]history.Op{} // by board
	for _, ops := range byJob(h.Ops) {
		var calls []history.Op
		again := false
		for _, op := range ops {
			again = again || op.Call == history.Purge && possible(op)
			if op.Call == history.Post && possible(op) {
				calls = append(calls, op)
			}
		}
		if len(calls) == 1 && !again && calls[0].Sequence != 0 {
			posted[calls[0].Board] = append(posted[calls[0].Board], calls[0])
		}
	}
	for board, list := range posted {
		for _, a := range list {
			for _, b := range list {
				if before(a, b) && a.Sequence >= b.Sequence && !h.Moved(board, a.Begin, b.End) { // which numbers its jobs anew
					problems = append(problems, Problem{Job: b.Job, Text: fmt.Sprintf("it was posted after %s was, and has the number %d where that has %d", a.Job, b.Sequence, a.Sequence)})
				}
			}
		}
	}
	return problems
}
