package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/internal/faults/history"
)

// repetitions compares the answers to equal requests: claims by their request id, posts
// by their uuid. That a repeated ending is answered alike, the linear checker sees.
func repetitions(h *history.History) (problems []Problem) {
	type call struct {
		request string
		to      int64
	}
	answers, first := map[call][]string{}, map[call]history.Op{}
	for _, op := range h.Ops {
		if op.Call == history.Claim && op.Request != "" && op.Outcome == history.Done && op.Job != "" {
			c := call{op.Request, op.To}
			answers[c], first[c] = append(answers[c], op.Job+" "+op.Granted), op
		}
	}
	byRequest := map[string]call{}
	for c, list := range answers {
		slices.Sort(list)
		other, ok := byRequest[c.request]
		if ok && !slices.Equal(list, answers[other]) {
			problems = append(problems, Problem{Job: first[c].Job, Text: fmt.Sprintf("the claims of request %s were once %s, and once %s", c.request, strings.Join(list, ", "), strings.Join(answers[other], ", "))})
		}
		byRequest[c.request] = c
	}
	for id, ops := range byJob(h.Ops) {
		problems = append(problems, samePost(id, ops)...)
	}
	return problems
}

// samePost finds a post that was answered with two jobs, and one that was refused
// although it stands.
func samePost(id string, ops []history.Op) (problems []Problem) {
	if _, purged := find(ops, func(op history.Op) bool { return op.Call == history.Purge && possible(op) }); purged {
		return nil
	}
	var first history.Op
	for _, op := range ops {
		if op.Call != history.Post || op.Outcome != history.Done {
			continue
		}
		switch {
		case first.Posting == "":
			first = op
		case first.Posting != op.Posting:
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s and %s were both told that theirs was posted, and they differ", first.Client, op.Client)})
		case first.Sequence != 0 && op.Sequence != 0 && first.Sequence != op.Sequence:
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("the same posting was answered with the numbers %d and %d", first.Sequence, op.Sequence)})
		}
	}
	return problems
}
