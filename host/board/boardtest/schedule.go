package boardtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

func (h *host) put(s board.Schedule, want job.Kind) board.Schedule {
	h.Helper()
	if s.Name == "" {
		s.Name = "s"
	}
	if s.Job.Name == "" {
		s.Job.Name = "ticked"
	}
	put, err := h.PutSchedule(h.within(), s, nil)
	h.kind(err, want)
	return put
}

// ticked returns how many jobs of a name are open.
func (h *host) ticked(name string) int { return len(h.listed("name = " + name)) }

// scheduleTicks: two hosts post each tick of a schedule once, none twice after it was
// purged, those of an outage when one of them is back, and none once it is deleted.
func scheduleTicks(_ *testing.T, s *suite) {
	hosts := []*host{s.start(board.Spec{}), s.start(board.Spec{})}
	began := time.Now()
	put := hosts[0].put(board.Schedule{Every: time.Second}, job.NoKind)
	if put.Version != 1 || put.CatchUp != board.DefaultCatchUp || put.NextAt.Sub(began) > 3*time.Second || !put.LastAt.IsZero() {
		s.Errorf("the schedule was put as %+v", put)
	}
	var first job.ID
	s.until("three ticks", func() bool {
		for _, j := range hosts[1].listed("name = ticked") {
			if first == (job.ID{}) {
				first = j.ID
				s.kind(one(hosts[0].Trash(s.within(), nil, []job.ID{first}, "")), job.NoKind)
				s.kind(one(hosts[1].Purge(s.within(), []job.ID{first})), job.NoKind)
			}
		}
		return hosts[1].ticked("ticked") >= 3
	})
	for _, h := range hosts {
		h.stop()
	}
	stopped := time.Now()
	s.until("an outage of two seconds", func() bool { return time.Since(stopped) > 2*time.Second })
	again := s.start(board.Spec{})
	before, err := again.Schedule(s.within(), "s")
	s.kind(err, job.NoKind)
	until := time.Now()
	s.until("what the outage missed, and what came since", func() bool {
		now, err := again.Schedule(s.within(), "s")
		s.kind(err, job.NoKind)
		return now.LastAt.After(until)
	})
	s.kind(again.DeleteSchedule(s.within(), "s"), job.NoKind)
	_, err = again.Schedule(s.within(), "s")
	s.kind(err, job.NotFound)
	ended := time.Now()
	jobs := again.listed("name = ticked")
	slices.SortFunc(jobs, func(a, b *job.Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
	ticks := int(ended.Sub(put.NextAt)/time.Second) + 1
	if n := len(jobs) + 1; n < ticks-1 || n > ticks {
		s.Errorf("from %v to %v %d jobs were posted and one purged: want one of each second; the last tick was %v before the outage", put.NextAt, ended, n-1, before.LastAt)
	}
	if slices.ContainsFunc(jobs, func(j *job.Job) bool { return j.ID == first }) {
		s.Errorf("the tick whose job was purged came again")
	}
	s.until("a tick would have come", func() bool { return time.Since(ended) > 1200*time.Millisecond })
	if n := again.ticked("ticked"); n != len(jobs) {
		s.Errorf("%d ticks came after the schedule was deleted", n-len(jobs))
	}
}

// scheduleOverlap: a tick is left out, or cancels, while the job of the one before is open.
func scheduleOverlap(_ *testing.T, s *suite) {
	h, other := s.start(board.Spec{}), s.start(board.Spec{})
	h.put(board.Schedule{Name: "skips", Every: time.Second, Overlap: board.OverlapSkip, Job: job.Posting{Name: "skips"}}, job.NoKind)
	other.put(board.Schedule{Name: "cancels", Every: time.Second, Overlap: board.OverlapCancel, Job: job.Posting{Name: "cancels"}}, job.NoKind)
	ticks := func(name string) board.Schedule {
		r, err := h.Schedule(s.within(), name)
		s.kind(err, job.NoKind)
		return r
	}
	canceled := map[job.ID]bool{}
	s.until("ticks of both", func() bool {
		if n := h.ticked("skips"); n > 1 {
			s.Fatalf("%d jobs of a schedule that skips are open", n)
		}
		if last := ticks("cancels").LastID; last != (job.ID{}) {
			canceled[last] = true
		}
		return len(canceled) > 2 && strings.Contains(ticks("skips").Problem, "is open")
	})
	last := ticks("cancels").LastID
	for id := range canceled {
		if id != last {
			s.until("the job of an earlier tick is canceled", func() bool { j := h.get(id); return j.State == job.Complete && j.Outcome == job.Canceled })
		}
	}
	open := ticks("skips").LastID
	h.consume(other.claim(open))
	s.until("a tick after the job ended", func() bool { return ticks("skips").LastID != open })
}

// scheduleChanges: schedules are changed by version, paused, triggered and listed; what
// makes no sense is refused.
func scheduleChanges(_ *testing.T, s *suite) {
	h, other := s.start(board.Spec{}), s.start(board.Spec{})
	yearly := board.Schedule{Name: "b", Cron: "@yearly", Timezone: "Europe/Berlin", Job: job.Posting{
		Name: "report", Details: []byte(`{"n":1}`), Labels: []job.Label{{Key: "customer", Value: "acme"}}, Unique: job.Unique{Key: "k"},
		Operations: []job.NewOperation{{Name: "step", Input: []byte("1")}},
	}}
	zero := uint64(0)
	put, err := h.PutSchedule(s.within(), yearly, &zero)
	s.kind(err, job.NoKind)
	_, err = other.PutSchedule(s.within(), yearly, &zero)
	s.kind(err, job.Aborted)
	if berlin := put.NextAt.Add(time.Hour); berlin.Month() != time.January || berlin.Day() != 1 || berlin.Hour() != 0 {
		s.Errorf("the next tick is at %v", put.NextAt)
	}
	h.put(board.Schedule{Name: "a", Every: time.Hour, Paused: true}, job.NoKind)
	list, err := other.Schedules(s.within(), "", 10)
	s.kind(err, job.NoKind)
	if len(list) != 2 || list[0].Name != "a" || !list[0].Paused || !list[0].NextAt.IsZero() || list[1].Name != "b" || list[1].NextAt.IsZero() {
		s.Errorf("listed %+v", list)
	}
	if list, err = other.Schedules(s.within(), "a", 1); err != nil || len(list) != 1 || list[0].Name != "b" {
		s.Errorf("behind the first one %+v are listed, %v", list, err)
	}
	j, err := other.TriggerSchedule(s.within(), "b", job.ID{})
	s.kind(err, job.NoKind)
	got := h.get(j.ID)
	if got.Name != "report" || string(got.Details) != `{"n":1}` || len(got.Labels) != 1 || got.Unique.Key != "k" || len(got.Operations) != 1 {
		s.Errorf("a schedule posted %+v", got)
	}
	again, err := h.TriggerSchedule(s.within(), "b", job.ID{})
	s.kind(err, job.NoKind)
	if again.ID != j.ID {
		s.Errorf("triggered again it posted %v, though %v has its key", again.ID, j.ID)
	}
	for _, pause := range []bool{true, false} {
		r, err := h.PauseSchedule(s.within(), "b", pause)
		s.kind(err, job.NoKind)
		if r.Paused != pause || r.NextAt.IsZero() != pause || r.LastID != j.ID {
			s.Errorf("paused: %v: %+v", pause, r)
		}
	}
	_, err = h.PauseSchedule(s.within(), "none", true)
	s.kind(err, job.NotFound)
	_, err = h.TriggerSchedule(s.within(), "none", job.ID{})
	s.kind(err, job.NotFound)
	s.kind(h.DeleteSchedule(s.within(), "none"), job.NotFound)
	long := strings.Repeat("n", job.MaxName)
	for why, c := range map[string]struct {
		change func(*board.Schedule)
		want   job.Kind
	}{
		"as it was":            {func(*board.Schedule) {}, job.NoKind},
		"a long name":          {func(s *board.Schedule) { s.Name = long }, job.NoKind},
		"a name too long":      {func(s *board.Schedule) { s.Name = long + "n" }, job.Invalid},
		"both":                 {func(s *board.Schedule) { s.Every = time.Hour }, job.Invalid},
		"neither":              {func(s *board.Schedule) { s.Cron = "" }, job.Invalid},
		"a wrong cron":         {func(s *board.Schedule) { s.Cron = "61 * * * *" }, job.Invalid},
		"a wrong zone":         {func(s *board.Schedule) { s.Timezone = "Berlin" }, job.Invalid},
		"little catch-up":      {func(s *board.Schedule) { s.CatchUp = board.MinCatchUp - 1 }, job.Invalid},
		"the least catch-up":   {func(s *board.Schedule) { s.CatchUp = board.MinCatchUp }, job.NoKind},
		"the most catch-up":    {func(s *board.Schedule) { s.CatchUp = board.MaxCatchUp }, job.NoKind},
		"much catch-up":        {func(s *board.Schedule) { s.CatchUp = board.MaxCatchUp + 1 }, job.Invalid},
		"the most jitter":      {func(s *board.Schedule) { s.Jitter = board.MaxJitter }, job.NoKind},
		"much jitter":          {func(s *board.Schedule) { s.Jitter = board.MaxJitter + 1 }, job.Invalid},
		"a job with a uuid":    {func(s *board.Schedule) { s.Job.ID = job.ID{1} }, job.Invalid},
		"a job that waits":     {func(s *board.Schedule) { s.Job.NotBefore = time.Now() }, job.Invalid},
		"a job without a name": {func(s *board.Schedule) { s.Job.Name = "" }, job.Invalid},
	} {
		changed := yearly
		c.change(&changed)
		if _, err := h.PutSchedule(s.within(), changed, nil); job.KindOf(err) != c.want {
			s.Errorf("%s: got %v, want %v", why, err, c.want)
		}
	}
}
