package store

import (
	"context"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
)

// A term says until when an entity stays. It lies beside TaskFlow's entities, which
// all boards below one folder have in common, and comes and goes with the entity's
// node in one transaction.
type term struct {
	there   bool
	version int32
	expires int64 // in Unix milliseconds
}

const (
	termFormat = 1
	termPause  = 5 * time.Second // between two looks for entities whose term is over
)

func (l layout) terms(kind string) string        { return l.Entities + "/.boardd/" + kind }
func (l layout) term(kind, entity string) string { return l.terms(kind) + "/" + entity }

func encodeTerm(expires time.Time) []byte {
	w := writer{[]byte{termFormat}}
	w.int(millis(expires))
	return w.out
}

// term reads the term of an entity. One that cannot be read is none.
func (b *board) term(ctx context.Context, kind, entity string) (term, error) {
	node, err := b.client().Get(ctx, b.at.term(kind, entity))
	if session.NoNode(err) {
		return term{}, nil
	}
	if err != nil {
		return term{}, err
	}
	t := term{there: true, version: node.Stat.Version}
	d := reader{in: node.Data}
	if d.byte() == termFormat {
		if at := d.int(); d.err == nil {
			t.expires = at
		}
	}
	return t, nil
}

// endTerms takes entities away whose time is over. One host of a board does it.
func (b *board) endTerms(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	idle := now.Before(b.past.terms) || b.spec.Observe || !b.hosts.first(b.name)
	if !idle {
		b.past.terms = now.Add(termPause)
	}
	b.mu.Unlock()
	if idle {
		return nil
	}
	const kind = "conductor" // TaskFlow has no other
	folder, err := b.client().List(ctx, b.at.terms(kind))
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	work := make([]func(context.Context) error, len(folder.Names))
	for i, name := range folder.Names {
		work[i] = func(ctx context.Context) error { return b.endTerm(ctx, kind, name) }
	}
	return together(ctx, work)
}

func (b *board) endTerm(ctx context.Context, kind, entity string) error {
	t, err := b.term(ctx, kind, entity)
	if err != nil || !t.there || t.expires == 0 || b.now().millis() < t.expires {
		return err
	}
	stat, err := b.client().Exists(ctx, b.at.Entity(kind, entity))
	if err != nil {
		return err
	}
	m := b.client().Multi(nil)
	m.Delete(b.at.term(kind, entity), t.version)
	if stat != nil && stat.EphemeralOwner == 0 {
		m.Delete(b.at.Entity(kind, entity), stat.Version)
	}
	if _, err := m.Do(ctx); err != nil && !session.Conflict(err) { // registered anew, or another host was faster
		return err
	}
	return nil
}
