package board

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/sleep"
)

// How often batches are looked at.
const (
	batchPoll  = 5 * time.Second       // for what others did to their jobs
	batchPause = 50 * time.Millisecond // at least, between two looks
	batchWait  = 5 * time.Second       // of one who waits for a batch, for what others did
)

// batchKeeper closes the batches that are complete, posts what follows them, and forgets
// them in the end. Each host of the board does so: the store lets one of them post. A host
// hears at once of what ends through it, and looks every few seconds for the rest.
type batchKeeper struct {
	watched atomic.Int64 // batches whose jobs' changes somebody wants to hear of

	mu     sync.Mutex
	all    map[string]*keptBatch
	hinted map[string]struct{}        // whose jobs changed
	ears   map[string][]chan struct{} // of those who wait
	wake   chan struct{}              // has room for one

	looking bool // at those that were taken last
}

// keptBatch is what the host knows of a batch's record.
type keptBatch struct {
	version  uint64 // of the document; older news is ignored
	open     bool   // see batchRecord.open
	closed   bool
	expected int64
	before   endedJobs
	done     time.Time
	task     [sha256.Size]byte // see batchRecord.task
	failed   int               // tries of it
	after    time.Time         // when it is to be tried again
}

// due reports whether there is something to do for a batch that stands so.
func (k *keptBatch) due(g *driver.Group) bool {
	switch {
	case !k.done.IsZero():
		return k.stale(time.Now())
	case g.Closed:
		return g.Open == 0
	}
	return k.closed || k.expected > 0 && k.before.and(g).Posted() >= k.expected
}

// stale reports whether the batch is done and is to be forgotten. One that was never told how many
// jobs it has, nor closed, is neither open nor done.
func (k *keptBatch) stale(now time.Time) bool {
	return !k.done.IsZero() && now.Sub(k.done) > BatchKept
}

func (k *batchKeeper) init() {
	k.all, k.hinted, k.ears = map[string]*keptBatch{}, map[string]struct{}{}, map[string][]chan struct{}{}
	k.wake = make(chan struct{}, 1)
}

// count returns how many batches have a record.
func (k *batchKeeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// learn takes news of a batch's record; nil: it was deleted.
func (k *batchKeeper) learn(name string, r *batchRecord, version uint64) {
	var task [sha256.Size]byte
	if r != nil {
		task = r.task()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.all[name]
	switch {
	case r == nil:
		k.drop(name)
		return
	case known == nil:
		known = &keptBatch{}
		k.all[name] = known
	case version <= known.version:
		return
	}
	switch open := r.open(); {
	case open && !known.open:
		k.watched.Add(1)
	case !open && known.open:
		k.watched.Add(-1)
	}
	was := *known
	*known = keptBatch{version: version, open: r.open(), closed: r.Closed, expected: r.Expected, before: r.Before, done: r.Done, task: task}
	if task == was.task { // each host writes how far it came with the task, and waits for itself
		known.failed, known.after = was.failed, was.after
	}
	if known.open {
		k.hinted[name] = struct{}{}
		rouse(k.wake)
	}
}

// drop is called with mu held.
func (k *batchKeeper) drop(name string) {
	if known := k.all[name]; known != nil && known.open {
		k.watched.Add(-1)
	}
	delete(k.all, name)
}

// anew prepares for a watch that begins: what it does not tell of by its Synced is gone.
func (k *batchKeeper) anew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.all {
		known.version = 0
	}
}

// sync forgets what a watch that began did not tell of.
func (k *batchKeeper) sync() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, known := range k.all {
		if known.version == 0 {
			k.drop(name)
		}
	}
}

// hint says that jobs of a batch have changed.
func (k *batchKeeper) hint(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ear := range k.ears[name] {
		rouse(ear)
	}
	if known := k.all[name]; known != nil && known.open {
		k.hinted[name] = struct{}{}
		rouse(k.wake)
	}
}

// left says that a job left the board.
func (k *batchKeeper) left(e *index.Entry) {
	if k.watched.Load() == 0 || len(e.Extra) == 0 {
		return
	}
	if name := batchOf(e.Extra); len(name) > 0 {
		k.hint(string(name))
	}
}

// listen returns a channel with room for one that gets the news of a batch, until stop is
// called.
func (k *batchKeeper) listen(name string) (news chan struct{}, stop func()) {
	news = make(chan struct{}, 1)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watched.Add(1)
	k.ears[name] = append(k.ears[name], news)
	return news, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.watched.Add(-1)
		k.ears[name] = slices.DeleteFunc(k.ears[name], func(c chan struct{}) bool { return c == news })
		if len(k.ears[name]) == 0 {
			delete(k.ears, name)
		}
	}
}

// batchNews waits for news, or for as long as one goes without, and reports whether the wait
// is over.
func batchNews(waiting context.Context, news <-chan struct{}) (over bool) {
	if sleep.For(waiting, batchPause) != nil {
		return true
	}
	timer := time.NewTimer(batchWait)
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-waiting.Done():
		return true
	}
	return false
}

// take returns the batches to look at: those whose jobs changed, or all of which something
// has to be done.
func (k *batchKeeper) take(every bool, now time.Time) (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if every {
		for name, known := range k.all {
			if (known.open || known.stale(now)) && !now.Before(known.after) {
				names = append(names, name)
			}
		}
	}
	for name := range k.hinted {
		if known := k.all[name]; !every && known != nil && !now.Before(known.after) {
			names = append(names, name)
		}
	}
	clear(k.hinted)
	slices.Sort(names)
	k.looking = len(names) > 0
	return names
}

// looked says that the batches which were taken last were looked at.
func (k *batchKeeper) looked() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looking = false
}

// due reports whether there is something to do for a batch that stands so.
func (k *batchKeeper) due(name string, g *driver.Group) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.all[name]
	return known != nil && known.due(g)
}

// tried notes what came of a look at a batch.
func (k *batchKeeper) tried(name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.all[name]
	switch {
	case known == nil:
	case err == nil:
		known.failed, known.after = 0, time.Time{}
	default:
		known.failed++
		known.after = time.Now().Add(min(100*time.Millisecond<<min(known.failed, 12), 5*time.Minute))
	}
}

// learnBatch takes news of a batch's document.
func (b *Board) learnBatch(doc driver.Document, deleted bool) {
	name := strings.TrimPrefix(doc.Name, batchPrefix)
	if deleted {
		b.batches.learn(name, nil, doc.Version)
		return
	}
	var r batchRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		b.log.Warn("the record of a batch cannot be read: nothing follows it", "batch", name, "error", err)
	}
	b.batches.learn(name, &r, doc.Version)
}

// keepBatches looks at batches until ctx ends. On a paused board it waits: whoever imports a
// board pauses it, and a batch counts what has come so far.
func (b *Board) keepBatches(ctx context.Context) {
	ticker := time.NewTicker(batchPoll)
	defer ticker.Stop()
	for {
		every := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			every = true
		case <-b.batches.wake:
		}
		if paused, _ := b.pause.look(); !paused {
			b.lookAtBatches(ctx, b.batches.take(every, time.Now()))
			b.batches.looked()
		}
		if sleep.For(ctx, batchPause) != nil {
			return
		}
	}
}
