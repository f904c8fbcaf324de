package api

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// TrashJobs sets jobs aside for a person: claimed ones by their claims, others
// by their uuids.
func (s *service) TrashJobs(ctx context.Context, r *connect.Request[boarddv1.TrashJobsRequest]) (*connect.Response[boarddv1.TrashJobsResponse], error) {
	b, refs, err := s.refsOf(ctx, r.Msg.GetBoard(), "TrashJobs", r.Msg.GetClaims())
	if err != nil {
		return nil, err
	}
	if err := only("claims", "uuids", len(r.Msg.GetClaims()) > 0 && len(r.Msg.GetUuids()) > 0); err != nil {
		return nil, err
	}
	ids := siftIDs(r.Msg.GetUuids())
	// The reason outlives the request, whose memory its texts share.
	errs, err := whole(b.Trash(ctx, refs.good, ids.good, strings.Clone(r.Msg.GetReason())))
	if err != nil {
		return nil, err
	}
	if len(r.Msg.GetUuids()) > 0 {
		return answer(&boarddv1.TrashJobsResponse{Results: toResults(ids, errs)})
	}
	return answer(&boarddv1.TrashJobsResponse{Results: toResults(refs, errs)})
}

// idsOf returns the board of a call and the jobs that it names.
func (s *service) idsOf(ctx context.Context, name, call string, uuids []string) (*board.Board, sifted[job.ID], error) {
	b, err := s.boardOf(ctx, name, call)
	if err != nil {
		return nil, sifted[job.ID]{}, err
	}
	return b, siftIDs(uuids), nil
}

// RestoreJobs puts jobs from the trash back onto the board.
func (s *service) RestoreJobs(ctx context.Context, r *connect.Request[boarddv1.RestoreJobsRequest]) (*connect.Response[boarddv1.RestoreJobsResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "RestoreJobs", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	errs, err := whole(b.Restore(ctx, ids.good))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.RestoreJobsResponse{Results: toResults(ids, errs)})
}

// PurgeJobs takes jobs from the trash away for good.
func (s *service) PurgeJobs(ctx context.Context, r *connect.Request[boarddv1.PurgeJobsRequest]) (*connect.Response[boarddv1.PurgeJobsResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "PurgeJobs", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	errs, err := whole(b.Purge(ctx, ids.good))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PurgeJobsResponse{Results: toResults(ids, errs)})
}

// ReleaseJobs breaks claims without their tokens.
func (s *service) ReleaseJobs(ctx context.Context, r *connect.Request[boarddv1.ReleaseJobsRequest]) (*connect.Response[boarddv1.ReleaseJobsResponse], error) {
	b, ids, err := s.idsOf(ctx, r.Msg.GetBoard(), "ReleaseJobs", r.Msg.GetUuids())
	if err != nil {
		return nil, err
	}
	if r.Msg.GetReason() == "" {
		return nil, invalid("reason", "want a reason: a worker may still be at it")
	}
	errs, err := whole(b.Release(ctx, ids.good, r.Msg.GetExpectOwner(), r.Msg.GetReason()))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ReleaseJobsResponse{Results: toResults(ids, errs)})
}
