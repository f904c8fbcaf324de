package store

import (
	"context"
	"strings"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// The pace of reading a folder's names again: at least leastPause after the last
// list, and paceFactor times as long as that took after it began, so that no more
// than a tenth of the time goes there however large the folder is.
const (
	leastPause = 50 * time.Millisecond
	paceFactor = 10
	nobodyHome = time.Second // when the folder is not there at all

	// costPerName is more processor time than a name takes in a list (1.3 to 3 µs
	// were seen). What takes longer is waiting, for the server or for other
	// programs, and no reason to look less often: so a change shows after 0.7 s at
	// 20,000 names and after 3.5 s at 100,000, and the time of one list.
	costPerName = 3500 * time.Nanosecond
)

// follow keeps up with what others do until ctx ends or the board has to be read
// anew.
func (b *board) follow(ctx context.Context) error {
	chores := time.NewTicker(choreTime)
	defer chores.Stop()
	for {
		b.mu.Lock()
		fired := b.rootFired()
		b.mu.Unlock()
		if fired {
			if err := b.endure(ctx, b.followRoot(ctx)); err != nil {
				return err
			}
		}
		if err := b.endure(ctx, b.look(ctx)); err != nil {
			return err
		}
		b.mu.Lock()
		loaded := b.loaded
		pause := b.pause()
		folder, log, root := b.folder.event, b.log.event, b.rootEvent
		b.mu.Unlock()
		if !loaded {
			return errAgain
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case e := <-folder:
			b.fired(&b.folder, e)
		case e := <-log:
			b.fired(&b.log.follower, e)
		case <-root:
			if err := b.endure(ctx, b.followRoot(ctx)); err != nil {
				return err
			}
		case <-b.hosts.changed():
			b.hosts.dirty.Store(true)
		case <-b.kick:
		case <-timer.C:
		case <-chores.C:
			if err := b.endure(ctx, b.chores(ctx)); err != nil {
				return err
			}
		}
		timer.Stop()
	}
}

// followRoot takes note of the root where it was changed. What is known of one that cannot be
// read stands; who changes the board, or reads a job, is told.
func (b *board) followRoot(ctx context.Context) error {
	err := b.heedRoot(ctx)
	if job.KindOf(err) == job.Corrupt {
		b.store.log.Warn("what the board is cannot be read any more", "board", b.name, "error", err)
		return nil
	}
	return err
}

// endure goes on after an error that came of a connection that is lost for a
// moment, once there is one again: the session's watches are kept by ZooKeeper,
// and what could not be read is read again.
func (b *board) endure(ctx context.Context, err error) error {
	switch job.KindOf(err) {
	case job.Unavailable, job.OutcomeUnknown:
	default:
		return err
	}
	b.mu.Lock()
	b.folder.dirty, b.log.dirty = true, true
	b.folder.next, b.log.follower.next = time.Now().Add(leastPause), time.Now().Add(leastPause)
	b.mu.Unlock()
	return b.client().Ready(ctx)
}

// fired notes that a folder's watch fired.
func (b *board) fired(f *follower, _ session.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.event, f.dirty = nil, true
}

// pause returns how long nothing has to be looked at. b.mu is held.
func (b *board) pause() time.Duration {
	pause := time.Minute
	for _, f := range []*follower{&b.folder, &b.log.follower} {
		if f.dirty {
			pause = min(pause, max(time.Until(f.next), 0))
		}
	}
	if b.explainable() {
		pause = min(pause, max(time.Until(b.folder.explained), 0))
	}
	if due, ok := b.holds.due(); ok && !b.root.rests() {
		pause = min(pause, max(due.Sub(b.instant().wall), 0))
	}
	return max(pause, time.Millisecond)
}

// stale reports whether the folder may hold other names than are known. b.mu is
// held.
func (b *board) stale() bool {
	b.poll(&b.folder)
	return b.folder.dirty
}

// poll takes the event of a watch that has fired. b.mu is held.
func (b *board) poll(f *follower) {
	select {
	case <-f.event:
		f.event, f.dirty = nil, true
	default:
	}
}

// look reads what is due, and moves on the positions up to which everything is
// known. A watch that has not fired says that its folder is as it was up to the
// last change that this session has seen: ZooKeeper tells of it first.
func (b *board) look(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	b.advance()
	listFolder := b.folder.dirty && !now.Before(b.folder.next)
	listLog := b.log.dirty && !now.Before(b.log.follower.next)
	explain := b.explainable() && !now.Before(b.folder.explained)
	missing := b.log.missing()
	b.mu.Unlock()
	if len(missing) > 0 {
		if err := b.readLog(ctx, missing); err != nil {
			return err
		}
	}
	if explain {
		if err := b.explain(ctx); err != nil {
			return err
		}
	}
	if listFolder {
		if err := b.listFolder(ctx, b.lists.Load()); err != nil {
			return err
		}
	}
	if listLog {
		if err := b.listLog(ctx); err != nil {
			return err
		}
	}
	return b.release(ctx)
}

// listFolder reads TaskFlow's folder again, and each job that came, went, or has
// or lost a lock since.
//
// known is how many lists were begun when the caller found that it wants one: any
// later one serves it.
func (b *board) listFolder(ctx context.Context, known uint64) error {
	b.listing.Lock()
	defer b.listing.Unlock()
	if b.lists.Load() > known && b.listed.Load() == b.lists.Load() {
		return nil
	}
	b.lists.Add(1)
	if err := b.listAnew(ctx); err != nil {
		return err
	}
	b.listed.Store(b.lists.Load())
	return nil
}

func (b *board) listAnew(ctx context.Context) (failed error) {
	horizon := b.begin(&b.folder)
	defer func() { b.finished(&b.folder, failed) }()
	begun := time.Now()
	folder, err := b.client().ListWatched(ctx, b.at.Board)
	if session.NoNode(err) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.folder.dirty, b.folder.next, b.folder.upTo = true, time.Now().Add(nobodyHome), max(b.folder.upTo, horizon)
		return nil
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.folder.event = folder.Event
	b.reached(uint64(folder.Stat.Pzxid))
	work := b.compare(folder)
	b.folder.listed(begun, len(folder.Names))
	b.mu.Unlock()
	if err := together(ctx, work); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.folder.upTo = max(b.folder.upTo, horizon, uint64(folder.Stat.Pzxid))
	// Where a lock has taken the place of another one the names are the same.
	b.sweep.again(len(work) > 0 || !b.folder.balanced(folder.Stat))
	b.folder.rebase(folder.Stat)
	return nil
}

// begin notes that a folder is being listed, and returns what is known until then.
func (b *board) begin(f *follower) (horizon uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.dirty, f.busy = false, true
	return b.horizon
}

// finished notes that what was new in a folder is known, unless that failed.
func (b *board) finished(f *follower, failed error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.busy = false
	f.dirty = f.dirty || failed != nil
	b.advance()
}

// listed plans the next list. One that took long since the machine had other
// things to do does not count for much.
func (f *follower) listed(begun time.Time, names int) {
	took := min(time.Since(begun), time.Duration(names)*costPerName)
	if f.cost == 0 || took < f.cost {
		f.cost = took
	} else {
		f.cost = min(took, f.cost+f.cost/4+time.Millisecond)
	}
	f.next = begun.Add(paceFactor * f.cost)
	if soon := time.Now().Add(leastPause); f.next.Before(soon) {
		f.next = soon
	}
}

// compare returns what there is to read after a list of names. b.mu is held.
func (b *board) compare(folder session.Folder) []func(context.Context) error {
	var work []func(context.Context) error
	nodes := make(map[string]bool, len(folder.Names)) // with whether there is a lock
	listed := make(map[string]bool, len(folder.Names))
	for _, name := range folder.Names {
		listed[name] = true
		sequence, isLock, ok, err := taskflow.Child(name)
		switch {
		case err != nil:
			b.bad[b.at.Job(name)] = unread{problem: err.Error()}
		case ok && isLock:
			nodes[taskflow.JobName(sequence)] = true
		case ok:
			if _, known := nodes[name]; !known {
				nodes[name] = false
			}
		}
	}
	for name, locked := range nodes {
		id, known := b.names[name]
		switch v := b.jobs[id]; {
		case !listed[name]: // a lock without a job
		case !known && b.bad[b.at.Job(name)].problem == "":
			work = append(work, func(ctx context.Context) error { return b.adopt(ctx, name) })
		case !known || v == nil:
		case locked && v.lock == nil, !locked && v.lock != nil && v.lock.czxid <= uint64(folder.Stat.Pzxid):
			work = append(work, b.refreshLater(id))
		}
	}
	for name, id := range b.names {
		if v := b.jobs[id]; !listed[name] && v != nil && v.node == name && v.czxid <= uint64(folder.Stat.Pzxid) {
			work = append(work, b.refreshLater(id))
		}
	}
	for path := range b.bad {
		if name, ours := strings.CutPrefix(path, b.at.Board+"/"); ours && !listed[name] {
			delete(b.bad, path)
		}
	}
	return work
}

// refreshLater returns the work of reading one job.
func (b *board) refreshLater(id job.ID) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := b.refresh(ctx, id, never)
		return err
	}
}

// adopt reads a posting that was not known, and what belongs to it.
func (b *board) adopt(ctx context.Context, name string) error {
	v := &view{}
	found, err := b.fetchPosting(ctx, v, name)
	if err != nil || !found {
		return err
	}
	b.mu.Lock()
	old := b.jobs[v.id]
	twice := old != nil && old.node != "" && old.node != name
	b.mu.Unlock()
	if twice {
		if instead, err := b.second(ctx, v, old); err != nil || !instead {
			return err
		}
	}
	if old != nil {
		posting := *v
		*v = *old
		v.node, v.post, v.czxid, v.posted = posting.node, posting.post, posting.czxid, posting.posted
	}
	for range maxReads {
		same, err := b.readNodes(ctx, v, old)
		if err != nil {
			return err
		}
		if same {
			break
		}
	}
	if v.node != "" {
		b.learn(old, v)
	}
	return nil
}

// second looks at a posting whose uuid another one has that is known here. It reports
// whether this one has taken its place: a job that was set aside and restored has
// another posting, and so has one that was posted again. A job whose postings both are
// there is the one that was known, and the second posting is in the way of nothing and
// left as it is.
func (b *board) second(ctx context.Context, v, old *view) (instead bool, err error) {
	stat, err := b.client().Exists(ctx, b.at.Job(old.node))
	if err != nil {
		return false, err
	}
	if stat != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bad[b.at.Job(v.node)] = unread{problem: "another posting has its uuid: " + b.at.Job(old.node)}
		return false, nil
	}
	now := &view{id: v.id}
	if err := b.fetchRecord(ctx, now, old); err != nil {
		return false, err
	}
	if now.rec != nil && now.rec.place == onBoard && now.rec.placed == v.czxid {
		return true, nil
	}
	if _, err := b.refresh(ctx, v.id, never); err != nil { // the record is about the one that is gone
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.folder.dirty = true // the next list finds it again
	return false, nil
}
