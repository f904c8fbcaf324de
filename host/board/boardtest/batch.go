package boardtest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// ofBatch posts jobs of a batch.
func (h *host) ofBatch(name string, n int) []job.ID {
	h.Helper()
	ids := make([]job.ID, n)
	for i := range ids {
		ids[i] = h.post(job.Posting{Name: "part", Batch: name}).ID
	}
	return ids
}

// stands expects what a batch counts.
func (h *host) stands(name string, want driver.Group) board.Batch {
	h.Helper()
	b, err := h.Batch(h.within(), name, 0)
	h.kind(err, job.NoKind)
	if b.Group != want {
		h.Fatalf("the batch %q stands at %+v, want %+v", name, b.Group, want)
	}
	return b
}

// finished waits for a batch to be done.
func (h *host) finished(name string) board.Batch {
	h.Helper()
	for {
		b, err := h.Batch(h.within(), name, 2*time.Second)
		h.kind(err, job.NoKind)
		if b.Done() {
			return b
		}
		select {
		case <-h.within().Done():
			h.Fatalf("the batch %q is not done: %+v", name, b)
		default:
		}
	}
}

// batchCounts: a batch counts its jobs wherever they go, and is listed by its name.
func batchCounts(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	other := s.start(board.Spec{})
	_, err := h.Batch(s.within(), "b", 0)
	s.kind(err, job.NotFound)
	_, err = h.CloseBatch(s.within(), "b")
	s.kind(err, job.NotFound)
	ids := h.ofBatch("b", 4)
	other.ofBatch("another", 1)
	h.stands("b", driver.Group{Open: 4})
	if j := other.get(ids[0]); j.Batch != "b" {
		s.Errorf("the job's batch is %q", j.Batch)
	}
	for _, host := range []*host{h, other} {
		s.until("the jobs are listed by their batch", func() bool { return len(host.listed("batch = b")) == 4 })
	}
	h.consume(h.claim(ids[0]))
	s.kind(one(other.Trash(s.within(), nil, ids[1:2], "")), job.NoKind)
	_, err = h.Cancel(s.within(), ids[2:3], false)
	s.kind(err, job.NoKind)
	other.stands("b", driver.Group{Open: 1, Trashed: 1, Consumed: 1, Canceled: 1})
	for range 2 {
		b, err := other.CloseBatch(s.within(), "b")
		s.kind(err, job.NoKind)
		if !b.Group.Closed || b.Done() {
			s.Errorf("a batch with an open job was closed: %+v", b)
		}
	}
	results, err := h.Post(s.within(), []job.Posting{{Name: "late", Batch: "b"}})
	s.kind(err, job.NoKind)
	s.kind(results[0].Err, job.NotEligible)
	if text := results[0].Err.Error(); !strings.Contains(text, `batch: "b" is closed`) {
		s.Errorf("refused with %q", text)
	}
	h.consume(h.claim(ids[3]))
	if b := other.finished("b"); b.ThenID != (job.ID{}) || b.Group != (driver.Group{Trashed: 1, Consumed: 2, Canceled: 1, Closed: true}) {
		s.Errorf("the batch is done with %+v", b)
	}
}

// batchThen: what follows a batch is posted once, whichever host ends the last job, and
// however many look; a host that starts later posts it, too.
func batchThen(_ *testing.T, s *suite) {
	hosts := []*host{s.start(board.Spec{History: time.Hour}), s.start(board.Spec{History: time.Hour})}
	then := &job.Posting{Name: "sum", Details: []byte(`{"n":12}`), Labels: []job.Label{{Key: "of", Value: "b"}}}
	put, err := hosts[0].PutBatch(s.within(), "b", then, 0)
	s.kind(err, job.NoKind)
	if put.Then == nil || put.ThenID != (job.ID{}) {
		s.Fatalf("put %+v", put)
	}
	again, err := hosts[1].PutBatch(s.within(), "b", then, 0)
	s.kind(err, job.NoKind)
	if again.Then.ID != put.Then.ID {
		s.Errorf("the same batch was put with %v, then with %v", put.Then.ID, again.Then.ID)
	}
	ids := append(hosts[0].ofBatch("b", 6), hosts[1].ofBatch("b", 6)...)
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { hosts[i%2].consume(hosts[i%2].claim(id)) })
	}
	all.Wait()
	if b := hosts[0].stands("b", driver.Group{Consumed: 12}); b.ThenID != (job.ID{}) {
		s.Errorf("an open batch was followed: %+v", b)
	}
	_, err = hosts[1].CloseBatch(s.within(), "b")
	s.kind(err, job.NoKind)
	done := hosts[0].finished("b")
	if done.ThenID != put.Then.ID {
		s.Errorf("followed by %v, want %v", done.ThenID, put.Then.ID)
	}
	if j := hosts[1].get(done.ThenID); j.Name != "sum" || string(j.Details) == "" || len(j.Labels) != 1 || j.Batch != "" {
		s.Errorf("what follows is %+v", j)
	}
	hosts[1].consume(hosts[1].claim(done.ThenID))
	_, err = hosts[0].PutBatch(s.within(), "b", &job.Posting{Name: "another"}, 0)
	s.kind(err, job.Precondition)

	for _, h := range hosts {
		h.stop()
	}
	h := s.start(board.Spec{History: time.Hour})
	<-time.After(100 * time.Millisecond) // a second one would be posted by now, or later
	if list := h.listed("name = sum"); len(list) != 0 {
		s.Errorf("after a restart %d jobs follow a batch that was followed", len(list))
	}
}

// batchRestart: what a host did not come to is done by the next one.
func batchRestart(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	s.kind(h.Pause(s.within(), "maintenance"), job.NoKind) // a paused board's batches wait
	_, err := h.PutBatch(s.within(), "b", &job.Posting{Name: "sum", Batch: "of sums"}, 3)
	s.kind(err, job.NoKind)
	ids := h.ofBatch("b", 3)
	s.kind(one(h.Trash(s.within(), nil, ids, "")), job.NoKind)
	<-time.After(100 * time.Millisecond)
	h.stands("b", driver.Group{Trashed: 3})
	h.stop()

	h = s.start(board.Spec{})
	h.stands("b", driver.Group{Trashed: 3})
	s.kind(h.Resume(s.within()), job.NoKind)
	done := h.finished("b")
	if j := h.get(done.ThenID); j.Name != "sum" || j.Batch != "of sums" {
		s.Errorf("what follows is %+v", j)
	}
	h.stands("of sums", driver.Group{Open: 1})
	results, err := h.Post(s.within(), []job.Posting{{Name: "late", Batch: "b"}})
	s.kind(err, job.NoKind)
	s.kind(results[0].Err, job.NotEligible)
}

// batchLimits: what makes no sense is refused, and what is at the limits is not.
func batchLimits(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	long := strings.Repeat("b", job.MaxBatchName)
	for _, c := range []struct {
		name     string
		then     *job.Posting
		expected int64
		want     job.Kind
	}{
		{long, nil, 1, job.NoKind},
		{long + "b", nil, 1, job.Invalid},
		{"", nil, 1, job.Invalid},
		{"a\x00b", nil, 1, job.Invalid},
		{"b", nil, -1, job.Invalid},
		{"b", nil, board.MaxExpected, job.NoKind},
		{"b", nil, board.MaxExpected + 1, job.Invalid},
		{"b", &job.Posting{}, 0, job.Invalid},
		{"b", &job.Posting{Name: "sum", Batch: "b"}, 0, job.Invalid},
		{"b", &job.Posting{Name: "sum", Unique: job.Unique{Key: "k"}}, 0, job.Invalid},
		{"b", &job.Posting{Name: "sum"}, 0, job.NoKind},
		{"b", &job.Posting{Name: "another"}, 0, job.NoKind},
		{"b", nil, 0, job.NoKind},
	} {
		_, err := h.PutBatch(s.within(), c.name, c.then, c.expected)
		if got := job.KindOf(err); got != c.want {
			s.Errorf("a batch %.20q with %+v and %d: got %v (%v), want %v", c.name, c.then, c.expected, got, err, c.want)
		}
	}
	for name, want := range map[string]job.Kind{long: job.NoKind, long + "b": job.Invalid} {
		results, err := h.Post(s.within(), []job.Posting{{Name: "part", Batch: name}})
		s.kind(err, job.NoKind)
		s.kind(results[0].Err, want)
	}
}

// batchList: each host lists the batches by their names, a page at a time: those that were put
// or closed, and those of which a job is open.
func batchList(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	hosts := []*host{h, s.start(board.Spec{})}
	if names := h.batches(10, nil); len(names) != 0 {
		s.Errorf("a new board has the batches %q", names)
	}
	_, err := hosts[1].PutBatch(s.within(), "put", nil, 9)
	s.kind(err, job.NoKind)
	_, err = h.PutBatch(s.within(), "b", nil, 9)
	s.kind(err, job.NoKind)
	h.ofBatch("named", 2)
	hosts[1].ofBatch("b", 1)
	closed, alone := h.ofBatch("closed", 1), hosts[1].ofBatch("alone", 1)
	_, err = h.CloseBatch(s.within(), "closed")
	s.kind(err, job.NoKind)
	h.post(job.Posting{Name: "of none"})
	all := []string{"alone", "b", "closed", "named", "put"}
	for _, host := range hosts {
		for size := 1; size <= 6; size++ {
			s.until("the batches are listed", func() bool { return slices.Equal(host.batches(size, nil), all) })
		}
	}
	list, _, err := hosts[1].Batches(s.within(), "b", 3, nil)
	s.kind(err, job.NoKind)
	for i, want := range []driver.Group{{Open: 1, Closed: true}, {Open: 2}, {}} {
		if list[i].Group != want {
			s.Errorf("%q stands at %+v, want %+v", list[i].Name, list[i].Group, want)
		}
	}
	if list[2].Expected != 9 {
		s.Errorf("%q expects %d jobs, want 9", list[2].Name, list[2].Expected)
	}

	h.consume(h.claim(closed[0]))
	hosts[1].consume(hosts[1].claim(alone[0])) // nobody said anything of its batch
	h.finished("closed")
	yes, no := true, false
	for _, host := range hosts {
		for size := 1; size <= 5; size++ {
			s.until("a batch is done", func() bool {
				return slices.Equal(host.batches(size, &yes), []string{"closed"}) && slices.Equal(host.batches(size, &no), []string{"b", "named", "put"})
			})
		}
	}
	for after, want := range map[string]job.Kind{"\x00": job.Invalid, strings.Repeat("b", job.MaxBatchName+1): job.Invalid, strings.Repeat("b", job.MaxBatchName): job.NoKind} {
		_, _, err := h.Batches(s.within(), after, 10, nil)
		s.kind(err, want)
	}
}

// batches returns the names of all batches, read in pages.
func (h *host) batches(size int, done *bool) (names []string) {
	h.Helper()
	for after := ""; ; {
		list, next, err := h.Batches(h.within(), after, size, done)
		h.kind(err, job.NoKind)
		if len(list) > size {
			h.Fatalf("a page of %d has %d batches", size, len(list))
		}
		for i := range list {
			names = append(names, list[i].Name)
		}
		if after = next; next == "" {
			return names
		}
	}
}
