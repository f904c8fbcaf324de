package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/filter"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// ClaimJobs gives jobs to a worker.
func (s *service) ClaimJobs(ctx context.Context, r *connect.Request[boarddv1.ClaimJobsRequest]) (*connect.Response[boarddv1.ClaimJobsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ClaimJobs")
	if err != nil {
		return nil, err
	}
	request, err := fromClaim(ctx, r.Msg)
	if err != nil {
		return nil, err
	}
	ids := siftIDs(r.Msg.GetUuids())
	response := &boarddv1.ClaimJobsResponse{}
	for i, text := range r.Msg.GetUuids() {
		if ids.errs[i] != nil {
			response.Failures = append(response.Failures, &boarddv1.ClaimFailure{Uuid: text, Error: itemError(ids.errs[i])})
		}
	}
	if len(r.Msg.GetUuids()) > 0 && len(ids.good) == 0 {
		return answer(response) // without uuids the board would choose by itself
	}
	request.IDs = ids.good
	var got board.ClaimResponse
	err = s.waiting(ctx, request.Wait, func(ctx context.Context, wait time.Duration) (err error) {
		request.Wait = wait
		got, err = b.Claim(ctx, request)
		return err
	}, false)
	if ended, ok := errors.AsType[*host.Ended](context.Cause(ctx)); ok && err == nil && len(got.Claims) == 0 {
		err = ended // not an empty answer, as if the time were over
	}
	if err != nil {
		return nil, err
	}
	form := newStraight(r.Header().Get("Content-Type"), len(got.Claims))
	response.Claims = form.claims(b, got.Claims, got.Steps)
	for _, f := range got.Failures {
		response.Failures = append(response.Failures, &boarddv1.ClaimFailure{Uuid: f.ID.String(), Error: itemError(f.Err)})
	}
	return answer(response)
}

func fromClaim(ctx context.Context, m *boarddv1.ClaimJobsRequest) (board.ClaimRequest, error) {
	request := board.ClaimRequest{
		Owner: m.GetOwner(), Max: int(m.GetMax()), Names: m.GetNames(), Filter: m.GetFilter(), NoExpiry: m.GetNoExpiry(),
		WorkerLabels: job.LabelsOf(m.GetWorkerLabels()), RequestID: m.GetRequestId(),
	}
	if m.GetMax() < 0 || m.GetMax() > board.MaxBatch {
		return request, invalid("max", "want 1 to %d, or 0 for 1, got %d", board.MaxBatch, m.GetMax())
	}
	if err := only("uuids", "max", len(m.GetUuids()) > 0 && m.GetMax() > 0); err != nil {
		return request, err
	}
	if err := only("noExpiry", "lease", m.GetNoExpiry() && m.Lease != nil); err != nil {
		return request, err
	}
	if len(m.GetRequestId()) > board.MaxRequestID {
		return request, invalid("requestId", "want at most %d bytes, got %d", board.MaxRequestID, len(m.GetRequestId()))
	}
	if len(m.GetFilter()) > filter.Max {
		return request, invalid("filter", "want at most %d bytes, got %d", filter.Max, len(m.GetFilter()))
	}
	var err error
	if request.Lease, err = fromDuration("lease", m.GetLease(), job.MinLease); err != nil {
		return request, err
	}
	request.Wait, err = waitOf(ctx, m.GetWait())
	return request, err
}

// ExtendClaims prolongs claims.
func (s *service) ExtendClaims(ctx context.Context, r *connect.Request[boarddv1.ExtendClaimsRequest]) (*connect.Response[boarddv1.ExtendClaimsResponse], error) {
	b, refs, err := s.refsOf(ctx, r.Msg.GetBoard(), "ExtendClaims", r.Msg.GetClaims())
	if err != nil {
		return nil, err
	}
	lease, err := fromDuration("lease", r.Msg.GetLease(), job.MinLease)
	if err != nil {
		return nil, err
	}
	extended, err := b.Extend(ctx, refs.good, lease)
	if err = turnedAway(extended, err, func(r board.ExtendResult) error { return r.Err }); err != nil {
		return nil, err
	}
	results := make([]*boarddv1.ExtendResult, len(extended))
	for i, e := range extended {
		if e.Err != nil {
			results[i] = &boarddv1.ExtendResult{Error: itemError(e.Err)}
			continue
		}
		results[i] = &boarddv1.ExtendResult{
			Lease: toDuration(e.Lease), LeaseExpiresAt: toTime(e.LeaseExpiresAt), CancelRequested: e.CancelRequested,
		}
	}
	failed := func(err error) *boarddv1.ExtendResult { return &boarddv1.ExtendResult{Error: itemError(err)} }
	return answer(&boarddv1.ExtendClaimsResponse{Results: merge(refs, results, failed)})
}

// refsOf returns the board of a call and the claims that it names.
func (s *service) refsOf(ctx context.Context, name, call string, claims []*boarddv1.Claim) (*board.Board, sifted[board.Ref], error) {
	b, err := s.boardOf(ctx, name, call)
	if err != nil {
		return nil, sifted[board.Ref]{}, err
	}
	return b, sift(claims, fromRef), nil
}

// ConsumeJobs ends jobs that are done.
func (s *service) ConsumeJobs(ctx context.Context, r *connect.Request[boarddv1.ConsumeJobsRequest]) (*connect.Response[boarddv1.ConsumeJobsResponse], error) {
	b, refs, err := s.refsOf(ctx, r.Msg.GetBoard(), "ConsumeJobs", r.Msg.GetClaims())
	if err != nil {
		return nil, err
	}
	outcome := r.Msg.GetOutcome()
	if outcome < boarddv1.Outcome_NONE || outcome > boarddv1.Outcome_FAILED {
		return nil, invalid("outcome", "want CONSUMED, CANCELED or FAILED, got %s", outcome)
	}
	errs, err := whole(b.ConsumeAs(ctx, refs.good, job.Outcome(outcome)))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ConsumeJobsResponse{Results: toResults(refs, errs)})
}

// AbandonJobs gives jobs back.
func (s *service) AbandonJobs(ctx context.Context, r *connect.Request[boarddv1.AbandonJobsRequest]) (*connect.Response[boarddv1.AbandonJobsResponse], error) {
	b, refs, err := s.refsOf(ctx, r.Msg.GetBoard(), "AbandonJobs", r.Msg.GetClaims())
	if err != nil {
		return nil, err
	}
	// The reason outlives the request, whose memory its texts share.
	options := board.AbandonOptions{Reason: strings.Clone(r.Msg.GetReason()), RefundAttempt: r.Msg.GetRefundAttempt()}
	if r.Msg.RetryAfter != nil {
		after, err := fromDuration("retryAfter", r.Msg.GetRetryAfter(), 0)
		if err != nil {
			return nil, err
		}
		options.RetryAfter = &after
	}
	errs, err := whole(b.Abandon(ctx, refs.good, options))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.AbandonJobsResponse{Results: toResults(refs, errs)})
}
