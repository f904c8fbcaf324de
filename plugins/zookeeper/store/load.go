package store

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// start begins to load and to follow the board.
func (b *board) start() { b.running.Go(b.run) }

// run loads the board and follows it, and does so again after every loss of the
// session, until the board's life ends.
func (b *board) run() {
	for wait := 50 * time.Millisecond; b.life.Err() == nil; {
		err := b.serve()
		gone := errors.Is(err, errGone)
		b.mu.Lock()
		b.setState(false, err)
		b.events.broken = &job.Error{Kind: job.Unavailable, Message: "the board is being read anew", Err: err}
		b.events.wake()
		said := gone && !b.loadedOnce
		if gone {
			b.clear()
		}
		b.mu.Unlock()
		if errors.Is(err, errAgain) {
			wait = 50 * time.Millisecond
			continue
		}
		if b.life.Err() == nil && !said {
			b.store.log.Warn("a board cannot be followed; it is read anew", "board", b.name, "error", err)
		}
		if gone && b.awaitRoot() == nil {
			wait = 50 * time.Millisecond
			continue
		}
		b.rest(wait)
		wait = min(2*wait, 5*time.Second)
	}
}

// rest waits for a while, or until there is something to do.
func (b *board) rest(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.kick:
	case <-b.life.Done():
	}
}

// awaitRoot waits until a board that is gone is made again, or somebody opens it here.
func (b *board) awaitRoot() error {
	_, lost := b.client().Epoch()
	stat, made, err := b.client().ExistsWatched(b.life, b.at.own)
	if err != nil || stat != nil {
		return err
	}
	for {
		b.mu.Lock()
		asked := b.openers > 0
		b.mu.Unlock()
		if asked {
			return nil
		}
		select {
		case <-b.kick:
			continue // by who opens it, or by a change of before
		case <-made:
		case <-lost:
		case <-b.life.Done():
		}
		return nil
	}
}

// errGone is why a board that nobody opens cannot be loaded.
var errGone = errors.New("the board was dropped, or ZooKeeper was made anew; whoever opens the board makes it again")

// errAgain ends serve so that the board is read anew at once.
var errAgain = errors.New("the board is to be read anew")

// reload has the board read anew.
func (b *board) reload(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		return
	}
	b.setState(false, why)
	b.events.broken = why
	b.events.wake()
	b.wake()
}

// serve loads the board and follows it until the session is lost.
func (b *board) serve() error {
	ctx, cancel := context.WithCancelCause(b.life)
	defer cancel(nil)
	if err := b.client().Ready(ctx); err != nil {
		return err
	}
	_, lost := b.client().Epoch()
	go func() {
		select {
		case <-lost:
			cancel(job.Errorf(job.Unavailable, "the session with ZooKeeper was lost"))
		case <-ctx.Done():
		}
	}()
	err := b.load(ctx, lost)
	if err == nil {
		err = b.follow(ctx)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// load reads everything, and opens the board when no change up to what was read
// is missing. lost is closed when the session is lost that all of it is read in.
func (b *board) load(ctx context.Context, lost <-chan struct{}) error {
	if err := b.client().Sync(ctx, b.store.settings.root); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	old := b.jobs
	b.clear()
	b.lost = lost
	b.mu.Unlock()
	if err := b.join(ctx); err != nil {
		return err
	}
	if err := b.readAll(ctx, old); err != nil {
		return err
	}
	if err := b.keepSightings(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	goal := b.horizon
	b.mu.Unlock()
	for {
		if err := b.look(ctx); err != nil {
			return err
		}
		b.mu.Lock()
		if min(b.folder.upTo, b.log.upTo) >= goal {
			break
		}
		b.mu.Unlock()
		if err := sleep.For(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	defer b.mu.Unlock()
	b.loadedOnce = true
	for id, v := range b.jobs {
		if v.gone() {
			b.past.vanished = append(b.past.vanished, id)
		}
	}
	b.events.restart(min(b.folder.upTo, b.log.upTo))
	b.setState(true, nil)
	return nil
}

// prepare reads the root, and makes it where it is missing and somebody opens the board.
// Otherwise another host has dropped it, and it is not for this one to undo that.
func (b *board) prepare(ctx context.Context) error {
	acl, err := b.client().ACLOf(ctx, b.at.Board)
	if session.NoNode(err) {
		acl, err = session.World(), nil
		if b.store.settings.session.Scheme != "" {
			acl = session.Creator()
		}
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.acl = acl
	observe, asked := b.spec.Observe, b.openers > 0
	b.mu.Unlock()
	r, event, err := b.watchRoot(ctx)
	if err == nil && !r.there && !observe && !asked {
		return &job.Error{Kind: job.Unavailable, Message: b.at.own + " is gone", Err: errGone}
	}
	if err == nil && !r.there && !observe {
		if err := b.makeRoot(ctx, r.generation); err != nil {
			return err
		}
		r, event, err = b.watchRoot(ctx)
	}
	if err != nil {
		return err // what is known of the root stands: ops that are under way go by it
	}
	b.mu.Lock()
	b.root, b.rootEvent, b.rootDue, b.frozen = r, event, false, r.freezes(0)
	b.mu.Unlock()
	return nil
}

// readAll reads the postings, locks and records. old is what was known before a
// session was lost: a claim that is still the same has been seen all the time.
func (b *board) readAll(ctx context.Context, old map[job.ID]*view) error {
	b.mu.Lock()
	b.horizon = b.root.zxid
	b.folder.dirty, b.log.dirty = true, true
	b.mu.Unlock()
	if err := b.beginLog(ctx); err != nil {
		return err
	}
	if err := b.listAnswers(ctx); err != nil {
		return err
	}
	ids, err := b.listRecords(ctx)
	if err != nil {
		return err
	}
	var work []func(context.Context) error
	for _, id := range ids {
		work = append(work, func(ctx context.Context) error { return b.readRecord(ctx, id, old[id]) })
	}
	if err := together(ctx, work); err != nil {
		return err
	}
	if err := b.listFolder(ctx, b.lists.Load()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.jobs {
		if v.adrift() { // the list is newer than the record, and does not have it
			lost := *v
			lost.lastCzxid = v.rec.placed
			b.put(&lost)
		}
	}
	return nil
}

// listRecords returns the jobs that have a record.
func (b *board) listRecords(ctx context.Context) ([]job.ID, error) {
	var ids []job.ID
	for n := range shards {
		folder, err := b.client().List(ctx, b.at.shard(n))
		if session.NoNode(err) {
			continue // of an observed board nothing may be there
		}
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.reached(uint64(folder.Stat.Pzxid))
		b.mu.Unlock()
		for _, name := range folder.Names {
			if id, err := job.ParseID(name); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// readRecord reads one record into a view that has no posting yet.
func (b *board) readRecord(ctx context.Context, id job.ID, old *view) error {
	v := &view{id: id}
	if err := b.fetchRecord(ctx, v, old); err != nil {
		return err
	}
	if v.rec == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(v)
	return nil
}

// fetchRecord reads v.rec. A record that cannot be read is in the way of its
// job, and of nothing else.
func (b *board) fetchRecord(ctx context.Context, v, old *view) error {
	path := b.at.record(v.id)
	node, err := b.client().Get(ctx, path)
	if session.NoNode(err) {
		v.rec = nil
		return nil
	}
	if err != nil {
		return err
	}
	rec, err := decodeRecord(node.Data)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.bad[path] = unread{v.id, "boardd's record of the job: " + err.Error()}
		return nil
	}
	delete(b.bad, path)
	zxid := uint64(node.Stat.Mzxid)
	rec.settle(zxid, node.Stat.Mtime)
	v.slim, v.size = false, 0
	now := time.Now()
	v.rec, v.recVersion, v.recZxid, v.seen = rec, node.Stat.Version, zxid, now.Add(-b.store.clock.age(zxid, node.Stat.Mtime, now))
	if old != nil && old.rec != nil && old.recZxid == zxid {
		v.seen = old.seen
	}
	b.reached(zxid)
	return nil
}

// fetchPosting reads the posting of a node into v; false: it is gone.
func (b *board) fetchPosting(ctx context.Context, v *view, name string) (bool, error) {
	node, err := b.client().Get(ctx, b.at.Job(name))
	if session.NoNode(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p, err := taskflow.DecodeZooKeeper(node.Data)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached(uint64(node.Stat.Czxid))
	if err != nil && p.ID == (job.ID{}) {
		p.ID = uuidIn(node.Data)
	}
	if err != nil {
		b.bad[b.at.Job(name)] = unread{p.ID, err.Error()}
		return false, nil
	}
	p.Details = nil
	v.id, v.node, v.post, v.czxid, v.posted = p.ID, name, p, uint64(node.Stat.Czxid), node.Stat.Ctime
	return true, nil
}

// fetchLock reads the lock beside v's posting.
func (b *board) fetchLock(ctx context.Context, v *view) error {
	v.lock = nil
	node, err := b.client().Get(ctx, b.at.Lock(v.node))
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, _ := taskflow.DecodeLock(node.Data) // without an owner it is a lock all the same
	v.lock = &lock{node.Stat.Version, owner, node.Stat.EphemeralOwner, uint64(node.Stat.Czxid), node.Stat.Ctime}
	b.mu.Lock()
	b.reached(uint64(node.Stat.Mzxid))
	b.mu.Unlock()
	return nil
}
