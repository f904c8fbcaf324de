package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// keys looks at jobs of which one at a time may be open. A job is surely open from the end
// of its post to the beginning of the first call that may end it or set it aside; it may be
// open from the beginning of the first call that may have posted it to the end of the first
// that surely ended it, unless somebody may have restored it.
func keys(h *history.History) (problems []Problem) {
	jobs := byJob(h.Ops)
	having := map[string][]string{} // the jobs of each board's keys
	of := map[string]string{}
	for id, ops := range jobs {
		if post, ok := find(ops, func(op history.Op) bool { return op.Call == history.Post && op.Key != "" }); ok {
			key := post.Board + " " + post.Key
			having[key], of[id] = append(having[key], id), key
		}
	}
	for id, key := range of {
		for _, op := range jobs[id] {
			gets := op.Call == history.Post || op.Call == history.Restore
			switch {
			case gets && op.Outcome == history.Done && !again(jobs[id], op):
				for _, other := range having[key] {
					if other != id && openThrough(jobs[other], op) {
						problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s was told at %v of its %s, though job %s was open all the while, which has its key", op.Client, op.End, op.Call, other)})
					}
				}
			case gets && op.Taken && free(jobs, having[key], id, op):
				problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s was refused at %v since another job has its key, and none did", op.Client, op.End)})
			}
		}
	}
	return problems
}

// again reports whether a call may say that the job stands, as an earlier one of its like
// may have put it there.
func again(ops []history.Op, this history.Op) bool {
	_, ok := find(ops, func(op history.Op) bool {
		return op.Call == history.Post && (op.Begin != this.Begin || op.From != this.From) && possible(op) && op.Begin < this.End
	})
	return ok && this.Call == history.Post
}

// ends reports whether a call takes its job off the board, or lets go of a claim in a way
// that does.
func ends(c history.Call) bool {
	switch c {
	case history.Consume, history.Abandon, history.Trash, history.SetAside, history.Cancel, history.Purge, history.Release:
		return true
	case history.Post, history.Claim, history.Extend, history.Restore, history.Get, history.Foreign:
	}
	return false
}

// openThrough reports whether a job was surely open as long as a call went on.
func openThrough(ops []history.Op, during history.Op) bool {
	_, posted := find(ops, func(op history.Op) bool {
		return op.Call == history.Post && op.Outcome == history.Done && before(op, during)
	})
	_, ended := find(ops, func(op history.Op) bool { return ends(op.Call) && possible(op) && !before(during, op) })
	return posted && !ended
}

// free reports whether no other job of a key can have been open as long as a call went on.
func free(jobs map[string][]history.Op, having []string, id string, during history.Op) bool {
	for _, other := range having {
		if other != id && mayBeOpen(jobs[other], during) {
			return false
		}
	}
	return true
}

func mayBeOpen(ops []history.Op, during history.Op) bool {
	_, posted := find(ops, func(op history.Op) bool { return op.Call == history.Post && possible(op) && !before(during, op) })
	_, ended := find(ops, func(op history.Op) bool {
		switch op.Call {
		case history.Consume, history.Trash, history.SetAside, history.Cancel:
			return op.Outcome == history.Done && before(op, during)
		}
		return false
	})
	_, restored := find(ops, func(op history.Op) bool {
		return (op.Call == history.Restore || op.Call == history.Purge) && possible(op) && !before(during, op)
	})
	return posted && (!ended || restored)
}
