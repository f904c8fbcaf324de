package board

import (
	"encoding/json"
	"time"

	"github.com/boardd/boardd/host/board/timetable"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// scheduleRecord is a schedule as its document holds it. The names within Job are those of
// job.Posting: a test holds them.
type scheduleRecord struct {
	Cron     string        `json:"cron,omitempty"`
	Every    time.Duration `json:"every,omitempty"` // in nanoseconds, as the others
	Timezone string        `json:"timezone,omitempty"`
	Job      job.Posting   `json:"job"`
	Overlap  Overlap       `json:"overlap,omitempty"`
	CatchUp  time.Duration `json:"catchUp"`
	Jitter   time.Duration `json:"jitter,omitempty"`
	Paused   bool          `json:"paused,omitempty"`
	Anchor   time.Time     `json:"anchor"` // from which Every is counted
	Since    time.Time     `json:"since"`  // ticks before are not its own
	Revision uint64        `json:"revision"`
	Declared bool          `json:"declared,omitempty"` // in the configuration of a host; see SetSchedules

	// Imported is when the pause of the board began in which the schedule was imported: it has
	// no ticks while that goes on.
	Imported time.Time `json:"imported,omitzero"`
}

// table is the record's timetable.
func (r *scheduleRecord) table() (*timetable.Timetable, error) {
	if r.Every != 0 {
		return timetable.Every(r.Every, r.Anchor)
	}
	return timetable.Cron(r.Cron, r.Timezone)
}

// from is after when the ticks come that are still to be handled, where last was.
func (r *scheduleRecord) from(last time.Time) time.Time { return later(r.Since, last) }

// late is until when ticks are too late by now. The catch-up counts from the latest that the
// jitter may make a tick, since one whose own is short waits for those before it.
func (r *scheduleRecord) late(now time.Time) time.Time { return now.Add(-r.Jitter - r.CatchUp) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// show is the schedule as people see it.
func (r *scheduleRecord) show(name string, last tickRecord) Schedule {
	s := Schedule{
		Name: name, Cron: r.Cron, Every: r.Every, Timezone: r.Timezone, Job: r.Job, Overlap: r.Overlap,
		CatchUp: r.CatchUp, Jitter: r.Jitter, Paused: r.Paused, Version: r.Revision,
		LastAt: last.Posted, LastID: last.ID, Problem: last.Problem, Declared: r.Declared,
	}
	if table, err := r.table(); err == nil && !r.Paused {
		s.NextAt = table.Next(later(r.from(last.At), r.late(time.Now())))
	}
	return s
}

// record is the schedule's record after the one before, which may be nil.
func (s *Schedule) record(before *scheduleRecord, now time.Time) *scheduleRecord {
	next := &scheduleRecord{
		Cron: s.Cron, Every: s.Every, Timezone: s.Timezone, Job: s.Job, Overlap: s.Overlap,
		CatchUp: s.CatchUp, Jitter: s.Jitter, Paused: s.Paused, Anchor: now, Since: now,
	}
	if before != nil {
		next.Imported = before.Imported
	}
	if before != nil && before.Cron == s.Cron && before.Every == s.Every && before.Timezone == s.Timezone && before.Paused == s.Paused {
		next.Anchor, next.Since = before.Anchor, before.Since
	}
	return next
}

// encode is the record as its document holds it.
func (r *scheduleRecord) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, &job.Error{Op: "put schedule", Kind: job.Internal, Err: err}
	}
	if len(data) > driver.MaxDocument/8 {
		return nil, job.Errorf(job.Invalid, "schedule: %d bytes are too many: want at most %d", len(data), driver.MaxDocument/8)
	}
	return data, nil
}
