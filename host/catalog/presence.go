package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// hostSpace is where the hosts of a store say that they live.
const hostSpace = "hosts"

// A host says every renewEvery that it lives, and counts as gone presentFor after
// its last word.
const (
	renewEvery = 15 * time.Second
	presentFor = 45 * time.Second
)

// Host is what a host says of itself.
type Host struct {
	ID      string                       `json:"id"`
	Version string                       `json:"version"`
	Since   time.Time                    `json:"since"`
	Boards  map[string]map[string]string `json:"boards,omitempty"` // how it serves boards, by their locations' keys
}

// Presence says in one store that this host lives, and knows who else does.
type Presence struct {
	docs   driver.Documents
	logger *slog.Logger

	mu   sync.Mutex // of a write, and of self
	self Host
}

// NewPresence returns a presence that Run keeps up.
func NewPresence(docs driver.Documents, self Host, logger *slog.Logger) *Presence {
	self.Since, self.Boards = now(), map[string]map[string]string{}
	return &Presence{docs: docs, logger: logger, self: self}
}

// Run keeps saying that the host lives, until ctx ends, and then that it is gone.
func (p *Presence) Run(ctx context.Context) {
	for {
		if err := p.say(ctx, nil); err != nil && ctx.Err() == nil {
			p.logger.Warn("other hosts cannot be told that this one lives", "error", err)
		}
		if sleep.For(ctx, renewEvery) != nil {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if doc, err := p.docs.Get(ctx, driver.Space{Name: hostSpace}, p.self.ID); err == nil {
		_ = p.docs.Delete(ctx, driver.Space{Name: hostSpace}, p.self.ID, doc.Version) // else it expires
	}
}

// say writes what the host says of itself, after a change.
func (p *Presence) say(ctx context.Context, change func(*Host)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if change != nil {
		change(&p.self)
	}
	data, err := json.Marshal(p.self)
	if err != nil {
		return err
	}
	for range tries {
		var doc driver.Document
		doc, err = p.docs.Get(ctx, driver.Space{Name: hostSpace}, p.self.ID)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		doc = driver.Document{Name: p.self.ID, Data: data, Version: doc.Version, Expires: time.Now().Add(presentFor)}
		if _, err = p.docs.Put(ctx, driver.Space{Name: hostSpace}, doc, doc.Version); job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

// Serve says how this host serves the board at a location, and returns how the
// other hosts do that serve it.
func (p *Presence) Serve(ctx context.Context, l Location, settings map[string]string) (map[string]map[string]string, error) {
	if err := p.say(ctx, func(h *Host) { h.Boards[l.key()] = settings }); err != nil {
		return nil, err
	}
	all, err := p.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	others := map[string]map[string]string{}
	for _, h := range all {
		if theirs, ok := h.Boards[l.key()]; ok && h.ID != p.self.ID {
			others[h.ID] = theirs
		}
	}
	return others, nil
}

// Leave says that this host serves the board at a location no more.
func (p *Presence) Leave(ctx context.Context, l Location) error {
	return p.say(ctx, func(h *Host) { delete(h.Boards, l.key()) })
}

// Hosts returns the hosts that live, by ID.
func (p *Presence) Hosts(ctx context.Context) ([]Host, error) {
	docs, err := p.docs.List(ctx, driver.Space{Name: hostSpace}, "", 0)
	if err != nil {
		return nil, err
	}
	hosts := map[string]Host{}
	for _, doc := range docs {
		var h Host
		if json.Unmarshal(doc.Data, &h) == nil && h.ID == doc.Name {
			hosts[h.ID] = h
		}
	}
	return slices.SortedFunc(maps.Values(hosts), func(a, b Host) int { return cmp.Compare(a.ID, b.ID) }), nil
}
