package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Clock is schedules that post, and somebody who takes most of that away for good at once, so
// that nothing of those jobs would tell that they were posted. Nobody else touches them.
type Clock struct {
	recorder  *history.Recorder
	board     *client.Board
	schedules map[string]*history.Schedule
}

const (
	clockSchedules = 6
	clockEvery     = time.Second // the shortest there is
)

// StartClock makes the schedules, by a patient connection: nothing is broken yet, but the
// machine may be slow.
func StartClock(ctx context.Context, recorder *history.Recorder, patient, board *client.Board) (*Clock, error) {
	c := &Clock{recorder, board, map[string]*history.Schedule{}}
	for n := range clockSchedules {
		name := fmt.Sprint("clock-", n)
		s, err := patient.PutSchedule(ctx, &client.Schedule{Name: name, Every: durationpb.New(clockEvery), Job: &client.NewJob{Name: name}}, nil)
		if err != nil {
			return nil, err
		}
		c.schedules[name] = &history.Schedule{Name: name, First: s.GetNextAt().AsTime(), Every: clockEvery}
	}
	return c, nil
}

// Run takes jobs away until ctx ends, and leaves none halfway.
func (c *Clock) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for j, err := range c.board.List(ctx, client.ListOptions{States: []boarddv1.State_Enum{boarddv1.State_UNCLAIMED}}) {
			if err != nil {
				break
			}
			if c.schedules[j.GetName()] == nil {
				continue // somebody else's
			}
			if stays := j.GetUuid()[35] < '4'; !stays { // a quarter of them, whoever looks
				c.away(context.WithoutCancel(ctx), j)
			}
		}
		_ = sleep.For(ctx, 20*time.Millisecond) // its end is seen by the loop
	}
}

// away takes a job off its board and out of the trash, which nobody else does.
func (c *Clock) away(ctx context.Context, j *client.Job) {
	id := j.GetUuid()
	for {
		_ = c.board.TrashUnclaimed(ctx, "by hand", id) // what came of it is seen by the purge
		if kind := job.KindOf(c.board.Purge(ctx, id)); kind == job.NoKind || kind == job.NotFound {
			break
		}
		if sleep.For(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
	s := c.schedules[j.GetName()]
	s.Purged = append(s.Purged, id)
}

// Rest waits, when nothing is broken any more, until each schedule has gone on, and lists what
// they posted.
func (c *Clock) Rest(ctx context.Context, board *client.Board, patience time.Duration) error {
	healed, r := time.Now(), &resting{recorder: c.recorder, patience: patience}
	if err := r.until(ctx, func() (all bool, err error) {
		all = true
		err = c.read(ctx, board, func(s *history.Schedule, last time.Time) {
			s.From, s.WentOn = last, last.After(healed)
			all = all && s.WentOn
		})
		return all, err
	}); err != nil {
		return err
	}
	if err := r.until(ctx, func() (bool, error) {
		err := c.list(ctx, board)
		return c.heard(), err
	}); err != nil {
		return err
	}
	err := r.until(ctx, func() (bool, error) {
		return true, c.read(ctx, board, func(s *history.Schedule, last time.Time) { s.To = last })
	})
	c.recorder.Change(func(h *history.History) {
		for _, s := range c.schedules {
			h.Schedules = append(h.Schedules, *s)
		}
	})
	return err
}

// read tells of each schedule which tick it has posted last.
func (c *Clock) read(ctx context.Context, board *client.Board, tell func(s *history.Schedule, last time.Time)) error {
	for shown, err := range board.Schedules(ctx) {
		if err != nil {
			return err
		}
		tell(c.schedules[shown.GetName()], shown.GetLastAt().AsTime())
	}
	return nil
}

// heard says whether what was listed is as far as the schedules were before. The server that
// lists may hear a little later of what another one has posted or purged.
func (c *Clock) heard() bool {
	for _, s := range c.schedules {
		if len(s.Purged)+len(s.Jobs) < s.Due(s.From) || slices.ContainsFunc(s.Purged, func(id string) bool { return slices.Contains(s.Jobs, id) }) {
			return false
		}
	}
	return true
}

func (c *Clock) list(ctx context.Context, board *client.Board) error {
	for _, s := range c.schedules {
		s.Jobs = nil
	}
	for j, err := range board.List(ctx, client.ListOptions{}) {
		if err != nil {
			return err
		}
		if s := c.schedules[j.GetName()]; s != nil {
			s.Jobs = append(s.Jobs, j.GetUuid())
		}
	}
	return nil
}
