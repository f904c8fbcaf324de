package store

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// An answer is what a claim gave, kept under its request. The transaction of the
// first claim makes it; further claims of the op are added before it is
// acknowledged.
type answer struct {
	request [16]byte
	there   bool
	at      int64 // when it was first given
	grants  []grant

	// What the op goes on to claim is written down before it does, by the nonces
	// that the claims will have: so a retry finds them also if nobody came to add
	// them to grants.
	planned []planned
}

type planned struct {
	id    job.ID
	nonce [16]byte
}

// plan notes what may be claimed yet.
func (a *answer) plan(list []driver.Candidate) {
	a.planned = nil
	for i := range list {
		a.planned = append(a.planned, planned{list[i].Job, list[i].Nonce})
	}
}

// A grant is one claim of an answer. What is 0 is that of the node's own write.
type grant struct {
	id      job.ID
	token   job.Token
	lease   time.Duration
	version uint64
	zxid    uint64
	at      int64
}

const answerFormat = 1

func (a *answer) encode() []byte {
	w := writer{append(make([]byte, 0, 16+64*len(a.grants)), answerFormat)}
	w.int(a.at)
	w.uint(uint64(len(a.grants)))
	for _, g := range a.grants {
		w.raw(g.id[:])
		w.token(g.token)
		w.int(int64(g.lease))
		w.uint(g.version)
		w.uint(g.zxid)
		w.int(g.at)
	}
	if len(a.planned) > 0 {
		w.uint(uint64(len(a.planned)))
		for _, p := range a.planned {
			w.raw(p.id[:])
			w.raw(p.nonce[:])
		}
	}
	return w.out
}

// decodeAnswer reads what encode wrote, with the number and the time of the
// transaction that wrote it.
func decodeAnswer(data []byte, zxid uint64, at int64) (answer, error) {
	var a answer
	if len(data) == 0 || data[0] != answerFormat {
		return a, errShort
	}
	d := reader{in: data[1:]}
	if a.at = d.int(); a.at == 0 {
		a.at = at
	}
	for range d.count() {
		var g grant
		d.raw(g.id[:])
		g.token, g.lease, g.version, g.zxid, g.at = d.token(), time.Duration(d.int()), d.uint(), d.uint(), d.int()
		if g.zxid == 0 {
			g.zxid, g.version, g.token.Epoch, g.at = zxid, zxid, zxid, at
		}
		a.grants = append(a.grants, g)
	}
	if len(d.in) > 0 {
		for range d.count() {
			var p planned
			d.raw(p.id[:])
			d.raw(p.nonce[:])
			a.planned = append(a.planned, p)
		}
	}
	if d.err == nil && len(d.in) > 0 {
		d.err = errShort
	}
	return a, d.err
}

func (g *grant) claimed() driver.Claimed {
	return driver.Claimed{
		Job: g.id, Token: g.token, Lease: g.lease, Version: g.version, Position: driver.Position(g.zxid), At: atMillis(g.at),
	}
}

// load reads the answer, if there is one that is not too old.
func (a *answer) load(ctx context.Context, b *board) error {
	node, err := b.client().Get(ctx, b.at.answer(a.request))
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	kept, err := decodeAnswer(node.Data, uint64(node.Stat.Mzxid), node.Stat.Mtime)
	if err != nil {
		return job.Errorf(job.Corrupt, "%s cannot be read: %v", b.at.answer(a.request), err)
	}
	if at := b.now(); at.millis()-kept.at >= at.window.Milliseconds() {
		return b.forgetAnswer(ctx, a.request)
	}
	a.there, a.at, a.grants = true, kept.at, kept.grants
	return a.carriedOut(ctx, b, kept.planned)
}

// carriedOut adds the claims that were planned, made and not added.
func (a *answer) carriedOut(ctx context.Context, b *board, list []planned) error {
	found := make([]*grant, len(list))
	var work []func(context.Context) error
	for i, p := range list {
		work = append(work, func(ctx context.Context) error {
			v, err := b.steady(ctx, p.id, recorded)
			if err != nil {
				return err
			}
			if c := v.claim(); c != nil && c.token.Nonce == p.nonce {
				found[i] = &grant{p.id, c.token, max(v.left(b.now()), 0), v.version(), v.rec.position, v.rec.changedAt}
			}
			return nil
		})
	}
	if err := together(ctx, work); err != nil {
		return err
	}
	for _, g := range found {
		if g != nil && !a.has(g.token.Nonce) {
			a.grants = append(a.grants, *g)
		}
	}
	return nil
}

func (a *answer) has(nonce [16]byte) bool {
	return slices.ContainsFunc(a.grants, func(g grant) bool { return g.token.Nonce == nonce })
}

// prepare writes down what an op plans that adds to an answer.
func (a *answer) prepare(ctx context.Context, b *board) error {
	m := b.client().Multi(nil)
	m.Set(b.at.answer(a.request), a.encode(), -1)
	return b.surely(ctx, m)
}

// first makes the first claim the answer.
func (a *answer) first(candidate *driver.Candidate, c *claim) {
	a.grants = []grant{{id: candidate.Job, token: c.token, lease: c.lease}}
}

// build adds the making of the answer to the transaction of its first claim.
func (a *answer) build(m *session.Multi, at layout) {
	m.Create(at.answer(a.request), a.encode(), session.Persistent)
}

// complete adds claims that are not in the answer yet.
func (a *answer) complete(ctx context.Context, b *board, claims []driver.Claimed) error {
	b.mu.Lock()
	acl := b.acl
	b.past.answered(a.request, b.instant().millis())
	b.mu.Unlock()
	grants := a.grants
	for _, c := range claims {
		known := false
		for i := range grants {
			if grants[i].token.Nonce == c.Token.Nonce {
				grants[i] = grant{c.Job, c.Token, c.Lease, c.Version, uint64(c.Position), millis(c.At)}
				known = true
			}
		}
		if !known {
			grants = append(grants, grant{c.Job, c.Token, c.Lease, c.Version, uint64(c.Position), millis(c.At)})
		}
	}
	if a.there && len(grants) == len(a.grants) {
		return nil
	}
	a.grants, a.planned = grants, nil
	if a.at == 0 {
		a.at = millis(claims[0].At)
	}
	m := b.client().Multi(acl)
	if a.there {
		m.Set(b.at.answer(a.request), a.encode(), -1)
	} else {
		m.Create(b.at.answer(a.request), a.encode(), session.Persistent)
	}
	return b.surely(ctx, m)
}

// surely makes a change that may be made twice, until somebody says that it was. What it
// creates is there by an earlier try if it is there.
func (b *board) surely(ctx context.Context, m *session.Multi) error {
	for lost := false; ; lost = true {
		_, err := m.Do(ctx)
		switch {
		case lost && errors.Is(err, session.ErrNodeExists):
			return nil
		case err == nil || ctx.Err() != nil || !session.Lost(err):
			return err
		}
		if b.client().Ready(ctx) != nil {
			return err
		}
	}
}

// oldAnswers returns those to forget. b.mu is held.
func (b *board) oldAnswers(at instant) [][16]byte {
	p := &b.past
	for len(p.given) > 0 && p.answers[p.given[0].request] != p.given[0].at {
		p.given = p.given[1:] // it is forgotten, or was given again
	}
	var list [][16]byte
	for _, g := range p.given {
		many := int64(len(p.answers)-len(list)) > b.spec.MaxTombstones
		if !many && at.millis()-g.at < at.window.Milliseconds() {
			break
		}
		if p.answers[g.request] == g.at {
			list = append(list, g.request)
		}
	}
	return list
}

// listAnswers finds the answers that earlier hosts have left. When they were
// given is not looked at: they are forgotten a window from now.
func (b *board) listAnswers(ctx context.Context) error {
	folder, err := b.client().List(ctx, b.at.answers())
	if err != nil && !session.NoNode(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.instant().millis()
	for _, name := range folder.Names {
		var request [16]byte
		if n, err := hex.Decode(request[:], []byte(name[:min(len(name), 32)])); err == nil && n == len(request) {
			b.past.answered(request, now)
		}
	}
	return nil
}

func (b *board) forgetAnswer(ctx context.Context, request [16]byte) error {
	m := b.client().Multi(nil)
	m.Delete(b.at.answer(request), -1)
	if _, err := m.Do(ctx); err != nil && !session.NoNode(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.past.answers, request)
	return nil
}
