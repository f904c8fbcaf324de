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

// hostSpace is where the hosts of a store register that they run.
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

// Serves reports whether the host says that it serves a board at its place.
func (h Host) Serves(use Use) bool {
	_, ok := h.Boards[LocationNamed(use.Location).key()]
	return ok
}

// Presence says in one store that this host lives, and knows who else does.
type Presence struct {
	docs   driver.Documents
	logger *slog.Logger

	mu     sync.Mutex // guards self, and is held while that is written to the store
	self   Host
	rounds *rounds[*word] // not guarded by mu
}

// word is what a host says of one board.
type word struct {
	key      string            // of the board's location
	settings map[string]string // nil: it is served no more

	others map[string]map[string]string // how the other hosts serve it that do
	err    error
}

// NewPresence returns a presence that Run keeps up.
func NewPresence(docs driver.Documents, self Host, logger *slog.Logger) *Presence {
	self.Since, self.Boards = now(), map[string]map[string]string{}
	p := &Presence{docs: docs, logger: logger, self: self}
	p.rounds = newRounds(p.round)
	return p
}

// Run keeps saying that the host lives, until ctx ends, and then that it is gone.
func (p *Presence) Run(ctx context.Context) {
	for {
		saying, cancel := context.WithTimeout(ctx, presentFor)
		err := p.say(saying, nil)
		if cancel(); err != nil && ctx.Err() == nil {
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

// Serve registers how this host serves the board at a location, and returns how the
// other hosts that serve it do. Calls for many boards at the same time are written and
// read together.
func (p *Presence) Serve(ctx context.Context, l Location, settings map[string]string) (map[string]map[string]string, error) {
	w := &word{key: l.key(), settings: settings}
	if err := p.rounds.join(ctx, w); err != nil {
		return nil, err
	}
	return w.others, w.err
}

// Leave says that this host serves the board at a location no more.
func (p *Presence) Leave(ctx context.Context, l Location) error {
	w := &word{key: l.key()}
	if err := p.rounds.join(ctx, w); err != nil {
		return err
	}
	return w.err
}

// round says several words at once. What others say is read after that: of two hosts
// that begin at the same moment, at least one sees the other.
func (p *Presence) round(ctx context.Context, words []*word) {
	serving := false
	err := p.say(ctx, func(h *Host) {
		for _, w := range words {
			if w.settings == nil {
				delete(h.Boards, w.key)
				continue
			}
			h.Boards[w.key], serving = w.settings, true
		}
	})
	var all []Host
	if err == nil && serving {
		all, err = p.Hosts(ctx)
	}
	for _, w := range words {
		w.err, w.others = err, map[string]map[string]string{}
		for _, h := range all {
			if theirs, ok := h.Boards[w.key]; ok && h.ID != p.self.ID {
				w.others[h.ID] = theirs
			}
		}
	}
}

// Hosts returns the hosts that live, by ID.
func (p *Presence) Hosts(ctx context.Context) ([]Host, error) { return Hosts(ctx, p.docs) }

// Hosts returns the hosts of a store that live, by ID.
func Hosts(ctx context.Context, in driver.Documents) ([]Host, error) {
	docs, err := in.List(ctx, driver.Space{Name: hostSpace}, "", 0)
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
