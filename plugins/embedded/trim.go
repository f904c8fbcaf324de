package embedded

import (
	"bytes"
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"
)

// trimStep is how many old records of each sort one commit takes away at most,
// beside those that make room for new ones. So nobody waits for a long clean-up.
const trimStep = 256

// trim takes away what is past its time or over its number, oldest first.
func (v *boardTx) trim() error {
	if err := v.trimFinals(); err != nil {
		return err
	}
	if err := v.trimTombstones(); err != nil {
		return err
	}
	return v.trimAnswers()
}

// cutoff is the end of the board's window.
func (v *boardTx) cutoff() int64 {
	return v.at.steady.Add(-v.board.spec.Load().Window).UnixNano()
}

// oldest returns the first record of a bucket.
func oldest(bucket *bbolt.Bucket) (key, value []byte) { return bucket.Cursor().First() }

// fromOldest shows the records of a bucket, oldest first, at most so many, as
// long as visit returns true. It may take the record away that it is shown.
func fromOldest(bucket *bbolt.Bucket, most int, visit func(key, value []byte) (bool, error)) error {
	cursor := bucket.Cursor()
	key, value := cursor.First()
	for n := 0; key != nil && n < most; n++ {
		at := bytes.Clone(key)
		if more, err := visit(at, value); err != nil || !more {
			return err
		}
		if key, value = cursor.Seek(at); bytes.Equal(key, at) {
			key, value = cursor.Next()
		}
	}
	return nil
}

// trimCount is how many old records are looked at, if there are so many too many.
func trimCount(over int64) int { return trimStep + int(min(max(over, 0), maxGroup)) }

func (v *boardTx) trimTombstones() error {
	spec := v.board.spec.Load()
	if v.counts.tombstones == 0 {
		return nil
	}
	bucket, err := v.bucket(inTombstones)
	if err != nil {
		return err
	}
	cutoff := v.cutoff()
	return fromOldest(bucket, trimCount(v.counts.tombstones-spec.MaxTombstones), func(key, value []byte) (bool, error) {
		var e endedRecord
		if err := e.open(key, value); err != nil {
			return true, nil //nolint:nilerr // it was reported when the board was opened, and is left as it is
		}
		if e.at > cutoff {
			if v.counts.tombstones <= spec.MaxTombstones {
				return false, nil
			}
			v.state.window = max(v.state.window, e.at)
		}
		return true, v.dropTombstone(key, &e)
	})
}

func (v *boardTx) dropTombstone(key []byte, e *endedRecord) error {
	if v.ref(e.id) == newRef(refTombstone, e.position) {
		v.setRef(e.id, 0)
	}
	v.counts.tombstones--
	return v.delete(inTombstones, key)
}

func (v *boardTx) trimAnswers() error {
	if v.counts.answers == 0 {
		return nil
	}
	bucket, err := v.bucket(inAnswers)
	if err != nil {
		return err
	}
	cutoff, limit := v.cutoff(), v.board.spec.Load().MaxTombstones
	return fromOldest(bucket, trimCount(v.counts.answers-limit), func(key, value []byte) (bool, error) {
		var a answer
		if err := a.open(key, value); err != nil {
			return true, nil //nolint:nilerr // as above
		}
		if v.counts.answers <= limit && a.at > cutoff {
			return false, nil
		}
		if number, err := keyUint(key); err == nil && v.answerAt(a.key) == number {
			v.setAnswer(a.key, 0)
		}
		v.counts.answers--
		return true, v.delete(inAnswers, key)
	})
}

// trimFinals takes away final records whose time is over, and the oldest ones
// where there are too many. Within the window a tombstone stays.
func (v *boardTx) trimFinals() error {
	if v.counts.finals == 0 {
		return nil
	}
	expiry, err := v.bucket(inExpiry)
	if err != nil {
		return err
	}
	finals, err := v.bucket(inFinals)
	if err != nil {
		return err
	}
	for range trimStep {
		key, _ := oldest(expiry)
		until, position, ok := splitExpiry(key)
		if !ok || until > v.at.steady.UnixNano() {
			break
		}
		if err := v.dropFinal(position, key); err != nil {
			return err
		}
	}
	spec := v.board.spec.Load()
	for range trimStep + maxGroup {
		if v.counts.finals <= spec.MaxFinals && v.counts.finalBytes <= spec.MaxFinalBytes {
			break
		}
		key, _ := oldest(finals)
		position, err := keyUint(key)
		if err != nil {
			break
		}
		if err := v.dropFinal(position, nil); err != nil {
			return err
		}
	}
	return nil //nolint:nilerr // a key without a number ends the trimming, not the commit
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
func (v *boardTx) dropFinal(position uint64, expiry []byte) error {
	key := uintKey(position)
	value, err := v.get(inFinals, key)
	if err != nil {
		return err
	}
	var e endedRecord
	if err := e.open(key, value); err != nil {
		// It was never counted, and what lies beside it cannot be found any more.
		return v.deleteFinal(key, expiry)
	}
	if expiry == nil {
		expiry = expiryKey(e.keepUntil, position)
	}
	if err := v.dropBelongings(&e); err != nil {
		return err
	}
	current := v.ref(e.id) == newRef(refFinal, position)
	if current && v.board.remembers(e.at, v.at.steady) {
		stone := e.stripped()
		if err := v.put(inTombstones, kindEnded, key, stone.room(), stone.append); err != nil {
			return err
		}
		v.setRef(e.id, newRef(refTombstone, position))
		v.counts.tombstones++
	} else if current {
		v.setRef(e.id, 0)
	}
	v.counts.finals--
	v.counts.finalBytes -= e.size
	return v.deleteFinal(key, expiry)
}

func (v *boardTx) deleteFinal(key, expiry []byte) error {
	if expiry != nil {
		if err := v.delete(inExpiry, expiry); err != nil {
			return err
		}
	}
	return v.delete(inFinals, key)
}

// dropBelongings takes away what was kept beside a final record.
func (v *boardTx) dropBelongings(e *endedRecord) error {
	if err := v.dropDetails(&e.posting); err != nil { // a bare posting has none
		return err
	}
	return v.dropAttached(&e.posting)
}

// reach says how far back the tombstones really go.
func (b *board) reach(now time.Time) time.Duration {
	window := b.spec.Load().Window
	if b.state.window == 0 {
		return window
	}
	return max(0, min(window, now.Sub(timeOf(b.state.window))))
}
