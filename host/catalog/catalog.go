// Package catalog keeps what was made through the API: tenants, tokens, boards,
// policies. It lies in a driver's documents, so that every host of one store
// sees a change as soon as the store tells of it, and no change is lost to
// another one made at the same time.
//
// The catalog is a store with types. Who may change what, and how it goes
// together with what the configuration declares, is decided above it.
//
// Locks. Presence.mu is held while the store is asked, so that one writes at a time what
// this host says of itself; whoever waits for it waits as long, whatever becomes of their
// context. Memory.mu is held while the file of the memory is written, synced or written
// anew. Catalog.mu and rounds.mu are held while memory is read or written. No two of them
// are held together. A turn of Presence's rounds comes before Presence.mu. Options.Changed
// is called with no lock of this package held.
package catalog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The spaces of the backend's documents in which the catalog lies. The modules
// of policies have one of their own, since nobody wants to watch megabytes.
const (
	space       = "catalog"
	moduleSpace = "catalog-modules"
)

// Timing. The catalog asks the store whether it is there every probeEvery, which
// a silent watch does not tell; after MaxSilence without an answer, what the
// catalog says of tokens is too old to let anybody in.
const (
	probeEvery  = 5 * time.Second
	probeWithin = 5 * time.Second
	MaxSilence  = 60 * time.Second
	settleTime  = 2 * time.Second // how long a change waits to be seen by its own host
)

// Options are for New. The zero value of each is its default.
type Options struct {
	Logger *slog.Logger // nil: slog.Default()
	Memory *Memory      // nil: nothing is remembered beyond this Catalog

	// Changed is called for each new View, one call at a time, before a change
	// that was made through this Catalog returns. It must not change the catalog. The
	// names (see SplitKey) are those of the records that are not as they were; nil: any
	// may not be.
	Changed func(names []string)
}

// Catalog follows one space of documents. Its methods may be called from many
// goroutines at once.
type Catalog struct {
	docs    driver.Documents
	logger  *slog.Logger
	changed func(names []string)
	memory  *Memory
	found   map[string]driver.Document // what the store has; only follow uses it
	awaited map[string]uint64          // see lacking; only follow uses it
	doubt   atomic.Pointer[Doubt]      // nil: the store has what is remembered

	fresh atomic.Bool
	view  atomic.Pointer[View]
	told  atomic.Pointer[View] // the last one of which Changed has heard
	heard atomic.Int64         // when the store last answered, as time since begun in nanoseconds
	begun time.Time

	mu      sync.Mutex
	news    chan struct{}       // closed at the next change of the view
	revoked map[string]struct{} // IDs of tokens that were seen to be taken away; they never come back
	order   []string            // of revoked, oldest first
	synced  chan struct{}       // closed when there is a first view; read without mu
	once    sync.Once           // of closing synced
}

// New returns a catalog that Run fills.
func New(docs driver.Documents, o Options) *Catalog {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Changed == nil {
		o.Changed = func([]string) {}
	}
	if o.Memory == nil {
		o.Memory, _ = OpenMemory("", true, o.Logger) // without a folder nothing can fail
	}
	c := &Catalog{
		docs: docs, logger: o.Logger, changed: o.Changed, memory: o.Memory, begun: time.Now(),
		news: make(chan struct{}), revoked: map[string]struct{}{}, synced: make(chan struct{}),
	}
	c.heard.Store(-1)
	c.view.Store(newView())
	c.told.Store(c.View())
	return c
}

// View returns what the catalog held when the store last told. It is empty
// before Synced.
func (c *Catalog) View() *View { return c.view.Load() }

// Synced is closed once the catalog has been read for the first time.
func (c *Catalog) Synced() <-chan struct{} { return c.synced }

// Current returns nil if the store answered lately, and otherwise Unavailable:
// then nobody is to be let in by what View says.
func (c *Catalog) Current() error {
	switch age := c.Age(); {
	case age < 0:
		return job.Errorf(job.Unavailable, "the server has not read its catalog of tokens yet: try again in a moment")
	case age > MaxSilence:
		return job.Errorf(job.Unavailable, "the catalog's store has not answered for more than %s, so this token cannot be checked: try again later", MaxSilence)
	}
	return nil
}

// Age is how long ago the store last answered; less than 0: it has not yet.
func (c *Catalog) Age() time.Duration {
	heard := c.heard.Load()
	if heard < 0 {
		return -1
	}
	return max(0, time.Since(c.begun)-time.Duration(heard))
}

func (c *Catalog) answered() { c.heard.Store(int64(time.Since(c.begun))) }

// publish makes a view the present one. What changed is the names of the records in which it
// differs from the last one, or nil if any may.
func (c *Catalog) publish(v *View, changed ...string) {
	c.bury(c.view.Load(), v, changed)
	c.view.Store(v)
	c.changed(changed)
	c.told.Store(v)
	c.mu.Lock()
	close(c.news)
	c.news = make(chan struct{})
	c.mu.Unlock()
	c.once.Do(func() { close(c.synced) })
}

// maxRevoked is how many revoked tokens are remembered by their IDs.
const maxRevoked = 100_000

// bury remembers the tokens that were removed between two views, and takes out of the new
// view those that were removed earlier: a store that fell back to an older state must not
// make them valid again.
func (c *Catalog) bury(old, v *View, changed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil {
		for at := range old.Tokens.All() {
			c.buryToken(old, v, at)
		}
		if len(c.revoked) > 0 {
			for at := range v.Tokens.clone().All() { // tokens are taken out of the other one
				c.buryToken(old, v, at)
			}
		}
	}
	for _, key := range changed {
		if kind, owner, name := SplitKey(key); kind == "token" {
			c.buryToken(old, v, At{owner, name})
		}
	}
	for len(c.order) > maxRevoked {
		delete(c.revoked, c.order[0])
		c.order = c.order[1:]
	}
}

// buryToken does so for one token. c.mu is held.
func (c *Catalog) buryToken(old, v *View, at At) {
	was, before := old.Tokens.Get(at)
	is, now := v.Tokens.Get(at)
	if before && (!now || is.ID != was.ID) {
		if _, known := c.revoked[was.ID]; !known {
			c.revoked[was.ID] = struct{}{}
			c.order = append(c.order, was.ID)
		}
	}
	if _, dead := c.revoked[is.ID]; now && dead {
		c.logger.Warn("the catalog brought back a token that was revoked; it stays revoked", "tenant", is.Tenant, "token", is.Name)
		v.Tokens.drop(at)
	}
}

// awaitView waits until the view shows that a change was made, at most settleTime, and reports
// whether it does. The change stands in any case.
func (c *Catalog) awaitView(ctx context.Context, done func(*View) bool) bool {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if done(c.told.Load()) {
			return true
		}
		select {
		case <-news:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
