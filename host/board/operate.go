package board

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// OperationRequest is about one operation of a claimed job.
type OperationRequest struct {
	Ref    Ref
	Index  int32
	Status job.OperationStatus
	Result []byte // JSON; for FinishOperation
}

// OperationResult says how things stand after it.
type OperationResult struct {
	Status          job.OperationStatus // of the operation
	JobStatus       job.OperationStatus // of the whole job
	CancelRequested bool                // the worker is asked to stop
}

// StartOperation makes an operation wait or run. The ones before it have to be
// finished. One that is to be canceled is left alone, and the result says so.
func (b *Board) StartOperation(ctx context.Context, req OperationRequest) (OperationResult, error) {
	return b.operate(ctx, &req, func(s *currentJob, after *record.Status) ([]driver.Attachment, error) {
		now := time.Now()
		changed, err := after.Operations.Start(int(req.Index), req.Status, now)
		switch {
		case err != nil:
			return nil, err
		case !changed:
			return nil, errUnchanged
		case after.StartedAt.IsZero():
			after.StartedAt = now.UTC()
		}
		return nil, nil
	})
}

// FinishOperation ends an operation, and with one that failed or was canceled
// those behind it. Repeated with the same status and result it answers as it
// first did.
func (b *Board) FinishOperation(ctx context.Context, req OperationRequest) (OperationResult, error) {
	if err := jsontext.CheckValue("result", req.Result, job.MaxResult); err != nil {
		return OperationResult{}, err
	}
	if !req.Status.Finished() {
		return OperationResult{}, job.Errorf(job.Invalid, "status: want SUCCESS, ERROR or CANCELED, got %s", req.Status)
	}
	i := int(req.Index)
	return b.operate(ctx, &req, func(s *currentJob, after *record.Status) ([]driver.Attachment, error) {
		o := &after.Operations
		if i >= 0 && i < o.Len() && o.At(i) == req.Status && b.sameResult(ctx, s, i, req.Result) {
			return nil, errUnchanged
		}
		at, attach, err := b.keepResult(ctx, s.entry.ID, after, i, req.Result)
		if err != nil {
			return nil, err
		}
		if at == record.NoResult && req.Status == job.OpCanceled {
			at = record.CanceledResult
		}
		return attach, o.Finish(i, req.Status, at, time.Now())
	})
}

// keepResult makes the attached record of a result and says where it is.
func (b *Board) keepResult(ctx context.Context, id job.ID, after *record.Status, i int, result []byte) (at int, attach []driver.Attachment, err error) {
	if len(result) == 0 {
		return record.NoResult, nil, nil
	}
	if opened := b.readiness.opened.Load(); opened == nil || !opened.Capabilities.Attachments {
		return 0, nil, job.Errorf(job.Unsupported, "the store behind this board keeps no results of operations")
	}
	if after.ResultBytes+int64(len(result)) > job.MaxResults {
		if after.ResultBytes, err = b.resultBytes(ctx, id, i); err != nil {
			return 0, nil, err
		}
	}
	if after.ResultBytes+int64(len(result)) > job.MaxResults {
		return 0, nil, job.Errorf(job.QuotaExceeded, "result: with it the results of the job have more than %d bytes, which is the most", job.MaxResults)
	}
	after.ResultBytes += int64(len(result))
	return i + 1, []driver.Attachment{{Name: resultName(i), Data: result}}, nil
}

// resultBytes returns how many bytes of results the store keeps of a job without the result of
// operation i, which the next one replaces. The status record counts those that were replaced
// before as well: it does not know how large each was.
func (b *Board) resultBytes(ctx context.Context, id job.ID, i int) (n int64, err error) {
	attached, err := b.readAttached(ctx, []job.ID{id})
	if err != nil {
		return 0, &job.Error{Job: id, Kind: job.Unavailable, Message: "the store cannot be asked for the results of the job: nothing was changed", Err: err}
	}
	for at, result := range results(attached[0]) {
		if at != i {
			n += int64(len(result))
		}
	}
	return n, nil
}

const resultPrefix = "result/"

func resultName(i int) string { return resultPrefix + strconv.Itoa(i) }

// sameResult reports whether a finished operation has this result.
func (b *Board) sameResult(ctx context.Context, s *currentJob, i int, result []byte) bool {
	switch at := s.status.Operations.ResultOf(i); at {
	case record.NoResult:
		return len(result) == 0
	case record.CanceledResult:
		return len(result) == 0 || string(result) == record.CanceledText
	default:
		records, err := b.read(ctx, []job.ID{s.entry.ID}, driver.Attached)
		return err == nil && bytes.Equal(results(records[0].Attached)[at-1], result)
	}
}

// results returns the results among attached records, by the operation that they
// were given for.
func results(list []driver.Attachment) map[int][]byte {
	var m map[int][]byte
	for i := range list {
		text, ok := strings.CutPrefix(list[i].Name, resultPrefix)
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(text); err == nil {
			if m == nil {
				m = make(map[int][]byte)
			}
			m[n] = list[i].Data
		}
	}
	return m
}

// errUnchanged is what a plan returns that has nothing to do.
var errUnchanged = errors.New("nothing is to be changed")

// operate changes the operations of a claimed job. Change gets a copy of its
// status that it may change.
func (b *Board) operate(ctx context.Context, req *OperationRequest, change func(s *currentJob, after *record.Status) ([]driver.Attachment, error)) (OperationResult, error) {
	var result OperationResult
	i := int(req.Index)
	err := b.changeOperations(ctx, req.Ref, func(s *currentJob, after *record.Status) ([]driver.Attachment, string, error) {
		attach, err := change(s, after)
		if err == nil || errors.Is(err, errUnchanged) {
			result = OperationResult{after.Operations.At(i), after.Operations.Status(), after.Canceling()}
		}
		return attach, fmt.Sprintf("operation %d is %s", i, result.Status), err
	})
	if err != nil {
		return OperationResult{}, err
	}
	return result, nil
}

// changeOperations changes operations of a claimed job. Change gets a copy of its
// status that it may change, and returns what its watchers are told.
func (b *Board) changeOperations(ctx context.Context, ref Ref, change func(s *currentJob, after *record.Status) ([]driver.Attachment, string, error)) error {
	a, proof, err := b.alterClaim(ctx, ref)
	if err != nil {
		return err
	}
	a.plan = func(_ int, s *currentJob) (driver.Op, error) {
		if err := b.refusal(a.ids[0], proof, s); err != nil {
			return driver.Op{}, err
		}
		after := s.status
		after.Operations = s.status.Operations.Own()
		attach, reason, err := change(s, &after)
		if err != nil {
			return driver.Op{}, err
		}
		after.OperationPriority = after.Operations.Priority()
		encoded := after.Encode()
		op := proof.op(driver.Update)
		op.Version, op.Status, op.Attach = s.entry.Version, &encoded, attach
		op.Event, op.Reason = job.OperationEvent, reason
		return op, nil
	}
	a.done = func(_ int, _ *currentJob, r *driver.Result) { count(r, &b.metrics.Operations) }
	return a.runOne(ctx)
}

// alterClaim begins an alteration of one claimed job.
func (b *Board) alterClaim(ctx context.Context, ref Ref) (*alteration, *proof, error) {
	a, proofs, err := b.alterClaims(ctx, []Ref{ref})
	if err != nil {
		return nil, nil, err
	}
	a.enough = func(_ int, s *currentJob) bool { return proofs[0].holds(s) }
	return a, &proofs[0], a.errs[0]
}

// holds reports whether s shows that the claim of the proof stands.
func (p *proof) holds(s *currentJob) bool {
	if s == nil || s.state != job.Claimed || s.entry.Claim == nil {
		return false
	}
	if p.must == driver.HeldByToken {
		return s.entry.Claim.Token == p.token
	}
	return s.entry.Claim.Owner == p.owner
}

// refusal says why the claim of a proof may not be used; nil if s shows that it
// stands. An s that does not show it has to be fresh from the store.
func (b *Board) refusal(id job.ID, p *proof, s *currentJob) error {
	if p.holds(s) {
		return p.check(id, s)
	}
	if s == nil || s.state == job.Complete {
		return notFound(id)
	}
	e := &job.Error{Job: id, Kind: job.LeaseLost, Message: claimEnded}
	if c := s.entry.Claim; c != nil {
		e.Owner = c.Owner
	}
	switch {
	case p.must == driver.HeldByToken:
		b.metrics.StaleTokens.Add(1)
		if opened := b.readiness.opened.Load(); opened != nil {
			e.Message = ofBefore(p.token, opened.Generation, e.Message)
		}
	case s.state == job.Claimed:
		e.Kind, e.Message = job.NotOwner, "somebody else holds the job"
	default:
		e.Kind, e.Message = job.NotClaimed, "nobody holds the job"
	}
	return e
}
