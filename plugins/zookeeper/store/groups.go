package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// What a group counts is one node, which the transaction that changes one of its jobs changes
// as well, by its version. So it says what the records say, it is read at once, and the jobs of
// one group are changed one after the other. While a job is on the board or in the trash its
// record names the group.

// A census is how many jobs of a group stand where, in the order of transition.GroupKeys.
type census [6]int64

const censusFormat = 1

func (c *census) encode() []byte {
	w := writer{[]byte{censusFormat}}
	for _, n := range c {
		w.int(n)
	}
	return w.out
}

func decodeCensus(data []byte) (c census, err error) {
	d := reader{in: data}
	if format := d.byte(); d.err == nil && format != censusFormat {
		return c, errors.New("it has another format")
	}
	for i := range c {
		c[i] = d.int()
	}
	if d.err == nil && len(d.in) > 0 {
		d.err = errors.New("bytes follow its end")
	}
	return c, d.err
}

// A groupError refuses a change since a group is closed, or since what it would post waits for
// a group and has to wait on.
type groupError struct{ why *job.Error }

func (e *groupError) Error() string { return e.why.Error() }

// Unwrap returns what is said to the caller.
func (e *groupError) Unwrap() error { return e.why }

// standing returns where the job of a record is counted, if it is of a group.
func (r *record) standing() transition.Standing {
	switch {
	case r == nil:
		return transition.Nowhere
	case r.place == inTrash:
		return transition.Trashed
	case r.place == purged:
		return transition.Purged
	case r.place == ended && r.end != nil:
		return transition.StandingOf(r.end.outcome)
	case r.place == ended:
		return transition.Consumed
	}
	return transition.Open
}

// grouped returns by how much a change moves the counts of which groups.
func (ch *change) grouped(old *record) (moves transition.Moves) {
	if ch.emptied != "" {
		moves = moves.Add(transition.GroupKey(ch.emptied, transition.Open), transition.Closed)
	}
	group, from, to := ch.group, transition.Nowhere, ch.rec.standing()
	if group == "" && old != nil && old.group != "" {
		group, from = old.group, old.standing()
	}
	if from == transition.Open && to == transition.Purged {
		to = transition.Consumed // by another program, and nobody had written it down yet
	}
	if group == "" || from == to {
		return moves
	}
	if from != transition.Nowhere {
		moves = moves.Add(transition.GroupKey(group, from), -1)
	}
	return moves.Add(transition.GroupKey(group, to), 1)
}

// groupCounts are the counters of the groups of one change, by their names.
type groupCounts map[string]*counter

// sum returns what is counted under one of transition's keys.
func (g groupCounts) sum(key string) int64 {
	c := g[key[2:]]
	if c == nil {
		return 0
	}
	return c.census[slices.Index(transition.GroupKeys(key[2:]), key)]
}

// after returns what a group counts after the moves.
func (g groupCounts) after(name string, moves transition.Moves) census {
	after := g[name].census
	for i, key := range transition.GroupKeys(name) {
		for _, m := range moves {
			if m.Key == key {
				after[i] = max(after[i]+m.By, 0)
			}
		}
	}
	return after
}

// refuses returns why the groups do not let a change be made, or nil.
func (g groupCounts) refuses(ch *change, moves transition.Moves) error {
	if ch.emptied != "" {
		if r, early := transition.Early(ch.op, g.sum); early {
			return &groupError{&job.Error{Kind: r.Kind, Message: r.Message}}
		}
	}
	within := slices.DeleteFunc(slices.Clone(ch.within), func(l driver.Limit) bool { return !transition.OfGroup(l.Key) })
	if key := transition.Room(within, moves, g.sum); key != "" {
		r := transition.Full(key)
		return &groupError{&job.Error{Kind: r.Kind, Message: r.Message}}
	}
	return nil
}

// doubt has all read anew.
func (g groupCounts) doubt() {
	for _, c := range g {
		c.known = false
	}
}

// moved notes what addGroups has done.
func (g groupCounts) moved(moves transition.Moves) {
	for name, c := range g {
		if c.census = g.after(name, moves); c.there {
			c.version++
		} else {
			c.there, c.version = true, 0
		}
	}
}

// takeGroups waits for the turn of each group that moves are about. The caller has to call give.
func (b *board) takeGroups(ctx context.Context, moves transition.Moves) (counts groupCounts, give func(), err error) {
	var turns transition.Moves
	for _, m := range moves {
		turns = turns.Add(m.Key[2:], 0)
	}
	taken, err := b.groups.take(ctx, turns)
	if err != nil {
		return nil, nil, err
	}
	counts = groupCounts{}
	for i := range taken {
		counts[turns[i].Key] = taken[i]
	}
	return counts, func() { b.groups.give(taken, turns) }, nil
}

// gather makes a change that groups count, which do carries out, with what it calls add for.
// One that was refused since another host has moved a group's counts is tried with what they
// are now.
func (b *board) gather(ctx context.Context, ch *change, old *record, do func(add func(*session.Multi)) error) error {
	moves := ch.grouped(old)
	if len(moves) == 0 {
		return do(func(*session.Multi) {})
	}
	counts, give, err := b.takeGroups(ctx, moves)
	if err != nil {
		return err
	}
	defer give()
	for synced := false; ; synced = true {
		if err := b.readGroups(ctx, counts); err != nil {
			return err
		}
		failed := counts.refuses(ch, moves)
		if failed == nil {
			failed = do(func(m *session.Multi) { b.addGroups(m, counts, moves) })
			switch {
			case failed == nil:
				counts.moved(moves)
				return nil
			case !session.Conflict(failed):
				counts.doubt() // nobody knows whether they were moved
				return failed
			}
		} else if synced {
			return failed
		}
		conflict := session.Conflict(failed)
		changed, err := b.rereadGroups(ctx, counts)
		if err != nil || conflict && !changed {
			return errors.Join(err, failed) // it is the job that was changed
		}
	}
}

// addGroups adds the moves to a transaction.
func (b *board) addGroups(m *session.Multi, counts groupCounts, moves transition.Moves) {
	for name, c := range counts {
		after := counts.after(name, moves)
		if path, data := b.at.group(name), after.encode(); c.there {
			m.Set(path, data, c.version)
		} else {
			m.Create(path, data, session.Persistent)
		}
	}
}

// readGroups brings those counts up to date that are not known.
func (b *board) readGroups(ctx context.Context, counts groupCounts) error {
	for name, c := range counts {
		if err := b.readGroup(ctx, name, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *board) readGroup(ctx context.Context, name string, c *counter) error {
	return b.read(ctx, c, b.at.groups(), b.at.group(name), func(data []byte) (err error) {
		c.census, err = decodeCensus(data)
		return err
	})
}

// rereadGroups is rereadAll of groups' counts.
func (b *board) rereadGroups(ctx context.Context, counts groupCounts) (changed bool, err error) {
	return b.rereadAll(ctx, maps.All(counts), b.readGroup)
}

// tallied answers how the jobs of a group stand, and closes or forgets it. It is no change of
// the board: the position stays. The node of a forgotten group stays for a while, so that its
// versions go on.
func (b *board) tallied(ctx context.Context, op *driver.Op, begin func() bool) driver.Result {
	counts, give, err := b.takeGroups(ctx, transition.Moves{{Key: transition.GroupKey(op.Group, transition.Open)}})
	if err != nil {
		return driver.Failed(err)
	}
	defer give()
	for range maxTries {
		if _, err := b.rereadGroups(ctx, counts); err != nil {
			return driver.Failed(err)
		}
		if err := b.left(ctx); err != nil {
			return driver.Failed(err)
		}
		b.mu.Lock()
		root, acl := b.root, b.acl
		b.mu.Unlock()
		if r, refused := root.refuses(op); refused {
			return r
		}
		moves, r := transition.Count(op, counts.sum)
		if len(moves) == 0 {
			return r
		}
		if !begin() {
			return driver.Result{Kind: job.Interrupted, Message: "the op was not begun in time"}
		}
		m := b.client().Multi(acl)
		m.Check(b.at.own, root.version)
		b.addGroups(m, counts, moves)
		switch _, err := m.Do(ctx); {
		case err == nil:
			counts.moved(moves)
			return r
		case !session.Conflict(err):
			counts.doubt()
			return driver.Failed(err)
		}
		if err := b.checkRoot(ctx); err != nil {
			return driver.Failed(err)
		}
		if err := b.ready(ctx); err != nil {
			return driver.Failed(err)
		}
	}
	return driver.Failed(job.Errorf(job.Unavailable, "others change the group %.80q all the time", op.Group))
}
