package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// memorySize is that of BoardStatus.Witness: the root's id, the generation and the position.
const memorySize = 32

// recall says what a host's memory, and what it has seen, tell of the store: that
// changes were lost, and which generation there was before. position is the store's.
func (r root) recall(memory []byte, seen, position uint64) (lost string, generation uint64) {
	if len(memory) != memorySize {
		return "", 0
	}
	id, before, was := [16]byte(memory), binary.BigEndian.Uint64(memory[16:]), binary.BigEndian.Uint64(memory[24:])
	was = max(was, seen)
	switch {
	case id == [16]byte{}:
		return "", before
	case id != r.id:
		return "the board is gone or another one is in its place: what was done on it is lost", before
	case was > position:
		return fmt.Sprintf("ZooKeeper was put back to an earlier state: the board is at change 0x%x and was at 0x%x", position, was), before
	case before < r.generation:
		return fmt.Sprintf("the board lost changes before, and is in generation %d since, after generation %d", r.generation, before), before
	}
	return "", before
}

func (r root) memory(position uint64) []byte {
	out := append(make([]byte, 0, memorySize), r.id[:]...)
	out = binary.BigEndian.AppendUint64(out, r.generation)
	return binary.BigEndian.AppendUint64(out, position)
}

// A logCount is how far a board's log has come. Only this board counts it, while its
// position is ZooKeeper's: an ensemble that was put back begins a new epoch, which is beyond
// every position of before. Only the memory of this process has it: programs of before take
// no witness of another size.
type logCount struct {
	id         [16]byte // the root's, and its generation
	generation uint64
	series     uint32
	entries    int32 // that it ever had

	replaced bool // an entry that this host knew is another one, or gone with all after it
}

// less reports whether c is how the same board's log was before.
func (c *logCount) less(than *logCount) bool {
	return c.id == than.id && (c.series < than.series || c.series == than.series && c.entries < than.entries)
}

// lost says that entries of the log were lost since c; "" if none were.
func (c *logCount) lost(r *root, now logCount) string {
	switch now.id = r.id; {
	case now.replaced:
		return "ZooKeeper was put back to an earlier state, and others have gone on since: the board's log is another one"
	case !now.less(c):
		return ""
	}
	return fmt.Sprintf("ZooKeeper was put back to an earlier state: the board's log is at entry %d.%d and was at %d.%d", now.series, now.entries, c.series, c.entries)
}

// countLog reads how far the log has come, and returns how far it was for this host before;
// false: there is none, or it has just begun anew.
func (b *board) countLog(ctx context.Context) (now, earlier logCount, known bool, err error) {
	b.mu.Lock()
	b.remember()
	ends := slices.Clone(b.ends)
	earlier, now.id, now.series = b.earlier, b.root.id, b.root.log
	b.mu.Unlock()
	stat, err := b.client().Exists(ctx, b.at.log(now.series))
	if err != nil || stat == nil {
		return now, earlier, false, err
	}
	now.entries = created(stat)
	now.replaced, err = b.replaced(ctx, &now, ends)
	return now, earlier, err == nil, err
}

// remember keeps how far the log is known, for who opens the board next. b.mu is held.
func (b *board) remember() {
	of := &b.log.of
	is := logCount{id: of.id, generation: of.generation, series: of.log, entries: b.log.number}
	if of.there && !is.less(&b.earlier) {
		b.earlier = is
	}
}

// forgetLog has a loss of which somebody is told be told no more.
func (b *board) forgetLog() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earlier, b.ends, b.log.of = logCount{}, nil, root{}
}

// recalled notes that whoever opens the board is told of what was remembered.
func (b *board) recalled(earlier *logCount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.earlier == *earlier {
		b.earlier = logCount{}
	}
	b.ends = b.ends.since(b.log.within)
}
