package board

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// feed is the log of one job that calls follow, shared by all of them.
type feed struct {
	id        job.ID
	followers int // guarded by logs.mu

	reading sync.Mutex // held while the store is asked, by one for all
	asked   time.Time  // when that was last; guarded by reading

	mu      sync.Mutex
	entries []job.LogEntry // what is kept; only appended to, so that followers share it
	ended   bool
	stale   bool          // there may be more in the store
	told    int64         // serial of the last entry as reported since the last read; or unknown
	pokes   int           // how often told was reported
	news    chan struct{} // closed when something changed
}

// last returns the serial of the last entry that is kept. The caller holds f.mu.
func (f *feed) last() int64 {
	if n := len(f.entries); n > 0 {
		return f.entries[n-1].Serial
	}
	return 0
}

// unknown is a serial that no entry has.
const unknown = math.MaxInt64

// push adds entries that this host appended, if they follow on the last one. The store
// may have reported them already (see poke); then the feed is not stale any more.
func (f *feed) push(entries []job.LogEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last()+1 == entries[0].Serial {
		f.keep(entries)
		f.stale = f.stale && f.told > f.last()
	} else {
		f.stale, f.told = true, max(f.told, entries[len(entries)-1].Serial)
		f.pokes++
	}
	f.tell()
}

// keep appends entries, and drops old ones over the bound. The caller holds f.mu.
func (f *feed) keep(entries []job.LogEntry) {
	f.entries = append(f.entries, entries...)
	if over := len(f.entries) - 2*job.MaxLogEntries; over > 0 {
		f.entries = slices.Clone(f.entries[len(f.entries)-job.MaxLogEntries:])
	}
}

// tell wakes the followers. The caller holds f.mu.
func (f *feed) tell() {
	close(f.news)
	f.news = make(chan struct{})
}

// poke says that the job changed, and the serial of its log's last entry, if that is
// known.
func (f *feed) poke(last int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last <= f.last() && !f.stale && !f.ended {
		return
	}
	if f.ended {
		last = unknown // it goes on after all
	}
	f.stale, f.ended, f.told = true, false, max(f.told, last)
	f.pokes++
	f.tell()
}

// logAfter returns the entries after a serial, whether the log has ended, and what
// to wait for if neither is the case.
func (b *Board) logAfter(ctx context.Context, f *feed, serial int64) ([]job.LogEntry, bool, <-chan struct{}, error) {
	for {
		if err := b.refreshFeed(ctx, f); err != nil {
			return nil, false, nil, err
		}
		f.mu.Lock()
		entries, ended, stale, news := entriesAfter(f.entries, serial), f.ended, f.stale, f.news
		f.mu.Unlock()
		if len(entries) > 0 || ended || !stale {
			return entries, ended, news, nil
		}
	}
}

// feedPause is the least time between two reads of a log that another host appends to.
const feedPause = 50 * time.Millisecond

// followTries is how often a follower asks again, a little later each time, after
// the store failed.
const followTries = 8

// refreshFeed asks the store for what a feed lacks, once for all followers.
func (b *Board) refreshFeed(ctx context.Context, f *feed) error {
	f.mu.Lock()
	stale := f.stale
	f.mu.Unlock()
	if !stale {
		return nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	stale = f.stale
	f.mu.Unlock()
	if !stale {
		return nil // somebody else asked meanwhile
	}
	if completed, err := f.pause(ctx, feedPause-time.Since(f.asked)); completed || err != nil {
		return err
	}
	f.mu.Lock()
	pokes := f.pokes // what is asked now answers those too that came meanwhile
	f.mu.Unlock()
	entries, ended, err := b.readLog(ctx, f.id)
	f.asked = time.Now()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended, f.stale = ended, f.pokes != pokes; !f.stale {
		f.told = 0
	}
	if len(entries) > 0 && entries[len(entries)-1].Serial > f.last() {
		f.entries = entries
	}
	return nil
}

// pause waits, and reports whether what was missing came meanwhile.
func (f *feed) pause(ctx context.Context, d time.Duration) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for d > 0 {
		f.mu.Lock()
		stale, news := f.stale, f.news
		f.mu.Unlock()
		if !stale {
			return true, nil
		}
		select {
		case <-timer.C:
			return false, nil
		case <-news:
		case <-ctx.Done():
			return false, &job.Error{Op: "read log", Kind: job.Interrupted, Err: context.Cause(ctx)}
		}
	}
	return false, nil
}
