package boardtest

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// callers is how many calls of a host are under way where a test has many jobs.
const callers = 4

// chunks has each of the hosts go through the numbers below n, a call's worth at a time and
// several calls at once.
func (s *suite) chunks(n int, hosts []*host, do func(h *host, of, from, to int)) {
	s.Helper()
	size := max(min(n/16, board.MaxBatch), 1)
	var all sync.WaitGroup
	for of, h := range hosts {
		var next atomic.Int64
		for range callers {
			all.Go(func() {
				for !s.Failed() {
					from := int(next.Add(int64(size))) - size
					if from >= n {
						return
					}
					do(h, of, from, min(from+size, n))
				}
			})
		}
	}
	all.Wait()
	if s.Failed() {
		s.FailNow()
	}
}

// phase runs a part of a test of many jobs, and says how quick it was.
func (s *suite) phase(what string, n int, do func()) {
	s.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	s.Logf("%s: %d in %v, %.0f a second", what, n, took.Round(time.Millisecond), float64(n)/took.Seconds())
}

// room says what the test and the store take.
func (s *suite) room(what string) {
	s.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.Logf("%s: %d MiB of Go's heap in this process", what, m.HeapAlloc>>20)
	if store, ok := s.driver.(driver.Measurer); ok {
		if u, err := store.Measure(s.within()); err == nil && u.Used > 0 {
			s.Logf("%s: %d MiB in the store", what, u.Used>>20)
		}
	}
}

// A keyring is many unique keys, and the job that has to have each.
type keyring struct {
	*suite
	holders []job.ID
}

// post posts a job with each key, from all hosts, and hands out what came of it.
func (k *keyring) post(what string, how job.OnConflict, hosts []*host, look func(of, n int, r *board.JobResult) bool) {
	k.Helper()
	k.phase(what, len(k.holders)*len(hosts), func() {
		k.chunks(len(k.holders), hosts, func(h *host, of, from, to int) {
			postings := make([]job.Posting, 0, to-from)
			for n := from; n < to; n++ {
				postings = append(postings, job.Posting{Name: "keyed", Unique: job.Unique{Key: key(n), OnConflict: how}})
			}
			results, err := h.Post(h.within(), postings)
			if err != nil {
				k.Error(err)
				return
			}
			for i := range results {
				if n := from + i; !look(of, n, &results[i]) {
					k.Errorf("%s: key %d of %d, which %v has, got %+v", what, n, len(k.holders), k.holders[n], results[i])
					return
				}
			}
		})
	})
}

// key is a name that says its number from the back, so that neighbours are apart in the store.
func key(n int) string {
	b := []byte("customer 000000000")
	for i := len("customer "); n > 0; i, n = i+1, n/10 {
		b[i] = '0' + byte(n%10)
	}
	return string(b)
}

// kept expects of each key that it is still had by its job.
func (k *keyring) kept(what string, hosts ...*host) {
	k.Helper()
	k.post(what, job.Keep, hosts, func(_, n int, r *board.JobResult) bool {
		return r.Err == nil && r.Existing && r.Job.ID == k.holders[n]
	})
}

// uniqueMany: of many keys that two hosts post at once each is had by one job, whatever comes
// for it, also after a restart, and is free when that job has ended.
func uniqueMany(_ *testing.T, s *suite) {
	hosts := []*host{s.start(board.Spec{}), s.start(board.Spec{})}
	k := &keyring{s, make([]job.ID, s.harness.Many)}
	told := [2][]job.ID{k.holders, make([]job.ID, s.harness.Many)}
	var posted atomic.Int64
	k.post("posted by two hosts at once", job.Keep, hosts, func(of, n int, r *board.JobResult) bool {
		if r.Err != nil {
			return false
		}
		if !r.Existing {
			posted.Add(1)
		}
		told[of][n] = r.Job.ID
		return true
	})
	if posted.Load() != int64(s.harness.Many) {
		s.Fatalf("%d jobs were posted with %d keys", posted.Load(), s.harness.Many)
	}
	for n, id := range told[0] {
		if told[1][n] != id {
			s.Fatalf("of key %d one host was told that %v has it, the other that %v has", n, id, told[1][n])
		}
	}
	s.room("with all keys")
	k.kept("KEEP", hosts[0])
	k.post("REJECT", job.Reject, hosts[1:], func(_, n int, r *board.JobResult) bool {
		return job.KindOf(r.Err) == job.AlreadyExists && strings.Contains(r.Err.Error(), k.holders[n].String())
	})
	if !s.harness.NoReplace {
		k.post("REPLACE", job.Replace, hosts[1:], func(_, n int, r *board.JobResult) bool {
			before := k.holders[n]
			if r.Err == nil {
				k.holders[n] = r.Job.ID
			}
			return r.Err == nil && !r.Existing && r.Job.ID != before
		})
		k.kept("KEEP, after that", hosts[0])
	}
	for _, h := range hosts {
		s.until("each key has one open job", func() bool {
			c, err := h.Count(s.within())
			return err == nil && c.Ready == int64(s.harness.Many)
		})
		h.stop()
	}
	var h *host
	s.phase("ready again", s.harness.Many, func() { h = s.start(board.Spec{}) })
	k.kept("KEEP, after a restart", h)
	k.freed(h)
	s.room("at the end")
}

// freed ends some of the jobs, and expects that their keys are free, and no others.
func (k *keyring) freed(h *host) {
	k.Helper()
	r, err := h.Claim(k.within(), board.ClaimRequest{Owner: "worker", Max: min(board.MaxBatch, len(k.holders)/2), Lease: time.Hour})
	k.kind(err, job.NoKind)
	ended := map[job.ID]bool{}
	refs := make([]board.Ref, len(r.Claims))
	for i := range r.Claims {
		ended[r.Claims[i].ID], refs[i] = true, h.ref(&r.Claims[i])
	}
	errs, err := h.Consume(k.within(), refs)
	k.kind(err, job.NoKind)
	for _, err := range errs {
		k.kind(err, job.NoKind)
	}
	if len(ended) == 0 {
		k.Fatal("no job was ended")
	}
	k.post("KEEP, once some have ended", job.Keep, []*host{h}, func(_, n int, r *board.JobResult) bool {
		was := k.holders[n]
		return r.Err == nil && r.Existing != ended[was] && (r.Job.ID == was) != ended[was]
	})
}

// batchMany: a batch of many jobs, which two hosts post and end at once while hosts come and
// go, counts each of them, and is followed by one job.
func batchMany(_ *testing.T, s *suite) {
	n := s.harness.Many
	hosts := []*host{s.start(board.Spec{}), s.start(board.Spec{})}
	_, err := hosts[0].PutBatch(s.within(), "all", &job.Posting{Name: "sum"}, int64(n))
	s.kind(err, job.NoKind)
	posting := job.Posting{Name: "part", Batch: "all"}
	s.phase("posted", n, func() {
		half := []int{n / 2, n - n/2}
		s.chunks(max(half[0], half[1]), hosts, func(h *host, of, from, to int) {
			postings := make([]job.Posting, max(min(to, half[of])-from, 0))
			for i := range postings {
				postings[i] = posting
			}
			results, err := h.Post(h.within(), postings)
			if err != nil {
				s.Error(err)
				return
			}
			for i := range results {
				if results[i].Err != nil {
					s.Error(results[i].Err)
					return
				}
			}
		})
	})
	s.until("the batch is closed", func() bool {
		b, err := hosts[1].Batch(s.within(), "all", 0)
		return err == nil && b.Group.Closed && b.Group.Open == int64(n)
	})
	s.room("with all jobs")
	e := &ender{suite: s}
	s.phase("claimed, and ended", n, func() {
		e.end(hosts, n/2)
		hosts[1].stop()
		e.end([]*host{hosts[0], s.start(board.Spec{})}, n)
	})
	b := hosts[0].finished("all")
	want := driver.Group{Consumed: int64(n) - e.trashed.Load(), Trashed: e.trashed.Load(), Closed: true, Followed: true}
	if b.Group != want || b.ThenID == (job.ID{}) {
		s.Errorf("the batch is done with %+v and %v after it, want %+v and a job", b.Group, b.ThenID, want)
	}
	c, err := hosts[0].Count(s.within())
	s.kind(err, job.NoKind)
	if c.Ready != 1 || c.Claimed != 0 || hosts[0].get(b.ThenID).Name != "sum" {
		s.Errorf("after the batch %d jobs are open and %d claimed, want the one that follows", c.Ready, c.Claimed)
	}
}

// An ender is workers that end jobs of a batch, one of each call's in the trash.
type ender struct {
	*suite
	ended, trashed atomic.Int64
}

// end ends jobs until so many have.
func (e *ender) end(hosts []*host, until int) {
	e.Helper()
	var all sync.WaitGroup
	for _, h := range hosts {
		for range callers {
			all.Go(func() {
				for e.ended.Load() < int64(until) && !e.Failed() {
					e.some(h)
				}
			})
		}
	}
	all.Wait()
	if e.Failed() {
		e.FailNow()
	}
}

// some claims jobs and ends them.
func (e *ender) some(h *host) {
	r, err := h.Claim(e.within(), board.ClaimRequest{Owner: "worker", Names: []string{"part"}, Max: min(e.harness.Many/8, board.MaxBatch), Lease: time.Hour, Wait: 100 * time.Millisecond})
	if err != nil || len(r.Claims) == 0 {
		if err != nil {
			e.Error(err)
		}
		return
	}
	refs := make([]board.Ref, len(r.Claims))
	for i := range r.Claims {
		refs[i] = h.ref(&r.Claims[i])
	}
	errs, err := h.Trash(e.within(), refs[:1], nil, "bad")
	if one(errs, err) != nil {
		e.Error(one(errs, err))
		return
	}
	e.trashed.Add(1)
	if errs, err = h.Consume(e.within(), refs[1:]); err != nil {
		e.Error(err)
		return
	}
	for _, err := range errs {
		if err != nil {
			e.Error(err)
			return
		}
	}
	e.ended.Add(int64(len(refs)))
}
