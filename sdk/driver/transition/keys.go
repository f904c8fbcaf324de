package transition

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// An Entry is what a store keeps under a key. Nothing is written to it when its job ends:
// whether that is on the board is looked up when somebody wants the key.
type Entry struct {
	Job    job.ID    // zero in an entry of RateName
	Open   bool      // Job has the key while it is on the board
	Until  time.Time // Job has it until then, whatever became of it; or the end of a rate's period
	Number uint64    // with which it was last taken; or how many claims the period has had
}

// Kept says what the store has of keys.
type Kept interface {
	// Entry returns what is kept under a key, and whether its job is on the board; the zero
	// Entry: nothing. An error is that of the op.
	Entry(name string) (e Entry, onBoard bool, err error)
}

// Taken returns the first of an op's keys that its job cannot take, and the job that has
// it; "": it can take them all.
func Taken(op *driver.Op, now time.Time, kept Kept) (name string, by job.ID, err error) {
	id, replaced := JobOf(op), job.ID{}
	if op.Replaces != nil {
		replaced = op.Replaces.Job
	}
	for i := range op.Keys {
		k := &op.Keys[i]
		e, onBoard, err := kept.Entry(k.Name)
		if err != nil {
			return "", job.ID{}, err
		}
		had := (e.Open && onBoard || now.Before(e.Until)) && e.Job != id && e.Job != replaced
		if had || k.Number != 0 && k.Number <= e.Number {
			return k.Name, e.Job, nil
		}
	}
	return "", job.ID{}, nil
}

// A Replaced is a job that a Post replaces.
type Replaced struct {
	Facts          Facts
	Posting, Claim []driver.Limit // what it counts for
}

// Replace decides by all that is known whether a Post that replaces a job is done. If it is
// not, the answer is r. Otherwise the store carries out op.Replaces, which is not refused,
// and then decides and carries out the rest of the Post, which is not either. now is by the
// clock of keys.
func Replace(op *driver.Op, posted *Facts, other *Replaced, now time.Time, kept Kept, sums func(key string) int64) (r driver.Result, done bool) {
	plan, r := Decide(op, posted)
	if plan.Do == 0 {
		return r, false
	}
	if name, by, err := Taken(op, now, kept); name != "" || err != nil {
		if err != nil {
			return driver.Failed(err), false
		}
		return driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by}, false
	}
	removal, r := Decide(op.Replaces, &other.Facts)
	if removal.Do == 0 {
		r.Taken = op.Replaces.Job
		return r, false
	}
	moves := removal.Moves(other.Posting, other.Claim)
	if r, early := Early(op, sums); early {
		return r, false
	}
	for _, m := range plan.Moves(Counted(op), nil) {
		moves = moves.Add(m.Key, m.By)
	}
	if key := Room(plan.Within, moves, sums); key != "" {
		return Full(key), false
	}
	return driver.Result{}, true
}

// Take returns what is to be kept under a key that a job takes, where before was.
func Take(k *driver.Key, id job.ID, now time.Time, before Entry) Entry {
	e := Entry{Job: id, Open: k.Open, Number: max(k.Number, before.Number)}
	switch {
	case k.For > 0:
		e.Until = now.Add(k.For)
	case before.Job == id:
		e.Until = before.Until
	}
	return e
}

// Dead reports whether an entry says nothing any more, so that the store may drop it.
func (e *Entry) Dead(onBoard bool, now time.Time) bool {
	return (!e.Open || !onBoard) && !now.Before(e.Until) && (e.Number == 0 || e.counts())
}

// counts says that the entry is a rate's: no job has it, and Number is a count.
func (e *Entry) counts() bool { return e.Job == job.ID{} }
