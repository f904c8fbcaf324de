package boardtest

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// history: ended jobs stay with all that belongs to them, and are listed by time.
func history(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	var ids []job.ID
	for i := range 3 {
		p := steps(1)
		p.Name, p.Details, p.Labels = "kept", []byte(`{ "n" : 1.50 }`), []job.Label{{Key: "k", Value: "v"}}
		id := h.post(p).ID
		r := h.claim(id)
		h.say(r, 0, "hello")
		switch i {
		case 0:
			h.finish(r, 0, job.OpSuccess, `"result"`)
		case 1:
			h.finish(r, 0, job.OpError, "")
		}
		h.consume(r)
		ids = append(ids, id)
	}
	h.cancel(h.post(job.Posting{Name: "other"}).ID, false, true, wasCanceled)
	page, err := h.List(s.within(), board.ListRequest{States: []job.State{job.Complete}, Filter: "name = kept AND labels.k = v AND details.n = 1.5", Details: true, Operations: true})
	s.kind(err, job.NoKind)
	if len(page.Jobs) != 3 {
		s.Fatalf("%d jobs are listed, want 3", len(page.Jobs))
	}
	for i, j := range page.Jobs {
		if j.ID != ids[i] || string(j.Details) != `{ "n" : 1.50 }` && !s.harness.Rewritten || j.Owner != "worker" || len(j.Operations) != 1 || j.EndedAt.IsZero() || j.Attempt != 1 {
			s.Errorf("listed: %+v", j)
		}
		if log := h.log(j.ID, 0); len(log) != 1 || log[0].Message != "hello" {
			s.Errorf("its log: %+v", log)
		}
	}
	if got := [3]job.Outcome{page.Jobs[0].Outcome, page.Jobs[1].Outcome, page.Jobs[2].Outcome}; got != [3]job.Outcome{job.Consumed, job.Failed, job.Consumed} {
		s.Errorf("the outcomes: %v", got)
	}
	s.kind(one(h.Purge(s.within(), ids[:1])), job.NoKind)
	results, err := h.Get(s.within(), ids[:1], board.GetOptions{})
	s.kind(err, job.NoKind)
	s.kind(results[0].Err, job.NotFound)
}

// noHistory: without one, it is known that a job ended and how, and no more.
func noHistory(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	id := h.post(job.Posting{Name: "gone", Details: []byte(`{"secret":1}`)}).ID
	h.consume(h.claim(id))
	if j := h.get(id); j.State != job.Complete || j.Outcome != job.Consumed || j.Details != nil || j.Owner != "" {
		s.Errorf("%+v", j)
	}
	id = h.post(steps(2)).ID
	r := h.claim(id)
	h.finish(r, 0, job.OpError, "")
	h.consume(r)
	h.consume(r) // again: it is recognised by how the job ended
	if j := h.get(id); j.Outcome != job.Failed || len(j.Operations) != 0 {
		s.Errorf("%+v", j)
	}
}

// archive: out of the trash, as failed.
func archive(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	id := h.post(steps(2)).ID
	s.kind(one(h.Archive(s.within(), []job.ID{id})), job.NotEligible)
	r := h.claim(id)
	h.finish(r, 0, job.OpSuccess, "")
	s.kind(one(h.Trash(s.within(), []board.Ref{r}, nil, "no paper")), job.NoKind)
	for range 2 {
		s.kind(one(h.Archive(s.within(), []job.ID{id})), job.NoKind)
	}
	if j := h.shape(id, "se", job.OpError); j.State != job.Complete || j.Outcome != job.Failed || j.LastReason != "no paper" {
		s.Errorf("%+v", j)
	}
	s.kind(one(h.Archive(s.within(), []job.ID{{99}})), job.NotFound)
	counts, err := h.Count(s.within())
	s.kind(err, job.NoKind)
	if counts.Ready+counts.Delayed+counts.Claimed != 0 {
		s.Errorf("%+v", counts)
	}
}

// books are written only over the version that their writer knows.
func books(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	version := func(n uint64) *uint64 { return &n }
	put := func(content string, ifVersion *uint64) (uint64, error) {
		return h.PutBook(s.within(), board.Book{UUID: "b-1", Name: "book", Content: []byte(content)}, ifVersion)
	}
	first, err := put(`{ "a" : 1.0 }`, version(0))
	s.kind(err, job.NoKind)
	_, err = put(`{}`, version(0))
	s.kind(err, job.Aborted)
	second, err := put(`{"a":2}`, version(first))
	s.kind(err, job.NoKind)
	_, err = put(`{"a":3}`, version(first))
	s.kind(err, job.Aborted)
	got, err := h.Book(s.within(), "b-1")
	if err != nil || string(got.Content) != `{"a":2}` || got.Version != second || got.Name != "book" || got.Source != "boardd" {
		s.Errorf("%+v %v", got, err)
	}
	_, err = put(`{ "b" : 1e0 }`, nil)
	s.kind(err, job.NoKind)
	if got, err = h.Book(s.within(), "b-1"); err != nil || string(got.Content) != `{ "b" : 1e0 }` {
		s.Errorf("%+v %v", got, err)
	}
	_, err = h.Book(s.within(), "b-2")
	s.kind(err, job.NotFound)
	for _, content := range []string{`{`, `{"a":1,"a":2}`, `"` + strings.Repeat("x", job.MaxBook-1) + `"`} {
		_, err = put(content, nil)
		s.kind(err, job.Invalid)
	}
	_, err = put(`"`+strings.Repeat("x", job.MaxBook-2)+`"`, nil)
	s.kind(err, job.NoKind)
	_, err = h.PutBook(s.within(), board.Book{}, nil)
	s.kind(err, job.Invalid)
}
