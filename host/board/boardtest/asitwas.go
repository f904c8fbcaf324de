package boardtest

import (
	"reflect"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// whole reads a job with all that belongs to it, and as PostAsItWas takes it.
func (h *host) whole(id job.ID) (*job.Job, *board.WholeJob) {
	h.Helper()
	r, err := h.Get(h.within(), []job.ID{id}, board.GetOptions{Details: true, Operations: true, Log: true, AsItWas: true})
	if err == nil {
		err = r[0].Err
	}
	h.kind(err, job.NoKind)
	w, err := h.ReadAsItWas(r[0].Job.AsItWas)
	h.kind(err, job.NoKind)
	return r[0].Job, w
}

// putBack posts a job as it was, once.
func (h *host) putBack(w *board.WholeJob) {
	h.Helper()
	for _, want := range []job.Kind{job.NoKind, job.AlreadyExists} {
		r, err := h.PostAsItWas(h.within(), []*board.WholeJob{w})
		h.kind(err, job.NoKind)
		h.kind(r[0].Err, want)
	}
}

// asItWas has jobs that were taken away for good put back as they were: one with everything that
// a job can have, one in the trash, and one that ended.
func asItWas(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	p := steps(3)
	p.Priority, p.Labels, p.Book = job.High, []job.Label{{Key: "k", Value: "v"}}, job.Book{UUID: "b", Name: "a book"}
	p.Details, p.Timeout, p.Unique = []byte(`{"n":1.50}`), time.Hour, job.Unique{Key: "only one"}
	rich, aside, ended := h.post(p).ID, h.post(job.Posting{Name: "aside"}).ID, h.post(steps(1)).ID
	r := h.claim(rich)
	h.begin(r, 0, job.OpRunning)
	h.finish(r, 0, job.OpSuccess, `{"r":true}`)
	h.begin(r, 1, job.OpRunning)
	h.say(r, 1, "one", "two")
	h.kind(one(h.Abandon(h.within(), []board.Ref{r}, board.AbandonOptions{Reason: "not today"})), job.NoKind)
	h.kind(one(h.Trash(h.within(), nil, []job.ID{aside}, "wrong")), job.NoKind)
	r = h.claim(ended)
	h.begin(r, 0, job.OpRunning)
	h.finish(r, 0, job.OpSuccess, `"well"`)
	h.consume(r)
	before, w := h.whole(rich)
	h.kind(one(h.Trash(h.within(), nil, []job.ID{rich}, "to be put back")), job.NoKind)
	h.same(before, w)
	h.same(h.whole(aside))
	h.same(h.whole(ended))
	if c := h.claim(rich); h.get(rich).Attempt != 2 {
		h.Errorf("claimed again as %+v, the job is %+v: want attempt 2", c, h.get(rich))
	}
	results, err := h.Post(h.within(), []job.Posting{{Name: "another", Unique: p.Unique}})
	h.kind(err, job.NoKind)
	if !results[0].Existing || results[0].Job.ID != rich {
		h.Errorf("a posting with the key of a job that was put back: %+v", results[0])
	}
}

// same takes a job that ended, or is in the trash, away for good, puts it back, and compares.
func (h *host) same(before *job.Job, w *board.WholeJob) {
	h.Helper()
	h.kind(one(h.Purge(h.within(), []job.ID{before.ID})), job.NoKind)
	h.putBack(w)
	after, _ := h.whole(before.ID)
	for _, j := range []*job.Job{before, after} {
		j.Sequence, j.ModifiedAt, j.AsItWas = 0, time.Time{}, nil
	}
	if !reflect.DeepEqual(before, after) {
		h.Errorf("job %s was %+v, and is %+v after it was put back", before.Name, before, after)
	}
}
