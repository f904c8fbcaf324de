package index

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/job"
)

// A ref names one version of a row: a row that was changed, or given to another
// job, has another turn.
type ref struct{ row, turn uint32 }

// row returns the row of a ref, or nil if that version is no more.
func (ix *Index) row(of ref) *row {
	if r := ix.rows.peek(of.row); r != nil && r.turn == of.turn {
		return r
	}
	return nil
}

// A batch is the entries that a judge is shown at a time. Batches are pooled, so the
// entries are only lent.
type batch struct {
	refs    []ref
	entries []*Entry
	allowed []bool
	store   []Entry
	labels  []job.Label
}

var batches = sync.Pool{New: func() any {
	b := &batch{store: make([]Entry, slice), entries: make([]*Entry, 0, slice), allowed: make([]bool, slice)}
	return b
}}

func (b *batch) reset() {
	clear(b.store[:len(b.refs)])
	clear(b.labels)
	b.refs, b.entries, b.labels = b.refs[:0], b.entries[:0], b.labels[:0]
}

func (b *batch) add(ix *Index, h uint32, r *row) {
	e := &b.store[len(b.refs)]
	b.labels = ix.show(r, e, b.labels)
	b.refs = append(b.refs, ref{h, r.turn})
	b.entries = append(b.entries, e)
}

// judge asks for verdicts on the whole batch.
func (b *batch) judge(ctx context.Context, judge Judge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(b.refs) == 0 {
		return nil
	}
	clear(b.allowed[:len(b.refs)])
	return judge(ctx, b.entries, b.allowed[:len(b.refs)])
}

// pendingVerdicts is the jobs that became ready and lack the verdict of some class.
type pendingVerdicts struct {
	turn    chan struct{} // held by whoever has them judged
	refs    []ref
	queued  uint64 // how many ever came in
	settled uint64 // how many of them are done
}

func (d *pendingVerdicts) init() { d.turn = make(chan struct{}, 1) }

func (d *pendingVerdicts) queue(h, turn uint32) {
	d.refs = append(d.refs, ref{h, turn})
	d.queued++
}

// ticket names everything that is pending now; 0 if that is nothing.
func (d *pendingVerdicts) ticket() uint64 {
	if d.settled == d.queued {
		return 0
	}
	return d.queued
}

// awaitVerdicts returns when everything that a ticket names has been judged; the lock
// must not be held. One caller judges at a time, for the others as well. A judge that
// fails leaves its class to be built again.
func (ix *Index) awaitVerdicts(ctx context.Context, ticket uint64) error {
	for ticket > 0 {
		ix.mu.Lock()
		done := ix.pending.settled >= ticket
		ix.mu.Unlock()
		if done {
			return nil
		}
		select {
		case ix.pending.turn <- struct{}{}:
			ix.judgeBatch(context.WithoutCancel(ctx))
			<-ix.pending.turn
		case <-ctx.Done():
			return &job.Error{Op: "worker class", Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
	return nil
}

// judgeBatch judges up to one batch, for each class those jobs that it has not
// seen.
func (ix *Index) judgeBatch(ctx context.Context) {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.reset()
	ix.mu.Lock()
	n := min(len(ix.pending.refs), slice)
	for _, ref := range ix.pending.refs[:n] {
		if r := ix.row(ref); r != nil && r.place == ready {
			b.add(ix, ref.row, r)
		}
	}
	ix.pending.refs = ix.pending.refs[n:]
	if len(ix.pending.refs) == 0 {
		ix.pending.refs = nil
	}
	var ofClasses []classBatch
	for c := range ix.classes.of(ix.classes.active) {
		if h := ix.partOf(b, c); len(h.rows) > 0 {
			ofClasses = append(ofClasses, h)
		}
	}
	ix.mu.Unlock()
	for _, h := range ofClasses {
		ix.judgePart(ctx, h, b)
	}
	ix.mu.Lock()
	ix.pending.settled += uint64(n)
	ix.mu.Unlock()
}

// A classBatch is the part of a batch that one class has to see.
type classBatch struct {
	class *Class
	rows  []int
}

// partOf returns what of a batch a class has no verdict on. The caller holds ix.mu.
func (ix *Index) partOf(b *batch, c *Class) classBatch {
	h := classBatch{class: c}
	for i, ref := range b.refs {
		r := ix.rows.at(ref.row)
		if !r.verdicts.has(c.slot) && c.reachedBy(r) {
			h.rows = append(h.rows, i)
		}
	}
	return h
}

func (ix *Index) judgePart(ctx context.Context, h classBatch, all *batch) {
	b := &batch{allowed: make([]bool, len(h.rows))}
	for _, i := range h.rows {
		b.refs = append(b.refs, all.refs[i])
		b.entries = append(b.entries, all.entries[i])
	}
	if b.judge(ctx, h.class.judge) == nil {
		ix.publish(h.class, b)
		return
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if h.class.state == built {
		h.class.state = building
	}
	h.class.begun = false
	ix.fail(h.class)
}
