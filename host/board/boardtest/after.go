package boardtest

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

func waits(ids ...job.ID) job.Posting {
	p := job.Posting{Name: "dependent"}
	for _, id := range ids {
		p.After = append(p.After, job.Prerequisite{ID: id})
	}
	return p
}

// after: not before each of the others has ended well.
func after(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	first, second := h.post(job.Posting{Name: "first"}).ID, h.post(job.Posting{Name: "second"}).ID
	dependent := h.post(waits(first, second))
	if !dependent.Held || len(dependent.After) != 2 || dependent.After[0].ID != first {
		s.Fatalf("posted: %+v", dependent)
	}
	late := waits(first)
	late.NotBefore = time.Now().Add(time.Hour)
	delayed := h.post(late).ID
	chain := h.post(waits(dependent.ID)).ID
	r, err := h.Claim(s.within(), board.ClaimRequest{Owner: "worker", IDs: []job.ID{dependent.ID}})
	s.kind(err, job.NoKind)
	if len(r.Failures) != 1 || job.KindOf(r.Failures[0].Err) != job.NotEligible || !strings.Contains(r.Failures[0].Err.Error(), first.String()) {
		s.Fatalf("claimed while it waits: %+v", r)
	}
	if x, err := h.Explain(s.within(), dependent.ID, "", nil); err != nil || x.Verdict != "HELD" {
		s.Errorf("%+v %v", x, err)
	}
	h.consume(h.claim(first))
	s.until("the delayed one is let go", func() bool { return !h.get(delayed).Held })
	if j := h.get(delayed); j.NotBefore.IsZero() || j.State != job.Unclaimed {
		s.Errorf("it was delayed besides: %+v", j)
	}
	if j := h.get(dependent.ID); !j.Held {
		s.Errorf("let go before the second ended: %+v", j)
	}
	h.consume(h.claim(second))
	s.until("the dependent is let go", func() bool { return !h.get(dependent.ID).Held })
	if !h.get(chain).Held {
		s.Error("the end of the chain was let go too early")
	}
	h.consume(h.claim(dependent.ID))
	s.until("the end of the chain is let go", func() bool { return !h.get(chain).Held })

	// What has ended already counts.
	if j := h.post(waits(first, second)); j.Held {
		s.Errorf("held, though everything has ended: %+v", j)
	}
	// From the trash it comes back without waiting again.
	s.kind(one(h.Trash(s.within(), nil, []job.ID{chain}, "")), job.NoKind)
	s.kind(one(h.Restore(s.within(), []job.ID{chain})), job.NoKind)
	if h.get(chain).Held {
		s.Error("restored, it waits again")
	}
	wrongAfter(s, h, first)
}

// wrongAfter: itself, unknown jobs and circles are refused.
func wrongAfter(s *suite, h *host, known job.ID) {
	s.Helper()
	id := func(n byte) job.ID { return job.ID{0xaf, n} }
	named := func(n byte, after ...job.ID) job.Posting {
		p := waits(after...)
		p.ID = id(n)
		return p
	}
	statuses := waits(known)
	statuses.After[0].Statuses = []job.OperationStatus{job.OpRunning}
	for name, tt := range map[string]struct {
		postings []job.Posting
		refused  []int
	}{
		"itself":           {[]job.Posting{named(1, id(1))}, []int{0}},
		"unknown":          {[]job.Posting{named(1, id(2))}, []int{0}},
		"twice":            {[]job.Posting{named(1, known, known)}, []int{0}},
		"nothing":          {[]job.Posting{named(1, job.ID{})}, []int{0}},
		"status":           {[]job.Posting{statuses}, []int{0}},
		"two in a circle":  {[]job.Posting{named(1, id(2)), named(2, id(1))}, []int{0, 1}},
		"behind a circle":  {[]job.Posting{named(1, id(2)), named(2, id(3)), named(3, id(2)), {Name: "plain"}}, []int{0, 1, 2}},
		"behind a refusal": {[]job.Posting{named(1, id(2)), {ID: id(2)}}, []int{0, 1}},
		"too many":         {[]job.Posting{named(1, make([]job.ID, job.MaxAfter+1)...)}, []int{0}},
	} {
		results, err := h.Post(s.within(), tt.postings)
		s.kind(err, job.NoKind)
		refused := map[int]bool{}
		for _, i := range tt.refused {
			refused[i] = true
		}
		for i, r := range results {
			if got := job.KindOf(r.Err); refused[i] && got != job.Invalid || !refused[i] && got != job.NoKind {
				s.Errorf("%s: posting %d: %v", name, i, r.Err)
			}
		}
	}
	// Of one call, in any order.
	results, err := h.Post(s.within(), []job.Posting{named(11, id(12)), named(12, id(13)), {ID: id(13), Name: "last"}})
	s.kind(err, job.NoKind)
	for i, r := range results {
		s.kind(r.Err, job.NoKind)
		if r.Job.Held != (i < 2) {
			s.Errorf("posting %d of a chain: %+v", i, r.Job)
		}
	}
	h.consume(h.claim(id(13)))
	s.until("the chain of one call begins", func() bool { return !h.get(id(12)).Held })
	// An equal posting again is answered with what stands.
	results, err = h.Post(s.within(), []job.Posting{named(11, id(12))})
	s.kind(err, job.NoKind)
	s.kind(results[0].Err, job.NoKind)
}

// afterFailed: an end that a job did not wait for cancels it, with the reason.
func afterFailed(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	end := map[string]struct {
		how func(id job.ID)
		as  job.OperationStatus
	}{
		"consumed": {func(id job.ID) { h.consume(h.claim(id)) }, job.OpSuccess},
		"failed": {func(id job.ID) {
			r := h.claim(id)
			h.finish(r, 0, job.OpError, "")
			h.consume(r)
		}, job.OpError},
		"canceled": {func(id job.ID) { h.cancel(id, false, true, wasCanceled) }, job.OpCanceled},
		"trashed":  {func(id job.ID) { s.kind(one(h.Trash(s.within(), nil, []job.ID{id}, "")), job.NoKind) }, job.OpError},
	}
	all := []job.OperationStatus{job.OpSuccess, job.OpError, job.OpCanceled}
	for name, e := range end {
		first := h.post(steps(1)).ID
		dependents := map[job.OperationStatus]job.ID{}
		for _, want := range all {
			p := steps(2)
			p.After = []job.Prerequisite{{ID: first, Statuses: []job.OperationStatus{want}}}
			dependents[want] = h.post(p).ID
		}
		p := waits(first)
		p.After[0].Statuses = all
		whichever := h.post(p).ID
		e.how(first)
		for want, id := range dependents {
			if want == e.as {
				s.until(name+": it is let go", func() bool { return !h.get(id).Held })
				if j := h.get(id); j.State != job.Unclaimed {
					s.Errorf("%s: %+v", name, j)
				}
				continue
			}
			s.until(name+": it is canceled", func() bool { return h.get(id).State == job.Complete })
			if j := h.shape(id, "cc", job.OpCanceled); j.Outcome != job.Canceled || !strings.Contains(j.LastReason, first.String()) || !strings.Contains(j.LastReason, e.as.String()) {
				s.Errorf("%s: %+v", name, j)
			}
		}
		s.until(name+": whatever the end", func() bool { return !h.get(whichever).Held })
	}
	// Cancelling goes on along a chain.
	first := h.post(job.Posting{Name: "first"}).ID
	second := h.post(waits(first)).ID
	third := h.post(waits(second)).ID
	h.cancel(first, false, true, wasCanceled)
	s.until("the chain is canceled", func() bool { return h.get(third).State == job.Complete })
}

// afterHosts: two hosts let each job go once.
func afterHosts(_ *testing.T, s *suite) {
	a, b := s.start(board.Spec{History: time.Hour}), s.start(board.Spec{History: time.Hour})
	const n = 50
	first := a.post(job.Posting{Name: "first"}).ID
	ids := make([]job.ID, n)
	for i := range ids {
		h := a
		if i%2 == 1 {
			h = b
		}
		ids[i] = h.post(waits(first)).ID
	}
	b.consume(a.claim(first))
	for _, id := range ids {
		s.until("both hosts see it let go", func() bool { return !a.get(id).Held && !b.get(id).Held })
	}
	seen := map[job.ID]bool{}
	for len(seen) < n {
		r, err := b.Claim(s.within(), board.ClaimRequest{Owner: "worker", Max: n, Wait: time.Minute})
		s.kind(err, job.NoKind)
		if len(r.Claims) == 0 {
			s.Fatalf("%d of %d jobs were claimed", len(seen), n)
		}
		for _, c := range r.Claims {
			if seen[c.ID] {
				s.Errorf("%v was claimed twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

// afterRestart: what ended while no host looked is found at the next start.
func afterRestart(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	first := h.post(job.Posting{Name: "first"}).ID
	dependent := h.post(waits(first)).ID
	r := h.claim(first)
	h.stop()
	h = s.start(board.Spec{})
	if !h.get(dependent).Held {
		s.Error("it does not wait any more")
	}
	h.consume(r)
	h.stop() // perhaps before it was let go
	h = s.start(board.Spec{})
	s.until("it is let go", func() bool { return !h.get(dependent).Held })
}
