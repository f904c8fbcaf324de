package host

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A board on which nothing is to be done rests: it is closed on every host, and a document
// in its store says so and when it is to be opened all the same. The document is there only
// while no host has the board open: whoever opens it deletes the document first. So a board
// that was open on a host which died is opened by the next one, whoever calls.

// restSpace is where the documents are, under the boards' keys.
const restSpace = "rest"

// restLook is the time between two looks at all boards, at least.
const restLook = 10 * time.Millisecond

// restGrace is how long calls that have found an open board may take to end before it rests.
const restGrace = 250 * time.Millisecond

// rested is how a resting board stands.
type rested struct {
	Due      time.Time `json:"due"`
	Trashed  int64     `json:"trashed,omitempty"`
	Complete int64     `json:"complete,omitempty"`
	Declared string    `json:"declared,omitempty"` // a digest of the schedules of the configuration that the store has

	Generation uint64            `json:"generation,omitempty"`
	Window     time.Duration     `json:"window,omitempty"` // in nanoseconds
	Durability driver.Durability `json:"durability"`
}

// restedAs is how a board rests that is open now.
func restedAs(r board.Rest, status board.Status, schedules []board.Schedule) rested {
	return rested{
		Due: r.Due, Trashed: r.Trashed, Complete: r.Complete, Declared: declaredBy(schedules),
		Generation: status.Generation, Window: status.Window, Durability: status.Durability,
	}
}

// counts are those of a board without open jobs.
func (r *rested) counts() *board.Counts {
	return &board.Counts{Trashed: r.Trashed, Complete: r.Complete}
}

// declaredBy names what a configuration declares of a board's schedules.
func declaredBy(schedules []board.Schedule) string {
	if len(schedules) == 0 {
		return ""
	}
	return digestOf(schedules)
}

// restDocs is which boards of one store rest.
type restDocs struct {
	docs   driver.Documents
	synced chan struct{} // closed when all are known
	once   sync.Once
	roused func(key string) // is called when a host has opened a board

	mu    sync.Mutex
	known map[string]*rested
}

// rests returns which boards rest on the backend's store, and follows that from the first
// call on.
func (b *backend) rests(h *Host) *restDocs {
	b.line.Lock()
	defer b.line.Unlock()
	if b.resting == nil {
		ctx, cancel := context.WithCancel(h.running)
		context.AfterFunc(b.ending, cancel)
		d := &restDocs{docs: b.running.Load().driver.Documents(), synced: make(chan struct{}), known: map[string]*rested{}}
		d.roused = func(key string) {
			if s := h.registry.keyed(b, key); s != nil && s.resting.Load() != nil {
				s.call()
			}
		}
		b.wg.Go(func() { d.follow(ctx) })
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
	r := &rested{}
	bad := !c.Deleted && json.Unmarshal(c.Document.Data, r) != nil // it is opened, and the document deleted
	d.mu.Lock()
	if c.Deleted {
		delete(d.known, key)
	} else {
		d.known[key] = r
	}
	d.mu.Unlock()
	if c.Deleted || bad {
		d.roused(key)
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
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-d.synced:
	case <-ctx.Done():
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

// put says that a board rests.
func (d *restDocs) put(ctx context.Context, key string, r rested) error {
	data, err := json.Marshal(r)
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

// keyed returns the board of a key, if it lies on the backend; else nil.
func (s *registry) keyed(on *backend, key string) *Hosted {
	tenant, name, _ := strings.Cut(key, "/")
	if b := s.board(tenant, name); b != nil && b.backend == on {
		return b
	}
	return nil
}

// call has the board opened, if it rests.
func (s *Hosted) call() { s.calling.Do(func() { close(s.called) }) }

// rest waits until the board is to be opened: at once, unless it rests. A board whose
// settings have changed since then does not: its store is to learn of that.
func (s *Hosted) rest(ctx context.Context, h *Host) {
	if s.before != nil {
		select {
		case <-s.before:
		case <-ctx.Done():
			return
		}
	}
	if s.config.Observe {
		return
	}
	r := s.backend.rests(h).of(ctx, s.key())
	if r == nil || len(s.hooks.Load().tells) > 0 || r.Declared != declaredBy(*s.schedules.Load()) {
		return
	}
	s.resting.Store(r)
	due := time.NewTimer(time.Until(r.Due))
	defer due.Stop()
	select {
	case <-s.called:
	case <-due.C:
	case <-ctx.Done():
	}
}

// rouse says that the board is open, if it is said to rest.
func (s *Hosted) rouse(ctx context.Context, h *Host) error {
	if s.config.Observe {
		return nil
	}
	d := s.backend.rests(h)
	if d.of(ctx, s.key()) == nil {
		return nil
	}
	return d.rouse(ctx, s.key())
}

// restForever closes boards on which nothing is to be done, until ctx ends.
func (h *Host) restForever(ctx context.Context) {
	for {
		after := h.Settings().RestAfter
		if after == 0 {
			after = config.DefaultRestAfter
		}
		if sleep.For(ctx, min(max(after/10, restLook), 10*time.Second)) != nil {
			return
		}
		for _, s := range h.registry.allBoards() {
			b := s.board.Load()
			if b == nil || s.config.Observe || s.running.Err() != nil || s.next.Load() != nil {
				continue
			}
			if r, ok := h.mayRest(ctx, s, b, after); ok {
				h.toRest(s, restedAs(r, b.Status(), *s.schedules.Load()))
			} else if s.backend.rests(h).knows(s.key()) { // another host closed it and took it for nobody's
				_ = s.rouse(ctx, h) // or the next time
			}
		}
	}
}

// mayRest reports whether an open board may rest that nobody has called for a time, and how.
func (h *Host) mayRest(ctx context.Context, s *Hosted, b *board.Board, after time.Duration) (board.Rest, bool) {
	last := time.Unix(0, max(s.used.Load(), s.since.Load()))
	if after < 0 || time.Since(last) < after || s.config.Record > 0 || len(s.hooks.Load().tells) > 0 {
		return board.Rest{}, false
	}
	if _, here := h.serverOf(s); !here {
		return board.Rest{}, false // it goes to its owner first
	}
	return b.MayRest(ctx)
}

// toRest puts a resting board in the place of an open one.
func (h *Host) toRest(s *Hosted, as rested) {
	var next *Hosted
	if !h.supersede(s, func(n *Hosted) {
		next, n.before = n, make(chan struct{})
		n.resting.Store(&as)
		n.ask()
	}) {
		return // its settings change just now
	}
	h.registry.leaving.Go(func() {
		h.lieDown(s, next)
		s.stop(&Ended{&moved{job.Errorf(job.Unavailable, "the board %s is opened anew: ask again", s.config.Name)}})
	})
}

// lieDown says in its store that a board rests, once the calls that had found it open have
// ended. If there is something to do by then, next is opened.
func (h *Host) lieDown(s, next *Hosted) {
	_ = sleep.For(s.running, restGrace) // its end is seen below
	ctx, cancel := context.WithTimeout(s.running, openingTime)
	defer cancel()
	if b := s.board.Load(); b != nil && next.idle() {
		if r, ok := b.MayRest(ctx); ok {
			err := s.backend.rests(h).put(ctx, s.key(), restedAs(r, b.Status(), *s.schedules.Load()))
			if err == nil || job.KindOf(err) == job.Aborted { // another host was first
				close(next.before)
				return
			}
		}
	}
	next.call()
	close(next.before)
	next.opened(s.running)
}

// idle reports whether nobody has called the board.
func (s *Hosted) idle() bool {
	select {
	case <-s.called:
		return false
	default:
		return true
	}
}
