package host

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// restDocs is which boards of one store rest.
type restDocs struct {
	docs   driver.Documents
	synced chan struct{} // closed when all are known
	once   sync.Once
	roused func(key string) // is called when a host has opened a board
	laid   func(key string) // is called when a host says that a board rests
	store  *acknowledged.Backend
	waker  driver.Waker // nil: boards that others leave postings for do not rest
	deaf   atomic.Bool  // the driver was started anew from a program that does not tell of postings

	mu    sync.Mutex
	known map[string]*rested
	left  map[string]bool // boards that postings were left for since they were last closed here, or ever
}

// rests returns which boards rest on the backend's store, and follows that from the first
// call on.
func (b *backend) rests(h *Host) *restDocs {
	b.line.Lock()
	defer b.line.Unlock()
	if b.resting == nil {
		ctx, cancel := context.WithCancel(h.running)
		context.AfterFunc(b.ending, cancel)
		r := b.running.Load()
		d := &restDocs{docs: r.driver.Documents(), store: b.known, waker: r.waker, synced: make(chan struct{}), known: map[string]*rested{}, left: map[string]bool{}}
		d.roused = func(key string) {
			if s := h.registry.keyed(b, key); s != nil && s.resting.Load() != nil {
				s.call()
			}
		}
		d.laid = func(key string) {
			if s := h.registry.keyed(b, key); s != nil && s.board.Load() != nil && !s.quiet(h.restAfter()) {
				h.registry.leaving.Go(func() { _ = s.rouse(ctx, h) }) // or restForever does
			}
		}
		b.wg.Go(func() { d.follow(ctx) })
		if d.waker != nil {
			b.wg.Go(func() { d.followInboxes(ctx, func(key string) { h.leftFor(b, d, key) }) })
		}
		b.resting = d
	}
	return b.resting
}

// follow learns of every change until ctx ends.
func (d *restDocs) follow(ctx context.Context) {
	for ctx.Err() == nil {
		d.watch(ctx)
		_ = sleep.For(ctx, time.Second) // its end is the loop's
	}
}

// watch learns of changes until the store is lost.
func (d *restDocs) watch(ctx context.Context) {
	there, begun := map[string]bool{}, false
	for c, err := range d.docs.Watch(ctx, driver.Space{Name: restSpace}) {
		switch {
		case err != nil:
			d.once.Do(func() { close(d.synced) }) // boards are rather opened than kept waiting
			return                                // it is looked at again
		case c.Synced:
			if begun = true; len(there) < d.count() {
				d.forget(there)
			}
			d.once.Do(func() { close(d.synced) })
		default:
			if !begun {
				there[c.Document.Name] = !c.Deleted
			}
			d.learn(c)
		}
	}
}

func (d *restDocs) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known)
}

// forget drops what a watch that began did not tell of.
func (d *restDocs) forget(there map[string]bool) {
	d.mu.Lock()
	var gone []string
	for key := range d.known {
		if !there[key] {
			delete(d.known, key)
			gone = append(gone, key)
		}
	}
	d.mu.Unlock()
	for _, key := range gone {
		d.roused(key)
	}
}

func (d *restDocs) learn(c driver.DocumentChange) {
	key := c.Document.Name
	var doc restDoc
	bad := !c.Deleted && json.Unmarshal(c.Document.Data, &doc) != nil // it is opened, and the document deleted
	r := &doc.rested
	if d.waker != nil && !doc.Heard.IsZero() {
		r.Due = doc.Heard
	}
	d.mu.Lock()
	if c.Deleted {
		delete(d.known, key)
	} else {
		d.known[key] = r
	}
	d.mu.Unlock()
	if c.Deleted || bad {
		d.roused(key)
	} else {
		d.laid(key)
	}
}

// knows reports whether a board is known to rest.
func (d *restDocs) knows(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key] != nil
}

// of returns how a board rests; nil: it does not. It waits a while until that is known.
func (d *restDocs) of(ctx context.Context, key string) *rested {
	late := time.NewTimer(openingTime)
	defer late.Stop()
	select {
	case <-d.synced:
	case <-ctx.Done():
		return nil
	case <-late.C:
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

// restDoc is what is written of a resting board. What its host remembered of the store goes
// along, for whichever host opens the board next: a store that was started again meanwhile can't
// say whether it has lost something to a host that remembers nothing.
type restDoc struct {
	rested
	Seen    driver.Position `json:"seen,omitempty"`
	Witness []byte          `json:"witness,omitempty"`

	// Heard is Due of a board that is opened when a posting is left for it. Due is zero then: a
	// host that does not hear of postings, such as one of before, opens the board at once.
	Heard time.Time `json:"heard,omitzero"`
}

// put says that a board rests.
func (d *restDocs) put(ctx context.Context, key string, r rested) error {
	known := d.store.Known(key)
	doc := restDoc{rested: r, Seen: known.Position, Witness: known.Witness}
	if d.waker != nil {
		doc.Heard, doc.Due = r.Due, time.Time{}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if _, err := d.docs.Put(ctx, driver.Space{Name: restSpace}, driver.Document{Name: key, Data: data}, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[key] = &r
	return nil
}

// rouse says that a board is open: nothing is left that says otherwise when it returns nil.
func (d *restDocs) rouse(ctx context.Context, key string) error {
	at := driver.Space{Name: restSpace}
	for {
		doc, err := d.docs.Get(ctx, at, key)
		if err == nil {
			var as restDoc
			_ = json.Unmarshal(doc.Data, &as) // else nothing is known
			d.store.Learn(key, acknowledged.Board{Position: as.Seen, Witness: as.Witness})
			err = d.docs.Delete(ctx, at, key, doc.Version)
		}
		switch job.KindOf(err) {
		case job.NoKind, job.NotFound:
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.known, key)
			return nil
		case job.Aborted: // another host did something about it
		default:
			return err
		}
	}
}
