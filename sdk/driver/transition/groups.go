package transition

import (
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Groups are counted with what limits are counted with, so that a store has one sort of
// counter, which moves in the step that changes the job. A job of a group has one limit
// more, whose key begins with a zero byte, as no other limit's does. Behind that are a
// Standing, as one byte, and the group's name. The counter of the open jobs stands Closed
// higher once the group is closed, which is more than the limit lets a post have, and once
// more when a Post was done that waited for the group.

// A Standing is where a group counts a job.
type Standing byte

// The standings.
const (
	Nowhere  Standing = 0
	Open     Standing = 'o'
	Trashed  Standing = 't'
	Consumed Standing = 'c'
	Canceled Standing = 'x'
	Failed   Standing = 'f'
	Purged   Standing = 'p'
)

// standings are those that have a counter.
var standings = [...]Standing{Open, Trashed, Consumed, Canceled, Failed, Purged}

// Closed is what the counter of a closed group's open jobs stands higher.
const Closed int64 = 1 << 40

// StandingOf returns where a group counts a job that ended so.
func StandingOf(outcome job.Outcome) Standing {
	switch outcome {
	case job.Canceled:
		return Canceled
	case job.Failed:
		return Failed
	case job.NoOutcome, job.Consumed, job.Purged:
	}
	return Consumed
}

// GroupKey is the key of a counter.
func GroupKey(group string, s Standing) string { return string([]byte{0, byte(s)}) + group }

// GroupKeys are the keys of all counters of a group.
func GroupKeys(group string) []string {
	keys := make([]string, 0, len(standings))
	for _, s := range standings {
		keys = append(keys, GroupKey(group, s))
	}
	return keys
}

// OfGroup reports whether a key is that of a group's counter, and not of a limit.
func OfGroup(key string) bool { return len(key) > 1 && key[0] == 0 }

// Counted returns what the job of a Post counts while it is on the board: Op.Limits, and
// its group as one more. This is what a store keeps with the job, and checks.
func Counted(op *driver.Op) []driver.Limit {
	if op.Group == "" {
		return op.Limits
	}
	list := make([]driver.Limit, 0, len(op.Limits)+1)
	return append(append(list, op.Limits...), driver.Limit{Key: GroupKey(op.Group, Open), Weight: 1, Max: Closed - 1})
}

// Group adds that a job of these limits goes from one standing to another. What limits
// count of that is not in it: Limits moves the counter of the open jobs.
func (m Moves) Group(list []driver.Limit, from, to Standing) Moves {
	for i := range list {
		if !OfGroup(list[i].Key) {
			continue
		}
		name := list[i].Key[2:]
		if from != Nowhere && from != Open {
			m = m.Add(GroupKey(name, from), -1)
		}
		if to != Nowhere && to != Open {
			m = m.Add(GroupKey(name, to), 1)
		}
	}
	return m
}

// Standings says where a group counts the plan's job before and after it.
func (p *Plan) Standings() (from, to Standing) {
	switch p.Do {
	case driver.Remove:
		return Open, StandingOf(p.Ending.Outcome)
	case driver.Trash:
		return Open, Trashed
	case driver.Restore:
		return Trashed, Open
	case driver.Purge:
		if p.FromTrash { // what ended is counted as it ended
			return Trashed, Purged
		}
		return Open, Open
	default:
		return Open, Open
	}
}

// Full is the answer to an op that a limit forbids, by the key that Room returned.
func Full(key string) driver.Result {
	if OfGroup(key) {
		return driver.Result{Kind: job.Precondition, Message: fmt.Sprintf("the group %q is closed", key[2:])}
	}
	return driver.Result{Kind: job.QuotaExceeded, Message: key}
}

// Early refuses a Post whose Op.Emptied is not closed, has a job on the board, or has let
// another Post through. sums
// returns the present count of a key.
func Early(op *driver.Op, sums func(key string) int64) (r driver.Result, early bool) {
	if op.Emptied == "" {
		return r, false
	}
	switch n := sums(GroupKey(op.Emptied, Open)); {
	case n < Closed:
		return driver.Result{Kind: job.Precondition, Message: fmt.Sprintf("the group %q is not closed", op.Emptied)}, true
	case n >= 2*Closed:
		return driver.Result{Kind: job.AlreadyExists, Message: fmt.Sprintf("what waits for the group %q was posted already", op.Emptied)}, true
	case n > Closed:
		return driver.Result{Kind: job.Precondition, Message: fmt.Sprintf("the group %q has %d jobs on the board", op.Emptied, n-Closed)}, true
	}
	return r, false
}

// Count decides a Tally. If there are moves, the store makes them in one step, without a
// check; then, or where there are none, the answer is r.
func Count(op *driver.Op, sums func(key string) int64) (moves Moves, r driver.Result) {
	var now [len(standings)]int64
	for i, s := range standings {
		now[i] = sums(GroupKey(op.Group, s))
	}
	g := GroupOf(now)
	switch {
	case op.Forget && g.Open+g.Trashed > 0:
		message := fmt.Sprintf("the group %q has jobs: %d on the board and %d in the trash", op.Group, g.Open, g.Trashed)
		return nil, driver.Result{Kind: job.Precondition, Message: message, Group: &g}
	case op.Forget:
		for i, s := range standings {
			if now[i] != 0 {
				moves = moves.Add(GroupKey(op.Group, s), -now[i])
			}
		}
		g = driver.Group{}
	case op.Close && !g.Closed:
		moves = moves.Add(GroupKey(op.Group, Open), Closed)
		g.Closed = true
	}
	return moves, driver.Result{Group: &g}
}

// GroupOf is what the counters of a group say, in the order of GroupKeys.
func GroupOf(n [len(standings)]int64) driver.Group {
	g := driver.Group{Open: n[0], Trashed: n[1], Consumed: n[2], Canceled: n[3], Failed: n[4], Purged: n[5]}
	g.Closed, g.Followed = g.Open >= Closed, g.Open >= 2*Closed
	g.Open %= Closed
	return g
}
