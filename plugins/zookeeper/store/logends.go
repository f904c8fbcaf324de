package store

import (
	"context"
	"slices"
)

// A logEnd is the last entry of a board's log that this host knew while a server held its session.
// After ZooKeeper was put back the log may have become as long again, and longer, by changes of hosts
// that knew nothing of those that were lost: then another entry has its number.
type logEnd struct {
	id     [16]byte // the root's
	series uint32
	number int32
	zxid   uint64 // at which it was written
	within uint64 // see session.Client.Reached
}

// logEnds are those that have not been looked at since, the oldest first: at most mostLogEnds.
type logEnds []logEnd

const mostLogEnds = 16

// since returns those from a time on.
func (l logEnds) since(within uint64) logEnds {
	return slices.DeleteFunc(slices.Clone(l), func(e logEnd) bool { return e.within < within })
}

// endsAt notes an entry of the log, which was answered within a time. b.mu is held.
func (b *board) endsAt(number int32, zxid, within uint64) {
	e := logEnd{id: b.log.of.id, series: b.log.of.log, number: number, zxid: zxid, within: within}
	n := len(b.ends)
	switch {
	case n == 0 || b.ends[n-1].within != within || b.ends[n-1].id != e.id || b.ends[n-1].series != e.series:
		b.ends = append(b.ends[max(0, n+1-mostLogEnds):], e)
	case number-b.ends[n-1].number > 0: // the counter wraps: what is older is less than half of it away
		b.ends[n-1] = e
	}
}

// replaced reports whether ends of the log of before are not in the one of now. What was trimmed away
// since tells nothing.
func (b *board) replaced(ctx context.Context, now *logCount, ends logEnds) (bool, error) {
	for _, e := range ends {
		if e.id != now.id || e.series != now.series {
			continue
		}
		if now.entries-e.number <= 0 {
			return true, nil
		}
		stat, err := b.client().Exists(ctx, b.at.logEntry(e.series, e.number))
		if err != nil {
			return false, err
		}
		if stat != nil && uint64(stat.Czxid) != e.zxid {
			return true, nil
		}
	}
	return false, nil
}

// sameLog returns errAgain if a server has taken the session since the log was looked at last, and has
// another log: ZooKeeper was put back to a state that knows the session.
func (b *board) sameLog(ctx context.Context) error {
	within := b.client().Reached()
	b.mu.Lock()
	if b.log.within == within {
		b.mu.Unlock()
		return nil
	}
	id, series, ends := b.root.id, b.root.log, slices.Clone(b.ends)
	b.mu.Unlock()
	stat, err := b.client().Exists(ctx, b.at.log(series))
	if err != nil || stat == nil {
		return err
	}
	switch other, err := b.replaced(ctx, &logCount{id: id, series: series, entries: created(stat)}, ends); {
	case err != nil:
		return err
	case other:
		return errAgain
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.within, b.ends = within, b.ends.since(within)
	return nil
}
