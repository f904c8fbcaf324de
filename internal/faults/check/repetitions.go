package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// repetitions compares the answers to equal requests: claims by their request id, posts
// by their uuid. That a repeated ending is answered alike, the linear checker sees.
func repetitions(h *history.History) (problems []Problem) {
	type call struct {
		request string
		to      int64
	}
	answers, first, begins := map[call][]string{}, map[call]history.Op{}, map[string]time.Duration{}
	for _, op := range h.Ops {
		if begin, ok := begins[op.Request]; op.Call == history.Claim && (!ok || op.Begin < begin) {
			begins[op.Request] = op.Begin
		}
		if op.Call == history.Claim && op.Request != "" && op.Outcome == history.Done && op.Job != "" {
			c := call{op.Request, op.To}
			answers[c], first[c] = append(answers[c], op.Job+" "+op.Granted), op
		}
	}
	byRequest := map[string]call{}
	for c, list := range answers {
		slices.Sort(list)
		other, ok := byRequest[c.request]
		moved := h.Moved(first[c].Board, begins[c.request], max(first[c].End, first[other].End)) // what it was told before is not known there
		if ok && !moved && !slices.Equal(list, answers[other]) {
			problems = append(problems, Problem{Job: first[c].Job, Text: fmt.Sprintf("the claims of request %s were once %s, and once %s", c.request, strings.Join(list, ", "), strings.Join(answers[other], ", "))})
		}
		byRequest[c.request] = c
	}
	for id, ops := range byJob(h.Ops) {
		problems = append(problems, samePost(h, id, ops)...)
	}
	return problems
}

// samePost finds a post that was answered with two jobs, and one that was refused
// although it stands.
func samePost(h *history.History, id string, ops []history.Op) (problems []Problem) {
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
		case first.Sequence != 0 && op.Sequence != 0 && first.Sequence != op.Sequence && !h.Moved(op.Board, first.Begin, op.End): // which numbers its jobs anew
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("the same posting was answered with the numbers %d and %d", first.Sequence, op.Sequence)})
		}
	}
	return problems
}
