package config

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/timetable"
	"github.com/boardd/boardd/sdk/job"
)

// overlaps are what may become of a tick while the job of the one before is open.
var overlaps = []string{"allow", "skip", "cancel"} // in the order of board.Overlap

// priorities are those of jobs, the default first.
var priorities = []string{"normal", "very_high", "high", "low", "very_low"}

// schedules reads the schedules of a board.
func (l *loader) schedules(s *section, b *Board) {
	first := map[string]Place{}
	for _, inner := range s.named("schedule") {
		if before, twice := first[inner.label]; twice {
			inner.problem(inner.at, "there is a schedule of this name already, at %s", before)
			continue
		}
		first[inner.label] = inner.at
		known := len(l.problems)
		schedule := inner.schedule(b)
		inner.close("board", b.Tenant+"/"+b.Name, "schedule", inner.label)
		if len(l.problems) == known { // else it would be complained about again
			inner.judge(schedule)
		}
		b.Schedules = append(b.Schedules, schedule)
		if b.Observe {
			inner.problem(inner.at, "the board is only observed: nothing is posted on it")
		}
	}
}

func (s *section) schedule(b *Board) board.Schedule {
	r := board.Schedule{Name: s.label}
	cron, ok := s.text("cron")
	r.Cron = cron
	r.Every, _ = s.duration("every", timetable.MinEvery, timetable.MaxEvery)
	if s.has("cron") == s.has("every") {
		s.problem(s.at, "want either cron or every")
	}
	r.Timezone, _ = s.text("timezone")
	if s.has("timezone") && !s.has("cron") {
		s.wrong("timezone", "it is for cron; every counts the time that passes")
	}
	if ok {
		s.timetable("cron", cron, "")
		s.timetable("timezone", "@daily", r.Timezone)
	}
	r.Overlap = board.Overlap(slices.Index(overlaps, s.choice("overlap", overlaps...))) //nolint:gosec // it is one of them
	r.CatchUp, _ = s.duration("catch_up", board.MinCatchUp, board.MaxCatchUp)
	r.Jitter, _ = s.duration("jitter", 0, board.MaxJitter)
	if inner := s.single("job"); inner != nil {
		r.Job = inner.posting(b, s.label)
		inner.close("board", b.Tenant+"/"+b.Name, "schedule", s.label, "job")
	} else if len(s.take("job")) == 0 {
		s.problem(s.at, "job: it is missing; want the block of what is posted")
	}
	return r
}

// timetable reports what is wrong with a setting by which a timetable is made, with others
// that are right. The text of such an error begins with the setting.
func (s *section) timetable(name, cron, zone string) {
	if _, err := timetable.Cron(cron, zone); err != nil {
		s.problem(s.place(name), "%v", err)
	}
}

// posting reads what a schedule posts.
func (s *section) posting(b *Board, schedule string) job.Posting {
	var p job.Posting
	if p.Name, _ = s.text("name"); !s.has("name") {
		s.wrong("name", "it is missing")
	}
	if details := s.object("details"); s.has("details") {
		p.Details = details
	}
	p.Priority, _ = job.ParsePriority(strings.ToUpper(s.choice("priority", priorities...)))
	p.Labels = s.labels()
	if n, ok := s.number("max_attempts", 1, math.MaxInt32); ok {
		p.MaxAttempts = int32(n) //nolint:gosec // it is within
	}
	p.Timeout, _ = s.duration("timeout", job.MinLease, job.MaxTimeout)
	var unique job.Unique // as far as it is right
	if inner := s.single("unique"); inner != nil {
		known := len(s.loader.problems)
		var ok bool
		switch p.Unique.Key, ok = inner.text("key"); {
		case !inner.has("key"):
			inner.wrong("key", "it is missing")
		case ok && p.Unique.Key == "":
			inner.wrong("key", "want a key of 1 to %d bytes", job.MaxUniqueKey)
		}
		p.Unique.Window, _ = inner.duration("window", job.MinUniqueWindow, job.MaxUniqueWindow)
		words := []string{"keep", "replace", "reject"}                                                   // in the order of job.OnConflict
		p.Unique.OnConflict = job.OnConflict(slices.Index(words, inner.choice("on_conflict", words...))) //nolint:gosec // it is one of them
		inner.close("board", b.Tenant+"/"+b.Name, "schedule", schedule, "job", "unique")
		if len(s.loader.problems) == known {
			unique = p.Unique
		}
	}
	s.judgePosting(job.Posting{Name: p.Name, Labels: p.Labels, Unique: unique})
	return p
}

// judgePosting asks the board about each of those settings of a posting that could be read.
func (s *section) judgePosting(p job.Posting) {
	parts := []job.Posting{{Name: "x", Unique: p.Unique}}
	if s.has("name") && !s.bad["name"] {
		parts = append(parts, job.Posting{Name: p.Name})
	}
	if !s.bad["labels"] {
		parts = append(parts, job.Posting{Name: "x", Labels: p.Labels})
	}
	for _, part := range parts {
		err := board.CheckSchedule(board.Schedule{Name: "x", Every: timetable.MinEvery, Job: part})
		if err == nil {
			continue
		}
		text := strings.TrimPrefix(job.MessageOf(err), "schedule.job.")
		s.problem(s.place(text[:strings.IndexAny(text+":", ".:")]), "%s", text)
	}
}

// labels reads the labels of a job, in the order of their keys.
func (s *section) labels() []job.Label {
	texts := map[string]string{}
	if err := json.Unmarshal(s.object("labels"), &texts); err != nil {
		s.wrong("labels", "want an object of texts, such as { customer = \"acme\" }")
	}
	return job.LabelsOf(texts)
}

// judge asks the board whether a schedule is one.
func (s *section) judge(schedule board.Schedule) {
	err := board.CheckSchedule(schedule)
	if err == nil {
		return
	}
	s.problem(s.at, "%s", strings.TrimPrefix(strings.TrimPrefix(job.MessageOf(err), "schedule."), "schedule: "))
}
