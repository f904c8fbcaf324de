package client

import (
	"cmp"
	"context"
	"errors"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// StartOperation makes an operation of a claimed job WAITING or RUNNING. The
// ones before it have to be finished. Where the job is to be canceled, the
// answer says so, and nothing is to be begun.
func (b *Board) StartOperation(ctx context.Context, c *Claim, index int32, status boarddv1.OperationStatus_Enum) (*OperationStarted, error) {
	return call(ctx, b.client, "start operation", 0, b.client.rpc.StartOperation,
		&boarddv1.StartOperationRequest{Board: b.name, Claim: proof(c), Index: index, Status: status})
}

// FinishOperation ends an operation of a claimed job as SUCCESS, ERROR or
// CANCELED; with the last two, those behind it end alike. result is JSON, and
// may be empty.
func (b *Board) FinishOperation(ctx context.Context, c *Claim, index int32, status boarddv1.OperationStatus_Enum, result []byte) (*OperationFinished, error) {
	return call(ctx, b.client, "finish operation", 0, b.client.rpc.FinishOperation,
		&boarddv1.FinishOperationRequest{Board: b.name, Claim: proof(c), Index: index, Status: status, Result: result})
}

// MarkOperations gives all operations of a claimed job that are not finished one
// status and one result: SUCCESS, ERROR or CANCELED, or, without a result, QUEUED
// or CANCELING. result is JSON, and may be empty.
func (b *Board) MarkOperations(ctx context.Context, c *Claim, status boarddv1.OperationStatus_Enum, result []byte) (*OperationsMarked, error) {
	return call(ctx, b.client, "mark operations", 0, b.client.rpc.MarkOperations,
		&boarddv1.MarkOperationsRequest{Board: b.name, Claim: proof(c), Status: status, Result: result})
}

// Operate runs do on each operation of a claimed job that is not finished, in
// order, and reports to the board how it goes: RUNNING before, SUCCESS with the
// result after. Once all of them are done it returns nil, though ctx may have ended meanwhile.
// It returns the first error, without another operation begun:
//
//   - of do, an error that wraps ErrTrash: the operation has failed, and those
//     behind it
//   - ErrCancelRequested: the job is to be canceled
//   - any other error: the operation goes back to where it was when the claim is
//     given up, and the next worker begins with it
//
// It is made for the handler of a Worker, which may return its error.
func (b *Board) Operate(ctx context.Context, c *Claim, do func(ctx context.Context, op *Operation) (result []byte, err error)) error {
	for _, op := range c.GetJob().GetOperations() {
		if finished(op.GetStatus()) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		started, err := b.StartOperation(ctx, c, op.GetIndex(), boarddv1.OperationStatus_RUNNING)
		if err != nil {
			return endedBy(ctx, err)
		}
		if started.GetCancelRequested() {
			return ErrCancelRequested
		}
		result, err := do(ctx, op)
		if err != nil && !errors.Is(err, ErrTrash) {
			return endedBy(ctx, err)
		}
		// What was done is reported even if the handler is to stop meanwhile.
		report := context.WithoutCancel(ctx)
		if err != nil {
			if _, failed := b.FinishOperation(report, c, op.GetIndex(), boarddv1.OperationStatus_ERROR, result); failed != nil {
				return errors.Join(err, failed)
			}
			return err
		}
		if _, err := b.FinishOperation(report, c, op.GetIndex(), boarddv1.OperationStatus_SUCCESS, result); err != nil {
			return err
		}
	}
	return nil
}

func finished(s boarddv1.OperationStatus_Enum) bool {
	switch s {
	case boarddv1.OperationStatus_CANCELED, boarddv1.OperationStatus_SUCCESS, boarddv1.OperationStatus_ERROR:
		return true
	}
	return false
}

// endedBy returns why a handler's context ended, where that is behind an error.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// proof strips a claim to what a request needs.
func proof(c *Claim) *Claim { return proofs([]*Claim{c})[0] }

// A Change says whether a job was changed as asked, and in words what was done
// or why not.
type Change struct {
	Changed bool
	Message string
}

// Cancel ends jobs of which nothing has begun, and asks the workers of those that
// wait to stop; with force also of those that run.
func (b *Board) Cancel(ctx context.Context, force bool, uuids ...string) ([]Change, error) {
	answer, unsure, err := tried(ctx, b.client, "cancel", 0, b.client.rpc.CancelJobs,
		&boarddv1.CancelJobsRequest{Board: b.name, Uuids: uuids, Force: force})
	if err != nil {
		return nil, err
	}
	results := answer.GetResults()
	if err := checkCount("cancel", len(results), len(uuids)); err != nil {
		return nil, err
	}
	changes := make([]Change, len(results))
	for i, r := range results {
		if unsure && !r.GetCanceled() {
			r.Error = afterLost(cmp.Or(r.GetError(), &boarddv1.Error{Code: boarddv1.Code_FAILED_PRECONDITION, Message: r.GetMessage()}))
		}
		changes[i] = Change{r.GetCanceled(), r.GetMessage()}
	}
	return changes, failures("cancel", len(uuids), func(i int) (string, *boarddv1.Error) { return uuids[i], results[i].GetError() })
}

// SetOperationPriority changes the priority of those operations of jobs that did
// not begin to run: -20 comes first, 19 last.
func (b *Board) SetOperationPriority(ctx context.Context, priority int32, uuids ...string) ([]Change, error) {
	return b.setPriority(ctx, uuids, &boarddv1.ChangePriorityRequest{Board: b.name, Uuids: uuids, OperationPriority: &priority})
}

// SetPriority changes the class of jobs.
func (b *Board) SetPriority(ctx context.Context, priority boarddv1.Priority_Enum, uuids ...string) ([]Change, error) {
	return b.setPriority(ctx, uuids, &boarddv1.ChangePriorityRequest{Board: b.name, Uuids: uuids, Priority: priority})
}

func (b *Board) setPriority(ctx context.Context, uuids []string, request *boarddv1.ChangePriorityRequest) ([]Change, error) {
	answer, err := call(ctx, b.client, "change priority", 0, b.client.rpc.ChangePriority, request)
	if err != nil {
		return nil, err
	}
	results := answer.GetResults()
	if err := checkCount("change priority", len(results), len(uuids)); err != nil {
		return nil, err
	}
	changes := make([]Change, len(results))
	for i, r := range results {
		changes[i] = Change{r.GetChanged(), r.GetMessage()}
	}
	return changes, failures("change priority", len(uuids), func(i int) (string, *boarddv1.Error) { return uuids[i], results[i].GetError() })
}

// Archive takes jobs out of the trash: they have failed, and stay as long as the
// board keeps ended jobs.
func (b *Board) Archive(ctx context.Context, uuids ...string) error {
	answer, unsure, err := tried(ctx, b.client, "archive", 0, b.client.rpc.ArchiveJobs, &boarddv1.ArchiveJobsRequest{Board: b.name, Uuids: uuids})
	return uuidResults("archive", uuids, answer.GetResults(), unsure, err)
}

// ConsumeAs ends claimed jobs with an outcome of the worker's.
func (b *Board) ConsumeAs(ctx context.Context, outcome boarddv1.Outcome_Enum, claims ...*Claim) error {
	answer, unsure, err := tried(ctx, b.client, "consume", 0, b.client.rpc.ConsumeJobs,
		&boarddv1.ConsumeJobsRequest{Board: b.name, Claims: proofs(claims), Outcome: outcome})
	return claimResults("consume", claims, answer.GetResults(), unsure, err)
}

// PutBook writes a logbook and returns its new version. version is the one that
// must stand there, 0 for a new book; nil: whatever stands there.
func (b *Board) PutBook(ctx context.Context, book *BookRecord, version *int64) (int64, error) {
	answer, err := call(ctx, b.client, "put book", 0, b.client.rpc.PutBook,
		&boarddv1.PutBookRequest{Board: b.name, Book: book, Version: version})
	return answer.GetVersion(), err
}

// Book returns a logbook with its version.
func (b *Board) Book(ctx context.Context, uuid string) (*boarddv1.GetBookResponse, error) {
	return call(ctx, b.client, "get book", 0, b.client.rpc.GetBook, &boarddv1.GetBookRequest{Board: b.name, Uuid: uuid})
}
