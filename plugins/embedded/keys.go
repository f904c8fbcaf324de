package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// keyEntry is transition.Entry as it is kept.
type keyEntry struct{ transition.Entry }

// size is how many bytes append adds at most.
func (e *keyEntry) size() int { return len(e.Job) + 1 + 8 + binary.MaxVarintLen64 }

func (e *keyEntry) append(b []byte) []byte {
	open := byte(0)
	if e.Open {
		open = 1
	}
	b = append(append(b, e.Job[:]...), open)
	b = appendInt64(b, nanos(e.Until))
	return binary.AppendUvarint(b, e.Number)
}

func (e *keyEntry) open(key, value []byte) error {
	body, err := unseal(kindKey, key, value)
	if err != nil {
		return err
	}
	r := reader{b: body}
	e.Entry = transition.Entry{Job: r.array16(), Open: r.byte() == 1, Until: timeOf(r.int64()), Number: r.uvarint()}
	return r.done()
}

// Entry is what is kept under a key.
func (v *boardTx) Entry(name string) (entry transition.Entry, onBoard bool, err error) {
	value := v.get(inKeys, []byte(name))
	if value == nil {
		return entry, false, nil
	}
	var e keyEntry
	if err := e.open([]byte(name), value); err != nil {
		return entry, false, &corruptError{fmt.Errorf("%s/%x: %w", keyBucket, name, err)}
	}
	return e.Entry, v.ref(e.Job).set() == refOpen, nil
}

// taken refuses an op that would take a key which another job has.
func (v *boardTx) taken(op *driver.Op) (r driver.Result, refused bool) {
	name, by, err := transition.Taken(op, v.at.steady, v)
	if err != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "what is kept under a key cannot be read", Err: err}), true
	}
	if name == "" {
		return r, false
	}
	r = driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by}
	if s, err := v.lookup(by); err == nil {
		r.Record = s.Show()
	}
	return r, true
}

// take gives a job its keys. Twice as many others are looked at and dropped if they say
// nothing any more, so that those of ended jobs do not pile up; the next look goes on where
// this one ended.
func (v *boardTx) take(keys []driver.Key, id job.ID) {
	for i := range keys {
		before, _, _ := v.Entry(keys[i].Name) // it was read before
		e := keyEntry{transition.Take(&keys[i], id, v.at.steady, before)}
		v.put(inKeys, kindKey, []byte(keys[i].Name), e.size(), e.append)
	}
	if len(keys) > 0 {
		v.sweepKeys(2*len(keys), id)
	}
}

// pace counts a claim in its rates, and looks at others like take.
func (v *boardTx) pace(rates []driver.Rate, id job.ID) {
	for i := range rates {
		name := transition.RateName(rates[i].Key)
		before, _, _ := v.Entry(name) // it was read before
		e := keyEntry{transition.Pace(&rates[i], v.at.wall, before)}
		v.put(inKeys, kindKey, []byte(name), e.size(), e.append)
	}
	if len(rates) > 0 {
		v.sweepKeys(2*len(rates), id)
	}
}

func (v *boardTx) sweepKeys(most int, id job.ID) {
	b := v.board
	cursor := v.table(inKeys).cursor()
	key, _ := cursor.seekAfter(b.swept)
	var dead [][]byte
	for ; most > 0 && key != nil; most-- {
		b.swept = append(b.swept[:0], key...)
		if e, onBoard, err := v.Entry(string(key)); err == nil && e.Job != id && e.Dead(onBoard, v.at.steady) {
			dead = append(dead, append([]byte(nil), key...))
		}
		key, _ = cursor.next()
	}
	if key == nil {
		b.swept = b.swept[:0]
	}
	for _, key := range dead {
		v.delete(inKeys, key)
	}
}
