package store

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// atOnce is how many reads one piece of work keeps under way.
const atOnce = 64

// together does pieces of work side by side and returns the first error.
func together(ctx context.Context, work []func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	next := make(chan func(context.Context) error)
	for range min(atOnce, len(work)) {
		group.Go(func() {
			for piece := range next {
				if err := piece(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, piece := range work {
		if ctx.Err() != nil {
			break
		}
		next <- piece
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// maxReads is how often a job is read that changes while it is read.
const maxReads = 10

// A search says when a posting that is not known is looked for.
type search uint8

const (
	never    search = iota // while the folder is being listed
	recorded               // if the record says that there is one
	anywhere               // also if the folder may have changed
)

// fetch reads a job as it stands now for everybody, and takes note of it.
func (b *board) fetch(ctx context.Context, id job.ID, how search) (*view, error) {
	if err := b.client().Sync(ctx, b.at.Board); err != nil {
		return nil, err
	}
	return b.steady(ctx, id, how)
}

// steady is refresh for ops. While the board is read anew, what is known of it changes
// under them: a posting that was just found may be forgotten again, and its job be taken
// for gone. So what was seen then does not count.
func (b *board) steady(ctx context.Context, id job.ID, how search) (*view, error) {
	for {
		if err := b.ready(ctx); err != nil {
			return nil, err
		}
		before, _ := b.reading()
		v, err := b.refresh(ctx, id, how)
		if after, loaded := b.reading(); err != nil || loaded && after == before {
			return v, err
		}
	}
}

// reading returns how often the board was begun to be read, and whether it is read.
func (b *board) reading() (times uint64, loaded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loads, b.loaded
}

// refresh reads a job as far as this session sees it, and takes note of it.
func (b *board) refresh(ctx context.Context, id job.ID, how search) (*view, error) {
	searched := how == never
	for range maxReads {
		b.mu.Lock()
		old := b.jobs[id]
		b.mu.Unlock()
		v := &view{id: id}
		if old != nil {
			*v = *old
		}
		same, err := b.readNodes(ctx, v, old)
		if err != nil {
			return nil, err
		}
		if !same {
			continue
		}
		if !searched && (v.adrift() || how == anywhere && v.node == "" && v.rec == nil) {
			again, err := b.seek(ctx, v, old)
			if err != nil {
				return nil, err
			}
			if searched = !again; again {
				continue
			}
		}
		if v.adrift() {
			b.mu.Lock()
			b.past.adrift = append(b.past.adrift, id)
			b.mu.Unlock()
			return v, nil // it is looked for when the list is done
		}
		aside, err := b.adoptTrash(ctx, old, v)
		if err != nil {
			return nil, err
		}
		if aside {
			continue
		}
		return b.learn(old, v), nil
	}
	return nil, job.Errorf(job.Unavailable, "job %v changes all the time: it could not be read", id)
}

// seek looks for the posting of a job that is not where it was, and notes in v if it is
// gone. It reports whether the job has to be read again.
func (b *board) seek(ctx context.Context, v, old *view) (again bool, err error) {
	if found, err := b.find(ctx, v, old); err != nil || found || !v.adrift() {
		return found, err
	}
	// The list is newer than the record and does not have the posting. Either another
	// program took it away, or another host did, and wrote that into the record.
	same, err := b.sameRecord(ctx, v)
	if same {
		v.lastCzxid = v.rec.placed
	}
	return !same, err
}

// readNodes reads the three nodes of a job. The record is looked at twice: every
// transition of boardd's changes it, so that if it is the same, what was read
// between belongs to it.
func (b *board) readNodes(ctx context.Context, v, old *view) (same bool, err error) {
	if err := b.fetchRecord(ctx, v, old); err != nil {
		return false, err
	}
	if v.node != "" {
		stat, err := b.client().Exists(ctx, b.at.Job(v.node))
		if err != nil {
			return false, err
		}
		if stat == nil || uint64(stat.Czxid) != v.czxid {
			v.last, v.lastCzxid, v.node, v.czxid = v.node, v.czxid, "", 0
		}
	}
	v.lock = nil
	if v.node != "" {
		if err := b.fetchLock(ctx, v); err != nil {
			return false, err
		}
	}
	return b.sameRecord(ctx, v)
}

// sameRecord reports whether a job's record is still what v has.
func (b *board) sameRecord(ctx context.Context, v *view) (bool, error) {
	stat, err := b.client().Exists(ctx, b.at.record(v.id))
	if err != nil {
		return false, err
	}
	if stat == nil {
		return v.rec == nil, nil
	}
	return v.rec != nil && stat.Version == v.recVersion && uint64(stat.Mzxid) == v.recZxid, nil
}

// find looks for the posting of a job that was not known to have one: another
// host may have posted it a moment ago.
func (b *board) find(ctx context.Context, v, old *view) (bool, error) {
	for {
		known := b.lists.Load()
		b.mu.Lock()
		busy, wait := b.folder.busy, time.Until(b.folder.next)
		again := v.rec != nil || busy || b.stale()
		b.mu.Unlock()
		if !again {
			return false, nil
		}
		if busy { // what is being listed has it perhaps
			known, wait = known-1, 0
		}
		// Whatever asks, lists keep their pace. All who wait are served by one.
		if err := sleep.For(ctx, wait); err != nil {
			return false, &job.Error{Kind: job.Interrupted, Err: err}
		}
		if err := b.listFolder(ctx, known); err != nil {
			return false, err
		}
		b.mu.Lock()
		now := b.jobs[v.id]
		b.mu.Unlock()
		if found := now != nil && now != old && now.node != ""; found || !busy {
			return found, nil
		}
	}
}
