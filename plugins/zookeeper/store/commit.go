package store

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// A change is what one transaction is to make of a job.
type change struct {
	op  *driver.Op // that asks for it; nil: it is boardd's own
	rec *record    // after it

	lock  lockPlan
	owner string // of the lock that is put
	short bool   // the lock ends with the session

	takeNode bool             // the posting goes
	newNode  []byte           // a posting that comes
	reserved *reservation     // of its number, if it comes with a lock
	post     taskflow.Posting // the same, without details
	putTrash []byte           // what lies in the trash from now on, at rec.trash
	outTrash string           // the node in the trash that goes

	attach []driver.Attachment // to write or to take away
	drop   []string            // attached records that go

	answer *answer // to keep with a claim

	within  []driver.Limit // that the counters may not be above
	group   string         // of a job that is posted: what counts it
	emptied string         // the group that a post has waited for
	keys    []driver.Key   // that the job takes
	rates   []driver.Rate  // in which it counts

	event   job.EventType
	reason  string
	who     string
	quiet   bool // other hosts are not told: the log has no line
	silent  bool // nor are this host's watchers
	changed bool // it is a change of the job: its version is this transaction's
}

// A lockPlan is what becomes of the lock.
type lockPlan uint8

const (
	leaveLock lockPlan = iota
	putLock            // there is one of boardd's
	takeLock           // there is none
)

// A written is what a transaction gave.
type written struct {
	zxid     uint64
	at       int64
	series   uint32 // of the log,
	number   int32  // and the number of the line in it
	name     string
	children int32 // nodes that came to TaskFlow's folder, and that went
	offset   uint64
}

// commit makes a change if v is still how the job stands. What it returns is the
// job afterwards, which everybody has been told of.
func (b *board) commit(ctx context.Context, v *view, ch *change) (*view, written, error) {
	b.mu.Lock()
	root, acl := b.root, b.acl
	b.mu.Unlock()
	if err := ch.fits(&root); err != nil {
		return nil, written{}, err
	}
	if ch.changed {
		ch.rec.changed()
	}
	switch {
	case ch.newNode != nil:
		ch.rec.node, ch.rec.placed = "", 0
	case v.node != "":
		ch.rec.node, ch.rec.placed = v.node, v.czxid
	}
	if ch.newNode != nil && ch.lock == putLock {
		var err error
		if ch.reserved, err = b.reserve(ctx, acl); err != nil {
			return nil, written{}, err
		}
	}
	if ch.quiet {
		defer b.silence.begin(b)()
	}
	var next *view
	var w written
	do := func(add func(*session.Multi)) (err error) {
		next, w, err = b.transact(ctx, v, ch, root, acl, add)
		return err
	}
	err := b.takeKeys(ctx, v.id, ch.keys, func(keys func(*session.Multi)) error {
		return b.pace(ctx, ch.rates, func(rates func(*session.Multi)) error {
			return b.gather(ctx, ch, v.rec, func(groups func(*session.Multi)) error {
				moves := ch.moves(v.rec)
				if len(moves) == 0 {
					return do(func(m *session.Multi) { keys(m); rates(m); groups(m) })
				}
				return b.count(ctx, ch, moves, func(add func(*session.Multi)) error {
					return do(func(m *session.Multi) { keys(m); rates(m); groups(m); add(m) })
				})
			})
		})
	})
	if err != nil {
		if r := ch.reserved; r != nil {
			b.ops.Go(func() { b.cancel(r) })
		}
		return nil, written{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle(next, ch, w)
	return next, w, nil
}

// transact carries out one try of a change; add adds to its transaction.
func (b *board) transact(ctx context.Context, v *view, ch *change, root root, acl []session.ACL, add func(*session.Multi)) (*view, written, error) {
	t := &transaction{board: b, view: v, change: ch, multi: b.client().Multi(acl), series: root.log, offset: root.offset}
	t.multi.Check(b.at.own, root.version)
	if err := t.build(add); err != nil {
		return nil, written{}, err
	}
	before := time.Now()
	failpoint.Hit("zookeeper/commit/before-multi")
	done, err := t.multi.Do(ctx)
	failpoint.Hit("zookeeper/commit/after-multi")
	if err != nil {
		return nil, written{}, err
	}
	after := time.Now()
	w := t.read(done)
	b.store.clock.heard(w.zxid, w.at, before, after)
	return t.viewAfter(w, after), w, nil
}

// settle takes note of a change of our own. b.mu is held.
func (b *board) settle(next *view, ch *change, w written) {
	b.reached(w.zxid)
	if now := b.jobs[next.id]; now == nil || now.recZxid <= next.recZxid {
		b.put(next)
	}
	// Its entry may have been faster than its answer. One in a log of before was read
	// with the board.
	found := !ch.quiet && (w.series != b.root.log || b.log.has(w.number))
	if !ch.silent && !found {
		b.emit(ch.event, next.show(b.instant(), 0), w.zxid, w.at, ch.reason, ch.who)
	}
	if !ch.quiet && !found {
		b.log.know(w.number, w.zxid)
		b.endsAt(w.number, w.zxid, b.client().Reached())
	}
	b.folder.moved(w.zxid, w.children)
	b.advance()
	b.wake()
}

// A transaction is one change on its way.
type transaction struct {
	*board
	view   *view
	change *change
	multi  *session.Multi
	series uint32 // of the log
	offset uint64 // of the board

	set, log, created int   // places in multi
	children          int32 // nodes that come to TaskFlow's folder, and that go
	lockMade          bool
	lockVersion       int32
}

func (t *transaction) build(add func(*session.Multi)) error {
	ch, v, m := t.change, t.view, t.multi
	t.log, t.created = -1, -1
	switch {
	case ch.newNode != nil:
		t.postNode()
	case ch.takeNode:
		t.buildLock(v.node)
		m.Delete(t.at.Job(v.node), -1)
		t.children++
	case v.node != "":
		m.Check(t.at.Job(v.node), -1)
		t.buildLock(v.node)
	}
	if ch.putTrash != nil {
		m.Create(ch.rec.trash, ch.putTrash, session.Persistent)
	}
	if ch.outTrash != "" {
		m.Delete(ch.outTrash, -1)
	}
	ch.rec.lock = t.lockVersion
	path, data := t.at.record(v.id), ch.rec.encode()
	if v.rec == nil {
		m.Create(path, nil, session.Persistent)
		t.set = m.Set(path, data, 0)
	} else {
		t.set = m.Set(path, data, v.recVersion)
	}
	t.buildAttached()
	if ch.answer != nil {
		ch.answer.build(m, t.at)
	}
	add(m)
	if !ch.quiet {
		line := entry{v.id, ch.event, ch.reason, ch.who, t.children, nil}
		if ch.event == job.TrashedEvent && len(ch.rec.status) <= mostLogStatus {
			line.status = ch.rec.status
		}
		t.log = m.Create(t.at.log(t.series)+"/"+logPrefix, line.encode(), session.Persistent|session.Sequential)
	}
	if m.Size() > session.MaxRequest {
		return job.Errorf(job.Invalid, "the change has %d bytes altogether: ZooKeeper takes at most %d in one step", m.Size(), session.MaxRequest)
	}
	return nil
}

// buildLock does what is planned with the lock of a node. A lock of boardd's is
// always written once after it was created, so that its version is at least 1
// and TaskFlow's, which is 0, is never taken for it. A posting without a lock only
// goes if there is none still: one is made and deleted before it, since nothing
// else of the job says that a conductor has claimed it.
func (t *transaction) buildLock(node string) {
	v, ch, m := t.view, t.change, t.multi
	path := t.at.Lock(node)
	there := v.lock != nil && v.node == node
	switch {
	case ch.lock == takeLock && there:
		m.Delete(path, v.lock.version)
		t.children++
	case ch.lock == takeLock && ch.takeNode:
		m.Create(path, nil, session.Persistent)
		m.Delete(path, 0)
		t.children += 2
	case ch.lock == leaveLock && there && v.ours():
		m.Check(path, v.lock.version)
		t.lockVersion = v.lock.version
	case ch.lock == putLock:
		data, err := taskflow.EncodeLock(ch.owner)
		if err != nil {
			data = nil // owners were checked
		}
		flags := int32(session.Persistent)
		if ch.short {
			flags = session.Ephemeral
		}
		if there && v.lock.session == 0 && !ch.short {
			m.Set(path, data, v.lock.version)
			t.lockVersion = v.lock.version + 1
			return
		}
		if there {
			m.Delete(path, v.lock.version)
			t.children++
		}
		m.Create(path, data, flags)
		m.Set(path, data, 0)
		t.children++
		t.lockMade, t.lockVersion = true, 1
	}
}

// postNode puts a posting on the board: under the number that ZooKeeper gives it,
// or, if it comes with a lock, under one that was taken for it before.
func (t *transaction) postNode() {
	r, m := t.change.reserved, t.multi
	t.children++
	if r == nil {
		t.created = m.Create(t.at.JobPrefix(), t.change.newNode, session.Persistent|session.Sequential)
		return
	}
	t.created = m.Create(t.at.Job(r.name), t.change.newNode, session.Persistent)
	t.buildLock(r.name)
	m.Delete(r.path, -1)
	t.children++
}

func (t *transaction) buildAttached() {
	ch, m := t.change, t.multi
	for _, name := range ch.drop {
		m.Delete(t.at.attached(t.view.id, name), -1)
	}
	had := func(name string) bool { return t.view.rec != nil && slices.Contains(t.view.rec.attached, name) }
	for _, a := range ch.attach {
		path := t.at.attached(t.view.id, a.Name)
		switch {
		case a.Delete:
			m.Delete(path, -1)
		case had(a.Name):
			m.Set(path, a.Data, -1)
		default:
			m.Create(path, a.Data, session.Persistent)
		}
	}
}

// read takes from ZooKeeper's answer what is needed.
func (t *transaction) read(done []session.Done) written {
	stat := done[t.set].Stat
	w := written{zxid: uint64(stat.Mzxid), at: stat.Mtime, series: t.series, children: t.children, offset: t.offset}
	if t.log >= 0 {
		w.number, _ = logNumber(base(done[t.log].Path))
	}
	if t.created >= 0 {
		w.name = base(done[t.created].Path)
	}
	return w
}

func base(path string) string { return path[lastSlash(path)+1:] }

// viewAfter returns the job as it is after the transaction.
func (t *transaction) viewAfter(w written, now time.Time) *view {
	v, ch := *t.view, t.change
	rec := *ch.rec
	rec.stamps = slices.Clone(ch.rec.stamps)
	v.rec, v.recZxid, v.seen = &rec, w.zxid, now
	v.slim, v.size = false, 0
	v.recVersion = 1
	if t.view.rec != nil {
		v.recVersion = t.view.recVersion + 1
	}
	rec.settle(w.zxid, w.at)
	switch {
	case ch.takeNode:
		v.last, v.lastCzxid, v.node, v.czxid = v.node, v.czxid, "", 0
	case w.name != "":
		v.node, v.post, v.czxid, v.posted = w.name, ch.post, w.zxid, w.at
	}
	switch {
	case v.node == "" || ch.lock == takeLock:
		v.lock = nil
	case t.lockMade || v.lock == nil && ch.lock == putLock:
		v.lock = &lock{version: 1, owner: ch.owner, czxid: w.zxid, since: w.at}
		if ch.short {
			v.lock.session = t.client().SessionID()
		}
	case ch.lock == putLock:
		l := *v.lock
		l.version, l.owner = t.lockVersion, ch.owner
		v.lock = &l
	}
	return &v
}
