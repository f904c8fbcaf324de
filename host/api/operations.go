package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// refOf returns the board of a call about one claim, and the claim.
func (s *service) refOf(ctx context.Context, name, call string, claim *boarddv1.Claim) (*board.Board, board.Ref, error) {
	b, err := s.boardOf(ctx, name, call)
	if err != nil {
		return nil, board.Ref{}, err
	}
	if claim == nil {
		return nil, board.Ref{}, invalid("claim", "want a claim with uuid, owner and token")
	}
	id, err := fromID("claim.uuid", claim.GetUuid())
	return b, board.Ref{ID: id, Owner: claim.GetOwner(), Token: claim.GetToken()}, err
}

// StartOperation makes an operation wait or run.
func (s *service) StartOperation(ctx context.Context, r *connect.Request[boarddv1.StartOperationRequest]) (*connect.Response[boarddv1.StartOperationResponse], error) {
	b, ref, err := s.refOf(ctx, r.Msg.GetBoard(), "StartOperation", r.Msg.GetClaim())
	if err != nil {
		return nil, err
	}
	result, err := b.StartOperation(ctx, board.OperationRequest{
		Ref: ref, Index: r.Msg.GetIndex(), Status: job.OperationStatus(r.Msg.GetStatus()), //nolint:gosec // the board refuses what is none
	})
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.StartOperationResponse{
		Status: toOperationStatus(result.Status), OperationStatus: toOperationStatus(result.JobStatus), CancelRequested: result.CancelRequested,
	})
}

// FinishOperation ends an operation.
func (s *service) FinishOperation(ctx context.Context, r *connect.Request[boarddv1.FinishOperationRequest]) (*connect.Response[boarddv1.FinishOperationResponse], error) {
	b, ref, err := s.refOf(ctx, r.Msg.GetBoard(), "FinishOperation", r.Msg.GetClaim())
	if err != nil {
		return nil, err
	}
	result, err := b.FinishOperation(ctx, board.OperationRequest{
		Ref: ref, Index: r.Msg.GetIndex(), Status: job.OperationStatus(r.Msg.GetStatus()), Result: r.Msg.GetResult(), //nolint:gosec // the board refuses what is none
	})
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.FinishOperationResponse{
		Status: toOperationStatus(result.Status), OperationStatus: toOperationStatus(result.JobStatus), CancelRequested: result.CancelRequested,
	})
}

// MarkOperations gives all unfinished operations one status and one result.
func (s *service) MarkOperations(ctx context.Context, r *connect.Request[boarddv1.MarkOperationsRequest]) (*connect.Response[boarddv1.MarkOperationsResponse], error) {
	b, ref, err := s.refOf(ctx, r.Msg.GetBoard(), "MarkOperations", r.Msg.GetClaim())
	if err != nil {
		return nil, err
	}
	result, err := b.MarkOperations(ctx, board.MarkRequest{
		Ref: ref, Status: job.OperationStatus(r.Msg.GetStatus()), Result: r.Msg.GetResult(), //nolint:gosec // the board refuses what is none
	})
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.MarkOperationsResponse{
		Marked: int32(result.Marked), OperationStatus: toOperationStatus(result.JobStatus), CancelRequested: result.CancelRequested, //nolint:gosec // at most job.MaxOperations
	})
}

// CancelJobs ends jobs that have not begun, and asks workers to stop.
func (s *service) CancelJobs(ctx context.Context, r *connect.Request[boarddv1.CancelJobsRequest]) (*connect.Response[boarddv1.CancelJobsResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "CancelJobs", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	changes, err := b.Cancel(ctx, ids.good, r.Msg.GetForce())
	if err = turnedAway(changes, err, func(r board.Change) error { return r.Err }); err != nil {
		return nil, err
	}
	results := make([]*boarddv1.CancelResult, len(changes))
	for i, c := range changes {
		results[i] = &boarddv1.CancelResult{Canceled: c.Changed, Message: c.Message, Error: itemError(c.Err)}
	}
	failed := func(err error) *boarddv1.CancelResult { return &boarddv1.CancelResult{Error: itemError(err)} }
	return answer(&boarddv1.CancelJobsResponse{Results: merge(ids, results, failed)})
}

// ChangePriority changes the priority of jobs or of their operations.
func (s *service) ChangePriority(ctx context.Context, r *connect.Request[boarddv1.ChangePriorityRequest]) (*connect.Response[boarddv1.ChangePriorityResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "ChangePriority", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	class := r.Msg.GetPriority() != boarddv1.Priority_UNSPECIFIED
	if err := only("operationPriority", "priority", r.Msg.OperationPriority != nil && class); err != nil {
		return nil, err
	}
	var changes []board.Change
	switch {
	case r.Msg.OperationPriority != nil:
		changes, err = b.SetOperationPriority(ctx, ids.good, r.Msg.GetOperationPriority())
	case class:
		var to job.Priority
		if to, err = fromPriority(r.Msg.GetPriority()); err == nil {
			changes, err = b.SetPriority(ctx, ids.good, to)
		}
	default:
		err = invalid("operationPriority", "want operationPriority, %d to %d, or priority", job.MinOperationPriority, job.MaxOperationPriority)
	}
	if err = turnedAway(changes, err, func(r board.Change) error { return r.Err }); err != nil {
		return nil, err
	}
	results := make([]*boarddv1.PriorityResult, len(changes))
	for i, c := range changes {
		results[i] = &boarddv1.PriorityResult{Changed: c.Changed, Message: c.Message, Error: itemError(c.Err)}
	}
	failed := func(err error) *boarddv1.PriorityResult { return &boarddv1.PriorityResult{Error: itemError(err)} }
	return answer(&boarddv1.ChangePriorityResponse{Results: merge(ids, results, failed)})
}

// ArchiveJobs takes jobs out of the trash into the history.
func (s *service) ArchiveJobs(ctx context.Context, r *connect.Request[boarddv1.ArchiveJobsRequest]) (*connect.Response[boarddv1.ArchiveJobsResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "ArchiveJobs", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	errs, err := whole(b.Archive(ctx, ids.good))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ArchiveJobsResponse{Results: toResults(ids, errs)})
}

// toOperationStatus: the two count alike, and a test says so.
func toOperationStatus(s job.OperationStatus) boarddv1.OperationStatus_Enum {
	return boarddv1.OperationStatus_Enum(s)
}

func toOperations(list []job.Operation) []*boarddv1.Operation {
	if len(list) == 0 {
		return nil
	}
	answer, store := make([]*boarddv1.Operation, len(list)), make([]boarddv1.Operation, len(list))
	for i := range list {
		op := &list[i]
		o := &store[i]
		o.Index, o.Name, o.Input, o.Priority = op.Index, clean(op.Name), op.Input, op.Priority
		o.Status, o.Result = toOperationStatus(op.Status), op.Result
		o.StartedAt, o.ExecutedAt, o.EndedAt = toTime(op.StartedAt), toTime(op.ExecutedAt), toTime(op.EndedAt)
		answer[i] = o
	}
	return answer
}

func toAfter(list []job.Prerequisite) []*boarddv1.Prerequisite {
	var answer []*boarddv1.Prerequisite
	for _, p := range list {
		a := &boarddv1.Prerequisite{Uuid: p.ID.String()}
		for _, s := range p.Statuses {
			a.Statuses = append(a.Statuses, toOperationStatus(s))
		}
		answer = append(answer, a)
	}
	return answer
}

func fromOperations(list []*boarddv1.NewOperation) []job.NewOperation {
	if len(list) == 0 {
		return nil
	}
	operations := make([]job.NewOperation, len(list))
	for i, op := range list {
		operations[i] = job.NewOperation{Name: op.GetName(), Input: op.GetInput(), Priority: op.GetPriority()}
	}
	return operations
}

// fromAfter reads what a job waits for. What the board checks is left to it.
func fromAfter(list []*boarddv1.Prerequisite) ([]job.Prerequisite, error) {
	var after []job.Prerequisite
	for i, a := range list {
		id, err := fromID(index("after", i)+".uuid", a.GetUuid())
		if err != nil {
			return nil, err
		}
		p := job.Prerequisite{ID: id}
		for _, s := range a.GetStatuses() {
			if s < 0 || s > boarddv1.OperationStatus_ERROR {
				return nil, invalid(index("after", i)+".statuses", "want SUCCESS, ERROR or CANCELED")
			}
			p.Statuses = append(p.Statuses, job.OperationStatus(s))
		}
		after = append(after, p)
	}
	return after, nil
}
