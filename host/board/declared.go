package board

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// declareAgain is when what could not be written of the declared schedules is tried again.
const declareAgain = 5 * time.Second

// anyStore keeps whatever a store can.
var anyStore = driver.Capabilities{Keys: true, Replaces: true, Timeouts: true, Encodings: []string{job.JSON.String(), job.Msgpack.String()}}

// CheckSchedule says what is wrong with a schedule, whatever the store.
func CheckSchedule(s Schedule) error {
	now := time.Now()
	if err := s.check(&anyStore, now); err != nil {
		return err
	}
	_, err := s.record(nil, now).encode()
	return err
}

// SetSchedules gives the board the schedules that are declared in its host's configuration:
// those that differ are written as soon as the store is there, and what was declared before
// and is not any more is deleted. No other call changes them but for their pause. Those that
// were not declared stay. What hosts with other configurations write after that stands, and is
// logged, so that two of them do not write forever.
func (b *Board) SetSchedules(list []Schedule) {
	s := &b.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared.list = make(map[string]Schedule, len(list))
	for i := range list {
		s.declared.list[list[i].Name] = list[i]
	}
	s.declared.pending, s.declared.at = true, time.Time{}
	rouse(s.wake)
}

// declaration is what a host's configuration declares of a board's schedules, and how far
// that is in the store.
type declaration struct {
	list    map[string]Schedule // by name
	pending bool                // the store may have others
	unsure  bool                // and it need not have what is known of it
	busy    bool                // somebody is making sure
	at      time.Time           // when that is to be tried again
	news    map[string]bool     // schedules that somebody wrote meanwhile

	trouble map[string]complaint // by schedule; only the one who makes sure uses it
}

// pendingStep is a schedule that is to be written, or deleted if there is none.
type pendingStep struct {
	name     string
	schedule *Schedule
}

// isDeclared is the refusal of a change of a schedule that whose configuration declares.
func isDeclared(name, whose string) error {
	return job.Errorf(job.Precondition, "the schedule %q is declared in %s server's configuration and can only be changed there", shorten.To(name, 64), whose)
}

// declares refuses a change of a schedule that is declared here.
func (s *scheduler) declares(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.declared.list[name]; ok {
		return isDeclared(name, "the")
	}
	return nil
}

// declareAnew has all that is declared looked at in a store that lost changes.
func (s *scheduler) declareAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared.pending, s.declared.unsure, s.declared.at = true, true, time.Time{}
	rouse(s.wake)
}

// declaring returns what is to be written of what is declared, if it is time to, or how long
// that takes.
func (s *scheduler) declaring(now time.Time) (steps []pendingStep, ok bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || !s.declared.pending || s.declared.busy {
		return nil, false, time.Hour
	}
	if wait = s.declared.at.Sub(now); wait > 0 {
		return nil, false, wait
	}
	steps = s.differing()
	s.declared.pending, s.declared.unsure, s.declared.busy = false, false, true
	clear(s.declared.news)
	return steps, true, 0
}

// differing returns what the store does not have as it is declared, by what is known here.
// What is to be deleted comes first, which makes room. It is called with mu held.
func (s *scheduler) differing() (steps []pendingStep) {
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if _, ok := s.declared.list[name]; !ok && s.all[name].record.Declared {
			steps = append(steps, pendingStep{name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.declared.list)) {
		schedule := s.declared.list[name]
		if known := s.all[name]; s.declared.unsure || known == nil || !known.record.declares(&schedule) {
			steps = append(steps, pendingStep{name, &schedule})
		}
	}
	return steps
}

// declaredAll notes whether all that was declared is in the store.
func (s *scheduler) declaredAll(done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared.busy = false
	if !done {
		s.declared.pending, s.declared.at = true, time.Now().Add(declareAgain)
	}
	for name := range s.declared.news {
		s.compare(name)
	}
	rouse(s.wake)
}

// compare looks, after news of a schedule, whether it is as it is declared here, unless that
// is about to be made sure. It is called with mu held.
func (s *scheduler) compare(name string) {
	schedule, ok := s.declared.list[name]
	switch known := s.all[name]; {
	case !ok || !s.synced || s.declared.pending:
	case s.declared.busy:
		s.declared.news[name] = true
	case known == nil || !known.record.declares(&schedule):
		s.disputed(name)
	}
}

// declare takes the steps by which the store gets what is declared. It reports whether that
// is done, as far as it can be.
func (b *Board) declare(ctx context.Context, steps []pendingStep) (done bool) {
	done = true
	for _, step := range steps {
		changed, err := b.take(ctx, &step)
		kind := job.KindOf(err)
		again := err != nil && kind != job.Invalid && kind != job.Unsupported
		done = done && !again
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			b.complainOf(ctx, &step, err, again)
		case changed:
			b.log.InfoContext(ctx, "a schedule was changed as the configuration says", "schedule", step.name, "deleted", step.schedule == nil)
		}
		if kind == job.Unavailable { // for the others, too
			return false
		}
	}
	if done {
		clear(b.scheduler.declared.trouble)
	}
	return done
}

// complainOf logs why a step could not be taken.
func (b *Board) complainOf(ctx context.Context, step *pendingStep, err error, again bool) {
	trouble := b.scheduler.declared.trouble
	c := trouble[step.name]
	if c.due(err.Error(), time.Now()) {
		b.log.ErrorContext(ctx, "a schedule could not be changed as the configuration says",
			"schedule", step.name, "deleted", step.schedule == nil, "error", err, "again", again)
	}
	trouble[step.name] = c
}

// take takes one step, and reports whether that changed anything.
func (b *Board) take(ctx context.Context, step *pendingStep) (changed bool, err error) {
	if step.schedule == nil {
		return b.undeclare(ctx, step.name)
	}
	return b.declareOne(ctx, *step.schedule)
}

// declareOne writes a declared schedule, whatever stands there, unless it stands already.
func (b *Board) declareOne(ctx context.Context, s Schedule) (written bool, err error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := s.check(&opened.Capabilities, now); err != nil {
		return false, err
	}
	_, err = b.changeSchedule(ctx, s.Name, func(before *scheduleRecord, _ error) (*scheduleRecord, error) {
		switch written = false; {
		case before == nil && b.scheduler.count() >= MaxSchedules:
			return nil, tooManySchedules()
		case before.declares(&s):
			return before, nil
		}
		written = true
		return s.declared(before, now), nil
	})
	return written, err
}

// declared is the record of a declared schedule. Whether it is paused is no matter of the
// configuration, as it is not for boards.
func (s *Schedule) declared(before *scheduleRecord, now time.Time) *scheduleRecord {
	as := *s
	as.Paused = before != nil && before.Paused
	next := as.record(before, now)
	next.Declared = true
	return next
}

// declares reports whether a record, which may be nil, is that of a declared schedule.
func (r *scheduleRecord) declares(s *Schedule) bool {
	if r == nil {
		return false
	}
	as := *s
	if as.CatchUp == 0 {
		as.CatchUp = DefaultCatchUp
	}
	want := as.declared(r, r.Since)
	want.Revision = r.Revision
	is, err := json.Marshal(r)
	if err != nil {
		return false
	}
	wanted, err := json.Marshal(want)
	return err == nil && bytes.Equal(is, wanted)
}

// undeclare deletes a schedule if it is one that was declared, and not what somebody wrote
// meanwhile.
func (b *Board) undeclare(ctx context.Context, name string) (deleted bool, err error) {
	if _, err := b.changing(ctx); err != nil {
		return false, err
	}
	err = b.dropSchedule(ctx, name, func(r *scheduleRecord) error {
		if r == nil || !r.Declared {
			return noSchedule(name)
		}
		return nil
	})
	if errors.Is(err, job.NotFound) {
		return false, nil
	}
	return err == nil, err
}
