package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// limits goes through the times at which a board's jobs were surely open, and at which
// they may have been. Never more than the limit are surely open, and a post is not
// refused while fewer than that may be.
func limits(h *history.History) (problems []Problem) {
	for board, most := range h.OpenJobs {
		var sure, perhaps []span
		for _, ops := range byJob(h.Ops) {
			if ops[0].Board != board {
				continue
			}
			s, p := open(ops)
			sure, perhaps = append(sure, s...), append(perhaps, p...)
		}
		if when, n := peak(sure); n > most {
			problems = append(problems, Problem{Text: fmt.Sprintf("board %s may have %d open jobs and surely had %d at %v", board, most, n, when)})
		}
		for _, op := range h.Ops {
			if op.Board != board || op.Call != history.Post || op.Kind != job.QuotaExceeded || strings.Contains(op.Text, "memory") { // of a store that is full
				continue
			}
			if n := overlapping(perhaps, op); n < most {
				problems = append(problems, Problem{Job: op.Job, Text: fmt.Sprintf("its post was refused from %v to %v for the limit of %d open jobs, and at most %d may have been open", op.Begin, op.End, most, n)})
			}
		}
	}
	return problems
}

type span struct{ from, to time.Duration }

// open returns when a job was surely open, and when it may have been. Where it may
// have been posted twice, or put back, nothing is sure.
func open(ops []history.Op) (sure, perhaps []span) {
	begin, known, left := history.Forever, history.Forever, history.Forever
	again := false
	for _, op := range ops {
		if !possible(op) {
			continue
		}
		switch op.Call {
		case history.Post:
			begin = min(begin, op.Begin)
			if op.Outcome == history.Done {
				known = min(known, op.End)
			}
		case history.Consume, history.Trash, history.SetAside, history.Cancel:
			left = min(left, op.Begin)
		case history.Restore, history.Purge:
			again = true
		}
	}
	if begin == history.Forever {
		return nil, nil
	}
	perhaps = append(perhaps, span{begin, surelyLeft(ops, again)})
	if known < left && !again {
		sure = append(sure, span{known, left})
	}
	return sure, perhaps
}

// surelyLeft returns when a job was surely off the board for good.
func surelyLeft(ops []history.Op, again bool) time.Duration {
	left := history.Forever
	for _, op := range ops {
		if op.Outcome != history.Done || op.Call == history.Post {
			continue
		}
		switch op.Call {
		case history.Consume, history.Cancel:
			left = min(left, op.End)
		case history.Trash, history.SetAside:
			if !again {
				left = min(left, op.End)
			}
		}
	}
	return left
}

// peak returns when most spans hold at once, and how many.
func peak(spans []span) (when time.Duration, most int) {
	type edge struct {
		at time.Duration
		by int
	}
	var edges []edge
	for _, s := range spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, e := range edges {
		if n += e.by; n > most {
			when, most = e.at, n
		}
	}
	return when, most
}

// overlapping returns how many spans hold at some moment of a call.
func overlapping(spans []span, op history.Op) (n int) {
	for _, s := range spans {
		if s.from <= op.End && s.to >= op.Begin {
			n++
		}
	}
	return n
}
