package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// How many schedules or batches a page of a listing has.
const defaultListed = 100

// listed is how many a page has by what a request says.
func listed(pageSize int32) (most int, err error) {
	switch {
	case pageSize < 0:
		return 0, invalid("pageSize", "want 0 (%d) or more, got %d", defaultListed, pageSize)
	case pageSize == 0:
		return defaultListed, nil
	}
	return min(int(pageSize), MaxListPage), nil
}

// PutSchedule writes a schedule.
func (s *service) PutSchedule(ctx context.Context, r *connect.Request[boarddv1.PutScheduleRequest]) (*connect.Response[boarddv1.PutScheduleResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "PutSchedule")
	if err != nil {
		return nil, err
	}
	given, err := fromSchedule(r.Msg.GetSchedule())
	if err != nil {
		return nil, err
	}
	ifVersion, err := fromIfVersion(r.Msg.Version, "schedule")
	if err != nil {
		return nil, err
	}
	put, err := b.PutSchedule(ctx, given, ifVersion)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PutScheduleResponse{Schedule: toSchedule(&put)})
}

// ListSchedules gives one page of a board's schedules.
func (s *service) ListSchedules(ctx context.Context, r *connect.Request[boarddv1.ListSchedulesRequest]) (*connect.Response[boarddv1.ListSchedulesResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListSchedules")
	if err != nil {
		return nil, err
	}
	most, err := listed(r.Msg.GetPageSize())
	if err != nil {
		return nil, err
	}
	list, err := b.Schedules(ctx, r.Msg.GetPageToken(), most)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListSchedulesResponse{}
	for i := range list {
		response.Schedules = append(response.Schedules, toSchedule(&list[i]))
	}
	if len(list) == most {
		response.NextPageToken = list[most-1].Name
	}
	return answer(response)
}

// GetSchedule gives one schedule.
func (s *service) GetSchedule(ctx context.Context, r *connect.Request[boarddv1.GetScheduleRequest]) (*connect.Response[boarddv1.GetScheduleResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "GetSchedule")
	if err != nil {
		return nil, err
	}
	got, err := b.Schedule(ctx, r.Msg.GetName())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.GetScheduleResponse{Schedule: toSchedule(&got)})
}

// DeleteSchedule takes a schedule away.
func (s *service) DeleteSchedule(ctx context.Context, r *connect.Request[boarddv1.DeleteScheduleRequest]) (*connect.Response[boarddv1.DeleteScheduleResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "DeleteSchedule")
	if err != nil {
		return nil, err
	}
	if err := b.DeleteSchedule(ctx, r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeleteScheduleResponse{})
}

// PauseSchedule stops a schedule.
func (s *service) PauseSchedule(ctx context.Context, r *connect.Request[boarddv1.PauseScheduleRequest]) (*connect.Response[boarddv1.PauseScheduleResponse], error) {
	paused, err := s.pauseSchedule(ctx, r.Msg.GetBoard(), r.Msg.GetName(), "PauseSchedule", true)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PauseScheduleResponse{Schedule: paused})
}

// ResumeSchedule lets a schedule go on.
func (s *service) ResumeSchedule(ctx context.Context, r *connect.Request[boarddv1.ResumeScheduleRequest]) (*connect.Response[boarddv1.ResumeScheduleResponse], error) {
	resumed, err := s.pauseSchedule(ctx, r.Msg.GetBoard(), r.Msg.GetName(), "ResumeSchedule", false)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ResumeScheduleResponse{Schedule: resumed})
}

func (s *service) pauseSchedule(ctx context.Context, name, schedule, call string, pause bool) (*boarddv1.Schedule, error) {
	b, err := s.boardOf(ctx, name, call)
	if err != nil {
		return nil, err
	}
	got, err := b.PauseSchedule(ctx, schedule, pause)
	return toSchedule(&got), err
}

// TriggerSchedule posts a schedule's job now.
func (s *service) TriggerSchedule(ctx context.Context, r *connect.Request[boarddv1.TriggerScheduleRequest]) (*connect.Response[boarddv1.TriggerScheduleResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "TriggerSchedule")
	if err != nil {
		return nil, err
	}
	var id job.ID
	if r.Msg.GetUuid() != "" {
		if id, err = fromID("uuid", r.Msg.GetUuid()); err != nil {
			return nil, err
		}
	}
	posted, err := b.TriggerSchedule(ctx, r.Msg.GetName(), id)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.TriggerScheduleResponse{Job: toJob(posted)})
}

func fromSchedule(given *boarddv1.Schedule) (s board.Schedule, err error) {
	if given == nil || given.Job == nil {
		return s, invalid("schedule", "want a schedule with name, cron or every, and job")
	}
	s = board.Schedule{
		Name: given.GetName(), Cron: given.GetCron(), Timezone: given.GetTimezone(), Overlap: board.Overlap(given.GetOverlap()), //nolint:gosec // looked at below
		Paused: given.GetPaused(),
	}
	if given.GetOverlap() < 0 || given.GetOverlap() > boarddv1.Overlap_CANCEL {
		return s, invalid("schedule.overlap", "want ALLOW, SKIP or CANCEL, got %d", given.GetOverlap())
	}
	if s.Job, err = fromPosting(given.GetJob()); err != nil {
		return s, inField("schedule.job", err)
	}
	if s.Every, err = fromDuration("schedule.every", given.GetEvery(), 0); err != nil {
		return s, err
	}
	if s.CatchUp, err = fromDuration("schedule.catchUp", given.GetCatchUp(), board.MinCatchUp); err != nil {
		return s, err
	}
	s.Jitter, err = fromDuration("schedule.jitter", given.GetJitter(), 0)
	return s, err
}

func toSchedule(s *board.Schedule) *boarddv1.Schedule {
	shown := &boarddv1.Schedule{
		Name: clean(s.Name), Cron: clean(s.Cron), Every: toDuration(s.Every), Timezone: clean(s.Timezone), Job: toPosting(&s.Job),
		Overlap: boarddv1.Overlap_Enum(s.Overlap), CatchUp: toDuration(s.CatchUp), Jitter: toDuration(s.Jitter), Paused: s.Paused,
		Version: toInt64(s.Version), NextAt: toTime(s.NextAt), LastAt: toTime(s.LastAt), Problem: clean(s.Problem), Declared: s.Declared,
	}
	if s.LastID != (job.ID{}) {
		shown.LastUuid = s.LastID.String()
	}
	return shown
}

// toPosting shows what a schedule posts.
func toPosting(p *job.Posting) *boarddv1.NewJob {
	n := &boarddv1.NewJob{
		Name: clean(p.Name), Details: p.Details, Priority: boarddv1.Priority_Enum(int(p.Priority) + priorityShift), Labels: toLabels(p.Labels), MaxAttempts: p.MaxAttempts,
		After: toAfter(p.After), Unique: toUnique(&p.Unique), Timeout: toDuration(p.Timeout), Batch: clean(p.Batch),
	}
	if n.Unique != nil {
		n.Unique.OnConflict = boarddv1.OnConflict_Enum(p.Unique.OnConflict)
	}
	if p.Raw != nil {
		n.DetailsRaw = &boarddv1.Raw{Encoding: p.Raw.Encoding.String(), Data: p.Raw.Data}
	}
	if p.Book != (job.Book{}) {
		n.Book = &boarddv1.Book{Uuid: clean(p.Book.UUID), Name: clean(p.Book.Name)}
	}
	for i := range p.Operations {
		op := &p.Operations[i]
		n.Operations = append(n.Operations, &boarddv1.NewOperation{Name: clean(op.Name), Input: op.Input, Priority: op.Priority})
	}
	return n
}
