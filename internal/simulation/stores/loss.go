package stores

import (
	"fmt"
	"maps"
	"slices"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// crash ends the store's process. What is under way is lost; what was answered is
// there when it is started again, and hosts open the board with what they remember.
func (w *world) crash() error {
	w.rec.See("crash", "")
	w.rec.Tell("  crash")
	switch {
	case w.inner != nil:
		w.flights = [hosts]*flight{}
		w.inner.Crash()
	case w.disk != nil:
		if err := w.disk.Restart(); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	spec := w.book.spec
	spec.Witness, spec.Seen = w.witness, w.book.position
	return w.reopen(spec, w.book.generation, false)
}

// sendToDisk sends an op and has the store's process end during one of its writes. The
// host gets no answer then, and sends the op again to the next process: it was done, or
// it was not, and the answer says which.
func (w *world) sendToDisk(c *[simulation.Choices]uint8, op *driver.Op) error {
	w.disk.Arm(c[cHow], c[cAge]*3+c[cEdge])
	sent := copyOp(op)
	r := w.store.Apply(0, sent)
	if !w.disk.Disarm() {
		return w.answered(op, &r, true) // nothing was written
	}
	w.rec.Tell("  crash during %s", opNames[op.Kind])
	if r.Kind != job.OutcomeUnknown && r.Kind != job.Unavailable {
		return fmt.Errorf("%s: the process ended during it, and it is answered: %s", describe(op), tell(&r))
	}
	w.rec.See("crash", opNames[op.Kind])
	w.doubt = true
	err := w.crash()
	if w.doubt = false; err != nil {
		return err
	}
	r = w.store.Apply(0, copyOp(op))
	if w.book.repeated(op) == nil && (op.Kind != driver.Post || w.book.find(op.Posting.ID) == nil) {
		r.Repeated = false // if it was done before the end, it is done now for the book
	}
	return w.answered(op, &r, true)
}

// backUp copies the store, and the book with it.
func (w *world) backUp() {
	if w.inner != nil {
		w.inner.BackUp()
		w.backup = &backup{book: w.book.copy(), position: w.inner.position}
	}
}

// putBack puts the copy back. All that was done since is lost, and it has to be said.
func (w *world) putBack() error {
	if w.backup == nil {
		return nil
	}
	w.rec.See("put-back", "")
	w.rec.Tell("  put back from position %d to %d", w.book.position, w.backup.position)
	seen, tokens := w.book.position, w.book.tokens
	generation := w.book.generation
	w.flights = [hosts]*flight{}
	w.inner.PutBack()
	was := w.backup.book.generation
	lost := max(seen, w.opened) > w.backup.position || generation > was
	w.book = w.backup.book.copy()
	w.book.tokens = tokens
	spec := w.book.spec
	spec.Witness, spec.Seen = w.witness, seen
	want := was
	if lost {
		want = max(generation, was) + 1
	}
	if err := w.reopen(spec, want, lost); err != nil {
		return err
	}
	return w.rescanAll()
}

// copy copies the book with everything that changes in it.
func (b *Book) copy() *Book {
	c := *b
	same := map[*entry]*entry{}
	twin := func(e *entry) *entry {
		if e == nil {
			return nil
		}
		if same[e] == nil {
			t := *e
			t.attached = maps.Clone(e.attached)
			if e.claim != nil {
				held := *e.claim
				t.claim = &held
			}
			same[e] = &t
		}
		return same[e]
	}
	c.jobs, c.finals, c.deeds = nil, nil, nil
	for _, e := range b.jobs {
		c.jobs = append(c.jobs, twin(e))
	}
	for _, e := range b.finals {
		c.finals = append(c.finals, twin(e))
	}
	for _, d := range b.deeds {
		t := *d
		t.ended = twin(d.ended)
		t.answer.Claims = slices.Clone(d.answer.Claims)
		c.deeds = append(c.deeds, &t)
	}
	c.tokens = append([]job.Token(nil), b.tokens...)
	return &c
}
