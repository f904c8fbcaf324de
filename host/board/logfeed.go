package board

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// logs is what this host has at hand of its jobs' logs: the last chunk of those
// that it appended to, and the whole of those that somebody follows.
type logs struct {
	mu    sync.Mutex
	tails map[job.ID]*list.Element // of *heldTail
	order list.List                // least recently appended to first
	feeds map[job.ID]*feed
}

// maxTails bounds how many last chunks are kept. An append to a log whose last chunk
// is not kept begins a new chunk.
const maxTails = 2048

type heldTail struct {
	id job.ID
	record.Tail
}

// tail returns the last chunk of a log, if it is at hand and has room.
func (l *logs) tail(id job.ID, state *record.Log) (record.Tail, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.tails[id]
	if !ok || len(state.Chunks) == 0 {
		return record.Tail{}, false
	}
	t, c := e.Value.(*heldTail), state.Chunks[len(state.Chunks)-1]
	if t.First != c.First || t.Last != state.Last || len(t.Data) != c.Size || c.Size >= record.ChunkSize {
		return record.Tail{}, false
	}
	return t.Tail, true
}

// appended takes note of entries that the store took.
func (l *logs) appended(id job.ID, entries []job.LogEntry, tail record.Tail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tails == nil {
		l.tails = make(map[job.ID]*list.Element)
	}
	if e, ok := l.tails[id]; ok {
		l.order.MoveToBack(e)
		e.Value = &heldTail{id, tail}
	} else {
		l.tails[id] = l.order.PushBack(&heldTail{id, tail})
		if l.order.Len() > maxTails {
			delete(l.tails, l.order.Remove(l.order.Front()).(*heldTail).id)
		}
	}
	if f := l.feeds[id]; f != nil {
		f.push(entries)
	}
}

// changed tells those who follow a job's log that the job changed.
func (l *logs) changed(c *driver.Change) {
	l.mu.Lock()
	f := l.feeds[c.Job]
	if f == nil && c.Record != nil && !isOpen(c.Record.State) {
		if e, ok := l.tails[c.Job]; ok {
			l.order.Remove(e)
			delete(l.tails, c.Job)
		}
	}
	l.mu.Unlock()
	if f == nil {
		return
	}
	last := int64(unknown)
	if c.Record != nil && isOpen(c.Record.State) {
		if s, err := record.ReadStatus(c.Record.Status); err == nil {
			last = s.Log.Last
		}
	}
	f.poke(last)
}

// lost tells everybody who follows a log that changes may have been missed.
func (l *logs) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.feeds {
		f.poke(unknown)
	}
}

// follow returns the feed of a job's log. The caller has to call unfollow with it.
func (l *logs) follow(id job.ID) *feed {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.feeds[id]
	if f == nil {
		f = &feed{id: id, stale: true, told: unknown, news: make(chan struct{})}
		if l.feeds == nil {
			l.feeds = make(map[job.ID]*feed)
		}
		l.feeds[id] = f
	}
	f.followers++
	return f
}

func (l *logs) unfollow(f *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.followers--; f.followers == 0 {
		delete(l.feeds, f.id)
	}
}

// FollowLog streams the entries of a job's log after a serial, and with follow
// goes on with those that come until the job has ended, is in the trash, or ctx
// ends.
func (b *Board) FollowLog(ctx context.Context, id job.ID, newerThan int64, follow bool) iter.Seq2[job.LogEntry, error] {
	return func(yield func(job.LogEntry, error) bool) {
		if _, err := b.serving(ctx); err != nil {
			yield(job.LogEntry{}, err)
			return
		}
		f := b.logs.follow(id)
		defer b.logs.unfollow(f)
		for failed := 0; ctx.Err() == nil; {
			entries, ended, news, err := b.logAfter(ctx, f, newerThan)
			if failed++; err != nil && follow && failed < followTries && errors.Is(err, job.Unavailable) {
				_ = sleep.For(ctx, feedPause<<failed) // the end of ctx is seen above
				continue
			}
			if err != nil {
				yield(job.LogEntry{}, err)
				return
			}
			failed = 0
			for i := range entries {
				if !yield(entries[i], nil) {
					return
				}
				newerThan = entries[i].Serial
			}
			if len(entries) > 0 && follow {
				continue
			}
			if ended || !follow {
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
			}
		}
	}
}

// LogPage is a part of a job's log.
type LogPage struct {
	Entries []job.LogEntry
	Last    int64 // serial to go on after
	Ended   bool  // the job has ended, or is in the trash: nothing comes after Last for now
}

// ReadLog returns up to most entries (0: MaxLogBatch) after the serial newerThan. If
// there is none yet, it waits for one; when the wait is over, the page is empty.
func (b *Board) ReadLog(ctx context.Context, id job.ID, newerThan int64, most int, wait time.Duration) (LogPage, error) {
	if most < 0 || most > MaxLogBatch {
		return LogPage{}, job.Errorf(job.Invalid, "max: want 1 to %d, or 0 for %d, got %d", MaxLogBatch, MaxLogBatch, most)
	}
	if most == 0 {
		most = MaxLogBatch
	}
	if _, err := b.serving(ctx); err != nil {
		return LogPage{}, err
	}
	waiting, cancel := waitUntil(ctx, wait)
	defer cancel()
	f := b.logs.follow(id)
	defer b.logs.unfollow(f)
	for {
		entries, ended, news, err := b.logAfter(ctx, f, newerThan)
		if err != nil {
			return LogPage{}, err
		}
		if len(entries) > 0 || ended || wait <= 0 {
			entries, more := entries[:min(most, len(entries))], len(entries) > most
			page := LogPage{Entries: entries, Last: newerThan, Ended: ended && !more}
			if n := len(entries); n > 0 {
				page.Last = entries[n-1].Serial
			}
			return page, nil
		}
		if _, err := waitChange(waiting, news, nil); err != nil {
			return LogPage{Last: newerThan}, nil // the wait is over: an empty answer
		}
	}
}
