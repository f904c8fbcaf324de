package boardtest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// postKey posts a job with a key and expects one kind of answer.
func (h *host) postKey(u job.Unique, want job.Kind) board.JobResult {
	h.Helper()
	results, err := h.Post(h.within(), []job.Posting{{Name: "keyed", Details: []byte(`{"n":1}`), Unique: u}})
	h.kind(err, job.NoKind)
	h.kind(results[0].Err, want)
	return results[0]
}

// listed returns the jobs that a filter lists.
func (h *host) listed(filter string) []*job.Job {
	h.Helper()
	page, err := h.List(h.within(), board.ListRequest{Filter: filter, PageSize: 100, Details: true})
	h.kind(err, job.NoKind)
	return page.Jobs
}

// uniqueKeys: of many posters on two hosts at once one gets its job onto the board, and all
// others are told of that one, until it has ended.
func uniqueKeys(_ *testing.T, s *suite) {
	hosts := []*host{s.start(board.Spec{}), s.start(board.Spec{})}
	key := job.Unique{Key: "report of June"}
	for round := range 3 {
		var all sync.WaitGroup
		results := make([]board.JobResult, 12)
		for i := range results {
			all.Go(func() { results[i] = hosts[i%2].postKey(key, job.NoKind) })
		}
		all.Wait()
		made := 0
		for _, r := range results {
			if !r.Existing {
				made++
			}
			if r.Job.ID != results[0].Job.ID || r.Job.Unique != key || string(r.Job.Details) != `{"n":1}` {
				s.Errorf("round %d: told of %v with %+v and the details %s, another poster of %v", round, r.Job.ID, r.Job.Unique, r.Job.Details, results[0].Job.ID)
			}
		}
		if made != 1 {
			s.Fatalf("round %d: %d posters were told that their job is on the board", round, made)
		}
		id := results[0].Job.ID
		rejected := key
		rejected.OnConflict = job.Reject
		if err := hosts[1].postKey(rejected, job.AlreadyExists).Err; !strings.Contains(err.Error(), id.String()) {
			s.Errorf("refused with %q, which does not say that %v has the key", err, id)
		}
		for _, h := range hosts {
			s.until("the job is listed by its key", func() bool {
				list := h.listed(`unique.key = "report of June"`)
				return len(list) == 1 && list[0].ID == id && list[0].Unique == key
			})
			if list := h.listed("unique.key = other"); len(list) != 0 {
				s.Errorf("%d jobs are listed by another key", len(list))
			}
		}
		ref := hosts[round%2].claim(id)
		if r := hosts[1].postKey(key, job.NoKind); !r.Existing || r.Job.ID != id || r.Job.State != job.Claimed {
			s.Errorf("while the job is claimed, a poster is told of %+v", r.Job)
		}
		hosts[round%2].consume(ref)
	}
}

// uniqueWindow: a job has its key for so long from its post, whatever becomes of it.
func uniqueWindow(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	key := job.Unique{Key: "k", Window: 2 * time.Second}
	first := h.postKey(key, job.NoKind).Job
	h.consume(h.claim(first.ID))
	if r := h.postKey(key, job.NoKind); r.Existing && (r.Job.ID != first.ID || r.Job.State != job.Complete) {
		s.Errorf("after the job ended, a poster is told of %+v", r.Job)
	}
	second := job.Unique{Key: "k", Window: time.Hour}
	s.until("the window is over", func() bool { return !h.postKey(second, job.NoKind).Existing })
	if r := h.postKey(job.Unique{Key: "k"}, job.NoKind); !r.Existing || r.Job.Unique != second {
		s.Errorf("within the window of an hour a poster is told of %+v", r.Job)
	}
}

// uniqueTrash: a job in the trash has no key, and needs it to come back.
func uniqueTrash(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	key := job.Unique{Key: "k"}
	first := h.postKey(key, job.NoKind).Job.ID
	s.kind(one(h.Trash(s.within(), nil, []job.ID{first}, "")), job.NoKind)
	second := h.postKey(key, job.NoKind)
	if second.Existing {
		s.Fatalf("a job in the trash has its key: %+v", second.Job)
	}
	err := one(h.Restore(s.within(), []job.ID{first}))
	s.kind(err, job.AlreadyExists)
	if !strings.Contains(err.Error(), second.Job.ID.String()) {
		s.Errorf("not restored for %q, which does not name the job that has the key", err)
	}
	h.consume(h.claim(second.Job.ID))
	s.kind(one(h.Restore(s.within(), []job.ID{first})), job.NoKind)
	if r := h.postKey(key, job.NoKind); !r.Existing || r.Job.ID != first {
		s.Errorf("a job that was restored has not its key: a poster is told of %+v", r.Job)
	}
}

// uniqueLimits: a key that makes no sense is refused, and one at the limits is not.
func uniqueLimits(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	long := strings.Repeat("k", job.MaxUniqueKey)
	for _, c := range []struct {
		unique job.Unique
		want   job.Kind
	}{
		{job.Unique{Key: long}, job.NoKind},
		{job.Unique{Key: long + "k"}, job.Invalid},
		{job.Unique{Key: "a\x00b"}, job.Invalid},
		{job.Unique{Window: time.Hour}, job.Invalid},
		{job.Unique{Key: "short", Window: job.MinUniqueWindow - 1}, job.Invalid},
		{job.Unique{Key: "short", Window: job.MinUniqueWindow}, job.NoKind},
		{job.Unique{Key: "long", Window: job.MaxUniqueWindow}, job.NoKind},
		{job.Unique{Key: "longer", Window: job.MaxUniqueWindow + 1}, job.Invalid},
	} {
		h.postKey(c.unique, c.want)
	}
}

// uniqueReplace: a posting takes the place of an unclaimed job that has its key, and of no
// other; of many at once the last one stands, and each of the others was canceled for the
// next.
func uniqueReplace(_ *testing.T, s *suite) {
	h, other := s.start(board.Spec{History: time.Hour}), s.start(board.Spec{History: time.Hour})
	replace := job.Unique{Key: "k", OnConflict: job.Replace}
	if s.harness.NoReplace {
		h.postKey(replace, job.Unsupported)
		return
	}
	first := h.post(job.Posting{Name: "keyed", Unique: replace, Operations: []job.NewOperation{{Name: "step"}}})
	r := h.postKey(replace, job.NoKind)
	second := r.Job
	if r.Existing || second.ID == first.ID || second.Unique.Key != "k" {
		s.Fatalf("got %+v in place of %v", r, first.ID)
	}
	if j := other.get(first.ID); j.State != job.Complete || j.Outcome != job.Canceled || j.LastReason != "replaced" || j.OperationStatus != job.OpCanceled {
		s.Errorf("the job that was replaced is %v, %v for %q, its operations %v", j.State, j.Outcome, j.LastReason, j.OperationStatus)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { []*host{h, other}[i%2].postKey(replace, job.NoKind) })
	}
	all.Wait()
	var last job.ID
	for _, host := range []*host{h, other} {
		s.until("one job has the key, and is open", func() bool {
			list := host.listed("unique.key = k")
			if len(list) == 1 {
				last = list[0].ID
			}
			return len(list) == 1 && host.get(last).State == job.Unclaimed
		})
	}
	if last == second.ID {
		s.Errorf("job %v was replaced by none of eight", second.ID)
	}
	ref := other.claim(last)
	if err := h.postKey(replace, job.AlreadyExists).Err; !strings.Contains(err.Error(), last.String()) {
		s.Errorf("refused with %q, which does not name the claimed job %v", err, last)
	}
	other.consume(ref)
	h.postKey(replace, job.NoKind)
}
