package store

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// An answer is what a claim gave, kept under its request. The transaction of the
// first claim makes it; further claims of the op are added before it is
// acknowledged.
//
// Several tries of one request may be at work at the same time, by hosts that know
// nothing of each other. So each claim after the first checks the version of the
// answer's node, and whoever gives the answer again marks the node as given first. From
// then on nothing can be claimed in its name, and all tries tell the same.
type answer struct {
	request [16]byte
	there   bool
	version int32 // of the node, if it is there
	given   bool  // it was given again: nothing is added
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
	at      int64

	position uint64 // as it is shown
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
		w.uint(g.position)
		w.int(g.at)
	}
	list := a.planned
	if a.given { // as a plan for no job, which programs that know no mark look for in vain
		list = append(slices.Clip(list), planned{})
	}
	if len(list) > 0 {
		w.uint(uint64(len(list)))
		for _, p := range list {
			w.raw(p.id[:])
			w.raw(p.nonce[:])
		}
	}
	return w.out
}

// decodeAnswer reads what encode wrote, with the number and the time of the
// transaction that wrote it. offset is the board's: no claim that it has granted outlasts a
// change of that.
func decodeAnswer(data []byte, zxid, offset uint64, at int64) (answer, error) {
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
		g.token, g.lease, g.version, g.position, g.at = d.token(), time.Duration(d.int()), d.uint(), d.uint(), d.int()
		if g.position == 0 {
			g.position, g.version, g.token.Epoch, g.at = zxid+offset, zxid, zxid+offset, at
		}
		a.grants = append(a.grants, g)
	}
	if len(d.in) > 0 {
		for range d.count() {
			var p planned
			d.raw(p.id[:])
			d.raw(p.nonce[:])
			if p == (planned{}) {
				a.given = true
				continue
			}
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
		Job: g.id, Token: g.token, Lease: g.lease, Version: g.version, Position: driver.Position(g.position), At: atMillis(g.at),
	}
}

// load reads the answer, if there is one that is not too old.
func (a *answer) load(ctx context.Context, b *board) error {
	*a = answer{request: a.request}
	node, err := b.client().Get(ctx, b.at.answer(a.request))
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	kept, err := decodeAnswer(node.Data, uint64(node.Stat.Mzxid), b.now().offset, node.Stat.Mtime)
	if err != nil {
		return job.Errorf(job.Corrupt, "%s cannot be read: %v", b.at.answer(a.request), err)
	}
	if at := b.now(); at.millis()-kept.at >= at.window.Milliseconds() {
		return b.forgetAnswer(ctx, a.request)
	}
	kept.request, kept.there, kept.version = a.request, true, node.Stat.Version
	*a = kept
	return nil
}

// give reads the answer to give it again, after which nothing can be added to it. Only
// what was claimed before the mark can be there after it, so that is looked for last.
func (a *answer) give(ctx context.Context, b *board) error {
	for {
		if err := a.load(ctx, b); err != nil || !a.there {
			return err
		}
		if a.given {
			return a.carriedOut(ctx, b)
		}
		a.given = true
		if _, err := a.set(ctx, b); err != nil {
			return err
		}
	}
}

// set writes the answer, if its node is as it was read. Where it is not, and where
// ZooKeeper's answer was lost, it is not done: the caller reads how the node is now.
func (a *answer) set(ctx context.Context, b *board) (done bool, err error) {
	m := b.client().Multi(nil)
	m.Set(b.at.answer(a.request), a.encode(), a.version)
	_, err = m.Do(ctx)
	switch {
	case err == nil:
		a.version++
		return true, nil
	case session.Conflict(err), session.Lost(err) && ctx.Err() == nil && b.client().Ready(ctx) == nil:
		return false, nil
	}
	return false, err
}

// carriedOut adds the claims that were planned, made and not added.
func (a *answer) carriedOut(ctx context.Context, b *board) error {
	found := make([]*grant, len(a.planned))
	var work []func(context.Context) error
	for i, p := range a.planned {
		work = append(work, func(ctx context.Context) error {
			v, err := b.steady(ctx, p.id, recorded)
			if err != nil {
				return err
			}
			if c := v.claim(); c != nil && c.token.Nonce == p.nonce {
				at := b.now()
				found[i] = &grant{p.id, c.token, max(v.left(at), 0), v.version(), v.rec.changedAt, uint64(at.shown(v.rec.position))}
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

// prepare reads the answer that an op adds to, if there is one, and writes down what it
// plans to claim. If the answer was given again it changes nothing.
func (a *answer) prepare(ctx context.Context, b *board, list []driver.Candidate) error {
	for {
		if err := a.load(ctx, b); err != nil || !a.there || a.given {
			return err
		}
		before := a.planned
		if err := a.carriedOut(ctx, b); err != nil {
			return err
		}
		a.plan(list)
		if slices.Equal(a.planned, before) { // an earlier try has written it
			return nil
		}
		if done, err := a.set(ctx, b); done || err != nil {
			return err
		}
	}
}

// first makes the first claim the answer.
func (a *answer) first(candidate *driver.Candidate, c *claim) {
	a.grants = []grant{{id: candidate.Job, token: c.token, lease: c.lease}}
}

// build adds to the transaction of a claim what belongs to the answer: of the first one
// that it is made, of the others that nobody has given it again.
func (a *answer) build(m *session.Multi, at layout) {
	if a.there {
		m.Check(at.answer(a.request), a.version)
		return
	}
	m.Create(at.answer(a.request), a.encode(), session.Persistent)
}

// add adds claims, and reports whether one was not in the answer.
func (a *answer) add(claims []driver.Claimed) (added bool) {
	for _, c := range claims {
		g := grant{c.Job, c.Token, c.Lease, c.Version, millis(c.At), uint64(c.Position)}
		if i := slices.IndexFunc(a.grants, func(g grant) bool { return g.token.Nonce == c.Token.Nonce }); i >= 0 {
			a.grants[i] = g
			continue
		}
		a.grants, added = append(a.grants, g), true
	}
	if added {
		a.planned = nil
	}
	if a.at == 0 {
		a.at = millis(claims[0].At)
	}
	return added
}

// complete adds claims that are not in the answer yet. If the answer was given again
// meanwhile it has all that were made, and stays.
func (a *answer) complete(ctx context.Context, b *board, claims []driver.Claimed) error {
	b.mu.Lock()
	acl := b.acl
	b.past.answered(a.request, b.instant().millis())
	b.mu.Unlock()
	for a.add(claims) || !a.there {
		failpoint.Hit("zookeeper/answer/before-multi")
		if !a.there {
			m := b.client().Multi(acl)
			m.Create(b.at.answer(a.request), a.encode(), session.Persistent)
			return b.surely(ctx, m)
		}
		if done, err := a.set(ctx, b); done || err != nil {
			return err
		}
		if err := a.load(ctx, b); err != nil || a.given {
			return err
		}
	}
	return nil
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

// listAnswers finds the answers that other hosts have given and perhaps left. When they
// were given is not looked at: they are forgotten a window from now.
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
		if n, err := hex.Decode(request[:], []byte(name[:min(len(name), 32)])); err == nil && n == len(request) && b.past.answers[request] == 0 {
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
