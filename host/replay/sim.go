package replay

import (
	"container/heap"
	"context"
	"slices"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/ranking"
)

// sim goes through a tape with one set of policies.
type sim struct {
	*eventLog

	eligibility []*rule
	ordering    *rule
	now         int64
	decided     int64 // when the board decided on the present claim
	spent       int64 // jobs that policies by time were asked about on account of the time
	coarse      bool  // they were not each time

	jobs     []standing
	slotJobs []int32
	delayed  timers
	classes  map[int32]*class
	uses     int64
	arrivals []arrival // jobs as they came to stand open
	unscored []int32
	counts   *counts // nil: the order does not go by counts

	served []served
	errors int64
}

// standing is how a job stands in the replay.
type standing struct {
	place   place
	stamp   uint32 // changes whenever what is said of its place is void
	as      int32
	attempt int32
	score   int64
	since   int64 // from when on it could have been claimed
}

type place uint8

const (
	away    place = iota // not yet there, or gone
	waiting              // for its time
	open
	taken
)

// served is what came of one claim.
type served struct {
	job  int32 // -1: there was none for this worker
	wait int64
}

// arrival is a job that came to stand open, if its stamp is still this one.
type arrival struct {
	job   int32
	stamp uint32
}

// maxSpent is about how many jobs are shown to policies by time anew because the time
// is another one: where there would be more, it moves for them in coarser steps.
const maxSpent = 64_000_000

func newSim(t *eventLog, rules board.Rules) *sim {
	s := &sim{
		eventLog: t, jobs: make([]standing, t.jobs), slotJobs: make([]int32, t.slots), classes: map[int32]*class{},
		served: make([]served, t.slots),
	}
	for i := range rules.Eligibility {
		s.eligibility = append(s.eligibility, newRule(&rules.Eligibility[i], t))
	}
	if rules.Ordering != nil {
		s.ordering = newRule(rules.Ordering, t)
		s.counts = newCounts(s.ordering)
	}
	return s
}

// all returns every rule.
func (s *sim) all() []*rule {
	if s.ordering == nil {
		return s.eligibility
	}
	return append(slices.Clip(s.eligibility), s.ordering)
}

// run goes through the tape.
func (s *sim) run(ctx context.Context) error {
	s.now = s.from
	for _, as := range s.begins {
		s.put(s.as[as].number, as, 0)
	}
	for i := range s.events {
		e := &s.events[i]
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.now = e.at
		switch e.kind {
		case puts:
			s.puts(e)
		case leaves:
			if j := &s.jobs[e.job]; j.place == open || j.place == waiting {
				s.move(e.job, away)
			}
		case claims:
			if err := s.claim(ctx, e); err != nil {
				return err
			}
		case ends, returns:
			s.end(e)
		}
	}
	s.due()
	return nil
}

// puts has a job stand open, or says anew how it does.
func (s *sim) puts(e *event) {
	j := &s.jobs[e.job]
	if j.place == taken {
		j.as = e.as
		return
	}
	since := j.since
	if j.place == away {
		since = 0
	}
	s.put(e.job, e.as, since)
}

// end ends the claim of a slot.
func (s *sim) end(e *event) {
	n := s.slotJobs[e.slot]
	if n < 0 {
		return
	}
	if e.kind == ends {
		s.move(n, away)
		return
	}
	j := &s.jobs[n]
	j.attempt -= e.refund
	if was := &s.as[e.as].order; n == e.job {
		j.as = e.as
	} else if was.NotBefore.UnixNano() > s.now { // the wait that the recorded one had to have
		again := *s.as[j.as].Job
		again.NotBefore = was.NotBefore
		s.as = append(s.as, s.as[j.as])
		last := &s.as[len(s.as)-1]
		last.Job, last.order.NotBefore = &again, was.NotBefore
		j.as = int32(len(s.as) - 1)
	}
	s.put(n, j.as, s.now)
}

// put has a job stand in the line. Since is 0 for one that was just posted.
func (s *sim) put(n, as int32, since int64) {
	j, d := &s.jobs[n], &s.as[as]
	if since == 0 {
		j.attempt = d.order.Attempt
		since = d.order.CreatedAt.UnixNano()
	}
	due := int64(0)
	if !d.order.NotBefore.IsZero() {
		due = d.order.NotBefore.UnixNano()
	}
	j.as, j.since = as, max(since, due)
	if due > s.now {
		s.move(n, waiting)
		heap.Push(&s.delayed, timer{due, arrival{n, j.stamp}})
		return
	}
	s.opens(n)
}

// opens has a job be one that can be claimed now.
func (s *sim) opens(n int32) {
	s.move(n, open)
	s.arrivals = append(s.arrivals, arrival{n, s.jobs[n].stamp})
	s.unscored = append(s.unscored, n)
	s.jobs[n].score = 0
}

// move gives a job another place.
func (s *sim) move(n int32, to place) {
	j := &s.jobs[n]
	if s.counts != nil {
		s.counts.move(s, n, j.place, to)
	}
	j.place = to
	j.stamp++
}

// due opens what waited for its time.
func (s *sim) due() {
	for len(s.delayed) > 0 && s.delayed[0].at <= s.now {
		a := heap.Pop(&s.delayed).(timer).arrival
		if j := &s.jobs[a.job]; j.place == waiting && j.stamp == a.stamp {
			s.opens(a.job)
		}
	}
}

// look has the policies see the time, if it is another one for them. It reports
// whether it is.
func (s *sim) look() bool {
	if span := s.to - s.from; span > 0 && float64(s.spent) > maxSpent*(float64(s.now-s.from)/float64(span)+0.01) {
		s.coarse = true
		return false
	}
	judged, ordered := false, s.ordering != nil && s.ordering.look(s.decided)
	for _, r := range s.eligibility {
		judged = r.look(s.decided) || judged
	}
	if !judged && !ordered {
		return false
	}
	clear(s.classes)
	s.arrivals = s.arrivals[:0]
	if !ordered {
		return true
	}
	if s.counts != nil {
		s.counts.serial++
	}
	s.unscored = s.unscored[:0]
	for n := range s.jobs {
		if s.jobs[n].place == open {
			s.unscored = append(s.unscored, int32(n))
		}
	}
	s.spent += int64(len(s.unscored))
	return true
}

// claim takes the first job that somebody may have.
func (s *sim) claim(ctx context.Context, e *event) error {
	s.decided = e.decided
	s.due()
	n, err := s.choose(ctx, e)
	if err != nil {
		return err
	}
	s.slotJobs[e.slot] = n
	s.served[e.slot] = served{job: n}
	if n >= 0 {
		s.served[e.slot].wait = max(0, s.now-s.jobs[n].since)
		s.move(n, taken)
		s.jobs[n].attempt++
	}
	return nil
}

// choose returns the job for a claim; -1: there is none.
func (s *sim) choose(ctx context.Context, e *event) (int32, error) {
	if e.taker < 0 {
		return s.given(ctx, e)
	}
	for range ranking.MaxEdges {
		s.look()
		if err := s.score(ctx); err != nil {
			return -1, err
		}
		c := s.class(e.taker)
		if err := s.judge(ctx, c); err != nil {
			return -1, err
		}
		if !s.look() { // until a policy by time says of nothing that it is over by now
			return s.first(ctx, c)
		}
	}
	return -1, nil
}

// given returns the recorded job, if it stands open.
func (s *sim) given(ctx context.Context, e *event) (int32, error) {
	if s.jobs[e.job].place != open {
		return -1, nil
	}
	if s.counts == nil || e.strange {
		return e.job, nil
	}
	// A board ranks the keys for such a claim as of now, and does not go through its order.
	if err := s.score(ctx); err != nil {
		return -1, err
	}
	return e.job, s.counts.rank(ctx, s, []int32{s.counts.of[e.job]})
}

// timers are jobs that wait for their time, the next one first.
type timers []timer

type timer struct {
	at      int64
	arrival arrival
}

func (t timers) Len() int { return len(t) }
func (t timers) Less(a, b int) bool {
	return t[a].at < t[b].at || t[a].at == t[b].at && t[a].arrival.job < t[b].arrival.job
}
func (t timers) Swap(a, b int) { t[a], t[b] = t[b], t[a] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
