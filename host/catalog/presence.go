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
	Names   map[string][]string          `json:"names,omitempty"`  // which boards these are; more than one while their place is at issue
}

// Serves reports whether the host says that it serves a board at its place. One that
// tries to serve another board there does not.
func (h Host) Serves(use Use) bool {
	key := LocationNamed(use.Location).key()
	_, ok := h.Boards[key]
	return ok && h.names(key, use.name())
}

// names reports whether what the host says of a place is of a board. A host before
// names were said may mean any.
func (h Host) names(key, board string) bool {
	return len(h.Names[key]) == 0 || slices.Contains(h.Names[key], board)
}

// Presence says in one store that this host lives, and knows who else does.
type Presence struct {
	docs   driver.Documents
	logger *slog.Logger

	mu     sync.Mutex // guards self and said, and is held while they are written to the store
	self   Host
	said   map[string][]*word // of the boards that are served, by their locations' keys, the first one first
	rounds *rounds[*word]     // not guarded by mu
}

// word is what a host says of one board.
type word struct {
	key      string            // of the board's location
	board    string            // with its tenant
	settings map[string]string // nil: it is served no more

	others map[string]map[string]string // how the other hosts serve it that do
	err    error
}

// NewPresence returns a presence that Run keeps up.
func NewPresence(docs driver.Documents, self Host, logger *slog.Logger) *Presence {
	self.Since, self.Boards, self.Names = now(), map[string]map[string]string{}, map[string][]string{}
	p := &Presence{docs: docs, logger: logger, self: self, said: map[string][]*word{}}
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

// say writes what the host says of itself, with more words.
func (p *Presence) say(ctx context.Context, words []*word) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range words {
		p.add(w)
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

// add puts a word in the place of what was said of the same board. It is called with mu
// held.
func (p *Presence) add(w *word) {
	list := p.said[w.key]
	switch n := slices.IndexFunc(list, func(o *word) bool { return o.board == w.board }); {
	case n >= 0 && w.settings == nil:
		list = slices.Delete(list, n, n+1)
	case n >= 0:
		list[n] = w
	case w.settings != nil:
		list = append(list, w)
	}
	if len(list) == 0 {
		delete(p.said, w.key)
		delete(p.self.Boards, w.key)
		delete(p.self.Names, w.key)
		return
	}
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.board
	}
	p.said[w.key], p.self.Boards[w.key], p.self.Names[w.key] = list, list[0].settings, names
}

// Serve registers how this host serves the board at a location, and returns how the
// other hosts that serve it do. Calls for many boards at the same time are written and
// read together.
func (p *Presence) Serve(ctx context.Context, l Location, use Use) (map[string]map[string]string, error) {
	w := &word{key: l.key(), board: use.name(), settings: use.Settings}
	if err := p.rounds.join(ctx, w); err != nil {
		return nil, err
	}
	return w.others, w.err
}

// Leave says that this host serves the board at a location no more.
func (p *Presence) Leave(ctx context.Context, l Location, use Use) error {
	w := &word{key: l.key(), board: use.name()}
	if err := p.rounds.join(ctx, w); err != nil {
		return err
	}
	return w.err
}

// round says several words at once. What others say is read after that: of two hosts
// that begin at the same moment, at least one sees the other.
func (p *Presence) round(ctx context.Context, words []*word) {
	err := p.say(ctx, words)
	var all []Host
	if err == nil && slices.ContainsFunc(words, func(w *word) bool { return w.settings != nil }) {
		all, err = p.Hosts(ctx)
	}
	for _, w := range words {
		w.err, w.others = err, map[string]map[string]string{}
		for _, h := range all {
			if theirs, ok := h.Boards[w.key]; ok && h.ID != p.self.ID && h.names(w.key, w.board) {
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
