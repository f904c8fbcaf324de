package embedded

import (
	"encoding/binary"
	"time"
)

// trimStep is how many old records of each sort one commit takes away at most,
// beside those that make room for new ones. So nobody waits for a long clean-up.
const trimStep = 256

// trim takes away what is past its time or over its number, oldest first.
func (v *boardTx) trim() {
	v.trimFinals()
	v.trimTombstones()
	v.trimAnswers()
}

// cutoff is the end of the board's window.
func (v *boardTx) cutoff() int64 {
	return v.at.steady.Add(-v.board.spec.Load().Window).UnixNano()
}

// fromOldest shows the records of a table, oldest first, at most so many, as long
// as visit returns true. It may take the record away that it is shown; otherwise it
// is not shown again, if it returned true. What was taken away since the last
// checkpoint is still in the file: a search from there would pass over all of that.
func (v *boardTx) fromOldest(n, most int, visit func(key, value []byte) bool) {
	cursor := v.table(n).cursor()
	key, value := cursor.seek(v.board.oldest[n])
	for range most {
		if key == nil {
			return
		}
		v.board.oldest[n] = append(v.board.oldest[n][:0], key...)
		if !visit(key, value) {
			return
		}
		key, value = cursor.next()
	}
}

// trimCount is how many old records are looked at, if there are so many too many.
func trimCount(over int64) int { return trimStep + int(min(max(over, 0), maxGroup)) }

func (v *boardTx) trimTombstones() {
	spec, b := v.board.spec.Load(), v.board
	cutoff, over := v.cutoff(), v.counts.tombstones-spec.MaxTombstones
	if v.counts.tombstones == 0 || over <= 0 && b.oldestStone > cutoff {
		return
	}
	v.fromOldest(inTombstones, trimCount(over), func(key, value []byte) bool {
		var e endedRecord
		if err := e.open(key, value); err != nil {
			return true // it was reported when the board was opened, and is left as it is
		}
		if e.at > cutoff {
			if v.counts.tombstones <= spec.MaxTombstones {
				b.oldestStone = e.at
				return false
			}
			v.state.window = max(v.state.window, e.at)
		}
		v.dropTombstone(key, &e)
		return true
	})
}

func (v *boardTx) dropTombstone(key []byte, e *endedRecord) {
	if v.ref(e.id) == newRef(refTombstone, e.position) {
		v.setRef(e.id, 0)
	}
	v.counts.tombstones--
	v.delete(inTombstones, key)
}

func (v *boardTx) trimAnswers() {
	cutoff, limit, b := v.cutoff(), v.board.spec.Load().MaxTombstones, v.board
	if v.counts.answers == 0 || v.counts.answers <= limit && b.oldestAnswer > cutoff {
		return
	}
	v.fromOldest(inAnswers, trimCount(v.counts.answers-limit), func(key, value []byte) bool {
		var a answer
		if err := a.open(key, value); err != nil {
			return true // as above
		}
		if a.at > cutoff {
			if v.counts.answers <= limit {
				b.oldestAnswer = a.at
				return false
			}
			v.state.window = max(v.state.window, a.at)
		}
		if number, err := keyUint(key); err == nil && v.answerAt(a.key) == number {
			v.setAnswer(a.key, 0)
		}
		v.counts.answers--
		v.delete(inAnswers, key)
		return true
	})
}

// trimFinals takes away final records whose time is over, and the oldest ones
// where there are too many. Within the window a tombstone stays.
func (v *boardTx) trimFinals() {
	if v.counts.finals == 0 {
		return
	}
	now := v.at.steady.UnixNano()
	v.fromOldest(inExpiry, trimStep, func(key, _ []byte) bool {
		until, position, ok := splitExpiry(key)
		if !ok || until > now {
			return false
		}
		v.dropFinal(position, key)
		return true
	})
	spec := v.board.spec.Load()
	over := func() bool { return v.counts.finals > spec.MaxFinals || v.counts.finalBytes > spec.MaxFinalBytes }
	if !over() {
		return
	}
	v.fromOldest(inFinals, trimStep+maxGroup, func(key, _ []byte) bool {
		position, err := keyUint(key)
		if err != nil || !over() {
			return false
		}
		v.dropFinal(position, nil)
		return true
	})
}

func expiryKey(until int64, position uint64) []byte {
	return binary.BigEndian.AppendUint64(uintKey(uint64(until)), position)
}

func splitExpiry(key []byte) (until int64, position uint64, ok bool) {
	if len(key) != 16 {
		return 0, 0, false
	}
	return int64(binary.BigEndian.Uint64(key)), binary.BigEndian.Uint64(key[8:]), true
}

// dropFinal takes a final record away, with the posting and attached records
// that were kept beside it, and leaves a tombstone if the window asks for one.
func (v *boardTx) dropFinal(position uint64, expiry []byte) {
	key := uintKey(position)
	var e endedRecord
	if err := e.open(key, v.get(inFinals, key)); err != nil {
		// It was never counted, and what lies beside it cannot be found any more.
		v.deleteFinal(key, expiry)
		return
	}
	if expiry == nil {
		expiry = expiryKey(e.keepUntil, position)
	}
	v.dropBelongings(&e)
	current := v.ref(e.id) == newRef(refFinal, position)
	if current && v.board.remembers(e.at, v.at.steady) {
		stone := e.stripped()
		v.put(inTombstones, kindEnded, key, stone.room(), stone.append)
		v.setRef(e.id, newRef(refTombstone, position))
		v.counts.tombstones++
		v.board.oldestStone = min(v.board.oldestStone, e.at)
	} else if current {
		v.setRef(e.id, 0)
	}
	v.counts.finals--
	v.counts.finalBytes -= e.size
	v.deleteFinal(key, expiry)
}

func (v *boardTx) deleteFinal(key, expiry []byte) {
	if expiry != nil {
		v.delete(inExpiry, expiry)
	}
	v.delete(inFinals, key)
}

// dropBelongings takes away what was kept beside a final record.
func (v *boardTx) dropBelongings(e *endedRecord) {
	v.dropDetails(&e.posting) // a bare posting has none
	v.dropAttached(&e.posting)
}

// reach says how far back the tombstones really go.
func (b *board) reach(now time.Time) time.Duration {
	window := b.spec.Load().Window
	if b.state.window == 0 {
		return window
	}
	return max(0, min(window, now.Sub(timeOf(b.state.window))))
}
