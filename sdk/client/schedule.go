package client

import (
	"context"
	"iter"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// PutSchedule writes a schedule if its present version is ifVersion (0: there is no such
// schedule yet; nil: any version), else the error is Aborted.
func (b *Board) PutSchedule(ctx context.Context, s *Schedule, ifVersion *int64) (*Schedule, error) {
	answer, err := call(ctx, b.client, "put schedule", 0, b.client.rpc.PutSchedule,
		&boarddv1.PutScheduleRequest{Board: b.name, Schedule: s, Version: ifVersion})
	return answer.GetSchedule(), err
}

// Schedules goes through the board's schedules in the order of their names, a page at a
// time. It ends with the first error, which comes without a schedule.
func (b *Board) Schedules(ctx context.Context) iter.Seq2[*Schedule, error] {
	return pages(func(token string) ([]*Schedule, string, error) {
		answer, err := call(ctx, b.client, "list schedules", 0, b.client.rpc.ListSchedules,
			&boarddv1.ListSchedulesRequest{Board: b.name, PageSize: pageSize, PageToken: token})
		return answer.GetSchedules(), answer.GetNextPageToken(), err
	})
}

// Schedule returns a schedule of the board.
func (b *Board) Schedule(ctx context.Context, name string) (*Schedule, error) {
	answer, err := call(ctx, b.client, "get schedule", 0, b.client.rpc.GetSchedule, &boarddv1.GetScheduleRequest{Board: b.name, Name: name})
	return answer.GetSchedule(), err
}

// DeleteSchedule takes a schedule away. Jobs that it posted stand.
func (b *Board) DeleteSchedule(ctx context.Context, name string) error {
	_, err := call(ctx, b.client, "delete schedule", 0, b.client.rpc.DeleteSchedule, &boarddv1.DeleteScheduleRequest{Board: b.name, Name: name})
	return err
}

// PauseSchedule stops a schedule. What would have been due meanwhile is left out.
func (b *Board) PauseSchedule(ctx context.Context, name string) (*Schedule, error) {
	answer, err := call(ctx, b.client, "pause schedule", 0, b.client.rpc.PauseSchedule, &boarddv1.PauseScheduleRequest{Board: b.name, Name: name})
	return answer.GetSchedule(), err
}

// ResumeSchedule lets a schedule go on.
func (b *Board) ResumeSchedule(ctx context.Context, name string) (*Schedule, error) {
	answer, err := call(ctx, b.client, "resume schedule", 0, b.client.rpc.ResumeSchedule, &boarddv1.ResumeScheduleRequest{Board: b.name, Name: name})
	return answer.GetSchedule(), err
}

// TriggerSchedule posts a schedule's job now, whether it is paused or not.
func (b *Board) TriggerSchedule(ctx context.Context, name string) (*Job, error) {
	return b.TriggerScheduleAs(ctx, name, NewUUID())
}

// TriggerScheduleAs is TriggerSchedule with the job's uuid: whoever does not know whether the job
// was posted triggers again with the same one, which adds nothing if it was.
func (b *Board) TriggerScheduleAs(ctx context.Context, name, uuid string) (*Job, error) {
	answer, err := call(ctx, b.client, "trigger schedule", 0, b.client.rpc.TriggerSchedule,
		&boarddv1.TriggerScheduleRequest{Board: b.name, Name: name, Uuid: uuid})
	return answer.GetJob(), err
}
