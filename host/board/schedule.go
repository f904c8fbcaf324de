package board

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits of schedules.
const (
	MaxSchedules   = 100_000 // of a board
	MinCatchUp     = 10 * time.Second
	DefaultCatchUp = 10 * time.Minute
	MaxCatchUp     = 30 * 24 * time.Hour
	MaxJitter      = time.Hour
)

// The schedules of a board are among its settings, which are watched, under this and their
// names, as are the keys that their ticks take. What came of their ticks is not watched, and has a space of its own.
const (
	schedulePrefix = "schedule/"
	tickSpace      = "ticks"
)

// Overlap says what becomes of a tick while the job of the one before is open.
type Overlap uint8

// What becomes of it.
const (
	OverlapAllow Overlap = iota
	OverlapSkip
	OverlapCancel // the job of the tick before is canceled, if need be by its worker
)

// A Schedule posts a job again and again.
type Schedule struct {
	Name     string
	Cron     string        // either this
	Every    time.Duration // or this
	Timezone string        // of Cron: a name of the IANA database; "": UTC
	Job      job.Posting   // without an ID and a NotBefore
	Overlap  Overlap
	CatchUp  time.Duration // how late a tick may be posted; 0: DefaultCatchUp
	Jitter   time.Duration // each tick is late by so much at most, always by the same
	Paused   bool

	Version  uint64
	NextAt   time.Time // zero: never
	LastAt   time.Time // the last tick whose job is known to be posted; zero: none
	LastID   job.ID
	Declared bool // in the configuration of a server, where alone it can be changed

	Problem string // why the last tick was not posted; "": it was
}

// Ticks returns the next times of the schedule, at most so many: NextAt and those after it.
func (s *Schedule) Ticks(most int) (list []time.Time) {
	r := scheduleRecord{Cron: s.Cron, Every: s.Every, Timezone: s.Timezone, Anchor: s.NextAt}
	table, err := r.table()
	for at := s.NextAt; err == nil && !at.IsZero() && len(list) < most; at = table.Next(at) {
		list = append(list, at)
	}
	return list
}

// check refuses what is no schedule, and fills in what is left out.
func (s *Schedule) check(caps *driver.Capabilities, now time.Time) error {
	switch err := checkText("schedule.name", s.Name, job.MaxName); {
	case err != nil:
		return err
	case s.Name == "":
		return job.Errorf(job.Invalid, "schedule.name: want a name of 1 to %d bytes", job.MaxName)
	case !caps.Keys:
		return job.Errorf(job.Unsupported, "this board's driver keeps no keys, by which each tick is posted once")
	case (s.Cron == "") == (s.Every == 0):
		return job.Errorf(job.Invalid, "schedule: want either cron or every")
	case s.Every != 0 && s.Timezone != "":
		return job.Errorf(job.Invalid, "schedule.timezone: it is for cron; every counts the time that passes")
	case s.Overlap > OverlapCancel:
		return job.Errorf(job.Invalid, "schedule.overlap: want ALLOW, SKIP or CANCEL")
	case s.CatchUp != 0 && (s.CatchUp < MinCatchUp || s.CatchUp > MaxCatchUp):
		return job.Errorf(job.Invalid, "schedule.catchUp: want %s to %s, got %s", MinCatchUp, MaxCatchUp, s.CatchUp)
	case s.Jitter < 0 || s.Jitter > MaxJitter:
		return job.Errorf(job.Invalid, "schedule.jitter: want 0s to %s, got %s", MaxJitter, s.Jitter)
	case s.Job.ID != (job.ID{}):
		return job.Errorf(job.Invalid, "schedule.job.uuid: each tick has a uuid of its own: want none")
	case !s.Job.NotBefore.IsZero():
		return job.Errorf(job.Invalid, "schedule.job.notBefore: a tick may be claimed as soon as it is posted: want none")
	}
	if s.CatchUp == 0 {
		s.CatchUp = DefaultCatchUp
	}
	r := scheduleRecord{Cron: s.Cron, Every: s.Every, Timezone: s.Timezone, Anchor: now}
	if _, err := r.table(); err != nil {
		return job.Errorf(job.Invalid, "schedule.%v", err)
	}
	if _, _, err := checkWhole(&s.Job, caps, now); err != nil {
		return job.Errorf(job.KindOf(err), "schedule.job.%s", job.MessageOf(err))
	}
	return nil
}

// PutSchedule writes a schedule if its present version is ifVersion (0: there is no such
// schedule yet; nil: any version), else the error is Aborted. What it ticks by may be
// changed: ticks that were due by then stand, and none comes twice.
func (b *Board) PutSchedule(ctx context.Context, s Schedule, ifVersion *uint64) (Schedule, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return Schedule{}, err
	}
	if err := b.scheduler.declares(s.Name); err != nil {
		return Schedule{}, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := s.check(&opened.Capabilities, now); err != nil {
		return Schedule{}, err
	}
	return b.changeSchedule(ctx, s.Name, func(before *scheduleRecord, err error) (*scheduleRecord, error) {
		if err != nil && ifVersion != nil { // whoever says no version may write a damaged one anew
			return nil, err
		}
		present := uint64(0)
		if before != nil {
			present = before.Revision
		}
		switch {
		case before != nil && before.Declared:
			return nil, isDeclared(s.Name, "a")
		case ifVersion != nil && *ifVersion != present:
			return nil, &job.Error{Op: "put schedule", Kind: job.Aborted, Message: "version: the schedule has another version by now: read it again"}
		case before == nil && b.scheduler.count() >= MaxSchedules:
			return nil, tooManySchedules()
		}
		return s.record(before, now), nil
	})
}

func tooManySchedules() error {
	return job.Errorf(job.QuotaExceeded, "a board has at most %d schedules", MaxSchedules)
}

// PauseSchedule stops a schedule, or lets it go on. What was due while it was paused is left
// out.
func (b *Board) PauseSchedule(ctx context.Context, name string, pause bool) (Schedule, error) {
	if _, err := b.changing(ctx); err != nil {
		return Schedule{}, err
	}
	return b.changeSchedule(ctx, name, func(before *scheduleRecord, err error) (*scheduleRecord, error) {
		switch {
		case err != nil:
			return nil, err
		case before == nil:
			return nil, noSchedule(name)
		}
		next := *before
		if next.Paused != pause {
			next.Paused, next.Since = pause, time.Now().UTC().Truncate(time.Millisecond)
		}
		return &next, nil
	})
}

func noSchedule(name string) error {
	return job.Errorf(job.NotFound, "there is no schedule %q on this board", shorten.To(name, 64))
}

// changeSchedule writes what change makes of a schedule, and does so again if somebody else
// was faster. Nothing is written if that is the record before itself, which is nil if there is
// none, or with an error of kind Corrupt if it cannot be read.
func (b *Board) changeSchedule(ctx context.Context, name string, change func(before *scheduleRecord, err error) (*scheduleRecord, error)) (Schedule, error) {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
	for try := 0; ; try++ {
		old, before, err := b.readSchedule(ctx, name)
		if errors.Is(err, job.NotFound) {
			err = nil
		}
		if err != nil && !errors.Is(err, job.Corrupt) {
			return Schedule{}, err
		}
		next, err := change(before, err)
		if err != nil {
			return Schedule{}, err
		}
		if next == before {
			b.scheduleIs(name, before, old.Version)
			return before.show(name, b.readTick(ctx, name)), nil
		}
		next.Revision = 1
		if before != nil {
			next.Revision = before.Revision + 1
		}
		data, err := next.encode()
		if err != nil {
			return Schedule{}, err
		}
		switch version, err := docs.Put(ctx, space, driver.Document{Name: schedulePrefix + name, Data: data}, old.Version); {
		case err == nil:
			b.scheduleIs(name, next, version)
			return next.show(name, b.readTick(ctx, name)), nil
		case try == tries || !errors.Is(err, job.Aborted):
			return Schedule{}, err
		}
	}
}

// readSchedule returns a schedule's document and what it says.
func (b *Board) readSchedule(ctx context.Context, name string) (driver.Document, *scheduleRecord, error) {
	if name == "" || textProblem(name, job.MaxName) != "" {
		return driver.Document{}, nil, job.Errorf(job.Invalid, "name: want 1 to %d bytes of text", job.MaxName)
	}
	doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}, schedulePrefix+name)
	if errors.Is(err, job.NotFound) {
		return doc, nil, noSchedule(name)
	}
	if err != nil {
		return doc, nil, err
	}
	var r scheduleRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		return doc, nil, &job.Error{Op: "get schedule", Kind: job.Corrupt, Message: "the schedule's record in the store cannot be read", Err: err}
	}
	return doc, &r, nil
}

// Schedule returns a schedule, or NotFound.
func (b *Board) Schedule(ctx context.Context, name string) (Schedule, error) {
	if _, err := b.serving(ctx); err != nil {
		return Schedule{}, err
	}
	_, r, err := b.readSchedule(ctx, name)
	if err != nil {
		return Schedule{}, err
	}
	return r.show(name, b.readTick(ctx, name)), nil
}

// Schedules returns up to most schedules whose names come after the given one, in the order
// of their names. One that cannot be read shows that as its problem.
func (b *Board) Schedules(ctx context.Context, after string, most int) ([]Schedule, error) {
	if _, err := b.serving(ctx); err != nil {
		return nil, err
	}
	docs, err := b.driver.Documents().List(ctx, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}, schedulePrefix+after, most)
	if err != nil {
		return nil, err
	}
	docs = slices.DeleteFunc(docs, func(d driver.Document) bool { return !strings.HasPrefix(d.Name, schedulePrefix) })
	last, err := b.readTicks(ctx, docs, after)
	if err != nil {
		return nil, err
	}
	list := make([]Schedule, len(docs))
	for i := range docs {
		var r scheduleRecord
		name := strings.TrimPrefix(docs[i].Name, schedulePrefix)
		if err := json.Unmarshal(docs[i].Data, &r); err != nil {
			list[i] = Schedule{Name: name, Problem: "its record in the store cannot be read"}
			continue
		}
		list[i] = r.show(name, last[name])
	}
	return list, nil
}

// DeleteSchedule takes a schedule away. Jobs that it posted stand.
func (b *Board) DeleteSchedule(ctx context.Context, name string) error {
	if _, err := b.changing(ctx); err != nil {
		return err
	}
	if name == "" || textProblem(name, job.MaxName) != "" {
		return noSchedule(name)
	}
	if err := b.scheduler.declares(name); err != nil {
		return err
	}
	return b.dropSchedule(ctx, name, func(r *scheduleRecord) error {
		if r != nil && r.Declared {
			return isDeclared(name, "a")
		}
		return nil
	})
}

// dropSchedule takes a schedule away, and what is known of its ticks, if allowed says nothing
// against its record, which is nil if it cannot be read.
func (b *Board) dropSchedule(ctx context.Context, name string, allowed func(*scheduleRecord) error) error {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
	for try := 0; ; try++ {
		doc, r, err := b.readSchedule(ctx, name)
		if err != nil && !errors.Is(err, job.Corrupt) {
			return err
		}
		if err := allowed(r); err != nil {
			return err
		}
		switch err := docs.Delete(ctx, space, schedulePrefix+name, doc.Version); {
		case err == nil:
			b.scheduleIs(name, nil, 0)
			if err := b.deleteDocument(ctx, tickSpace, name); !errors.Is(err, job.NotFound) {
				return err
			}
			return nil
		case errors.Is(err, job.NotFound):
			return noSchedule(name)
		case try == tries || !errors.Is(err, job.Aborted):
			return err
		}
	}
}

func lastIsOpen(by job.ID) error {
	return job.Errorf(job.AlreadyExists, "the job of the schedule's last tick is open: %s", by)
}

// TriggerSchedule posts a schedule's job now, with an ID of the caller's or a new one, whether
// the schedule is paused or not. Its next tick comes when it would have.
func (b *Board) TriggerSchedule(ctx context.Context, name string, id job.ID) (*job.Job, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return nil, err
	}
	_, r, err := b.readSchedule(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.Overlap != OverlapAllow {
		last := b.readTick(ctx, name)
		by, err := b.overlap(ctx, r.Overlap, []job.ID{last.ID, b.tickID(name, last.At)}, id)
		if err != nil {
			return nil, err
		}
		if by != (job.ID{}) {
			return nil, lastIsOpen(by)
		}
	}
	posting := r.Job
	if posting.ID = id; id == (job.ID{}) {
		posting.ID = b.random.newID(time.Now())
	}
	result, by, err := b.postTick(ctx, opened, &posting, driver.Key{Name: scheduleKey(name), Open: r.Overlap == OverlapSkip})
	switch {
	case err != nil:
		return nil, err
	case by != (job.ID{}):
		return nil, lastIsOpen(by)
	case result.Err != nil:
		return nil, result.Err
	}
	b.ticked(ctx, name, func(t *tickRecord) { t.Posted, t.ID, t.Problem = time.Now().UTC(), result.Job.ID, "" })
	return result.Job, nil
}
