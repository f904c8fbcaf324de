package api

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/filter"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// PostJobs puts jobs on a board.
func (s *service) PostJobs(ctx context.Context, r *connect.Request[boarddv1.PostJobsRequest]) (*connect.Response[boarddv1.PostJobsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "PostJobs")
	if err != nil {
		return nil, err
	}
	postings := sift(r.Msg.GetJobs(), fromPosting)
	posted, err := b.Post(ctx, postings.good)
	if err = turnedAway(posted, err, func(r board.JobResult) error { return r.Err }); err != nil {
		return nil, err
	}
	form := newStraight(r.Header().Get("Content-Type"), len(posted))
	return answer(&boarddv1.PostJobsResponse{Results: jobResults(postings, posted, form.jobResult)})
}

func jobResults[T any](s sifted[T], results []board.JobResult, form func(*boarddv1.JobResult, *job.Job)) []*boarddv1.JobResult {
	answers, room := make([]*boarddv1.JobResult, len(results)), make([]boarddv1.JobResult, len(results))
	for i, result := range results {
		answers[i] = &room[i]
		if result.Err != nil {
			answers[i].Error = itemError(result.Err)
			continue
		}
		form(answers[i], result.Job)
		if result.Existing {
			answers[i].Existing = &result.Existing
		}
	}
	return merge(s, answers, func(err error) *boarddv1.JobResult { return &boarddv1.JobResult{Error: itemError(err)} })
}

// GetJobs reads jobs by their uuids, perhaps when all have ended.
func (s *service) GetJobs(ctx context.Context, r *connect.Request[boarddv1.GetJobsRequest]) (*connect.Response[boarddv1.GetJobsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "GetJobs")
	if err != nil {
		return nil, err
	}
	fields, err := selectFields(r.Msg.GetFields())
	if err != nil {
		return nil, err
	}
	wait, err := waitOf(ctx, r.Msg.GetWait())
	if err != nil {
		return nil, err
	}
	ids := siftIDs(r.Msg.GetUuids())
	var got []board.JobResult
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) (err error) {
		got, err = getBounded(ctx, b.Get, ids.good, board.GetOptions{
			Details: fields.details(), Operations: fields.operations(), Log: fields.log(), AsItWas: fields.asItWas(), Wait: wait,
		})
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	if len(got) == 0 && len(ids.good) > 0 {
		return answer(&boarddv1.GetJobsResponse{}) // the wait was over first
	}
	form := func(answer *boarddv1.JobResult, j *job.Job) { answer.Job = fields.apply(toJob(j)) }
	return answer(&boarddv1.GetJobsResponse{Results: jobResults(ids, got, form)})
}

// ListJobs gives one page of a board's jobs.
func (s *service) ListJobs(ctx context.Context, r *connect.Request[boarddv1.ListJobsRequest]) (*connect.Response[boarddv1.ListJobsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListJobs")
	if err != nil {
		return nil, err
	}
	request, fields, err := fromList(ctx, r.Msg)
	if err != nil {
		return nil, err
	}
	var page board.ListPage
	err = s.waiting(ctx, request.Wait, func(ctx context.Context, wait time.Duration) (err error) {
		request.Wait = wait
		page, err = listBounded(ctx, b.List, request)
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListJobsResponse{Jobs: make([]*boarddv1.Job, len(page.Jobs)), NextPageToken: page.Next}
	for i, j := range page.Jobs {
		response.Jobs[i] = fields.apply(toJob(j))
	}
	for _, c := range page.Corrupt {
		response.Corrupt = append(response.Corrupt, toCorrupt(c))
	}
	return answer(response)
}

func toCorrupt(c board.CorruptJob) *boarddv1.CorruptJob {
	answer := &boarddv1.CorruptJob{Key: clean(c.Key), Error: itemError(job.Errorf(job.Corrupt, "%s", c.Reason))}
	if c.ID != (job.ID{}) {
		answer.Uuid = c.ID.String()
	}
	return answer
}

func fromList(ctx context.Context, m *boarddv1.ListJobsRequest) (board.ListRequest, selection, error) {
	request := board.ListRequest{Filter: m.GetFilter(), PageSize: int(m.GetPageSize()), PageToken: m.GetPageToken()}
	if m.GetPageSize() < 0 || m.GetPageSize() > board.MaxPage {
		return request, nil, invalid("pageSize", "want 1 to %d, or 0 for %d, got %d", board.MaxPage, board.DefaultPage, m.GetPageSize())
	}
	if len(m.GetFilter()) > filter.Max {
		return request, nil, invalid("filter", "want at most %d bytes, got %d", filter.Max, len(m.GetFilter()))
	}
	for i, state := range m.GetStates() {
		if state <= boarddv1.State_UNKNOWN || state > boarddv1.State_TRASHED {
			return request, nil, invalid(index("states", i), "want UNCLAIMED, CLAIMED, COMPLETE or TRASHED, got %s", state)
		}
		if i >= int(boarddv1.State_TRASHED) {
			return request, nil, invalid("states", "want each state at most once, got %d", len(m.GetStates()))
		}
		request.States = append(request.States, job.State(state))
	}
	fields, err := selectFields(m.GetFields())
	if err != nil {
		return request, nil, err
	}
	if i := slices.Index(fields, "log"); i >= 0 {
		return request, nil, invalid(index("fields", i), "a list has no logs: want GetJobs, which shows the log of each job that it names")
	}
	if i := slices.Index(fields, "asItWas"); i >= 0 {
		return request, nil, invalid(index("fields", i), "a list has no jobs whole: want GetJobs, which gives those that it names, or ExportBoard, which gives all")
	}
	request.Details, request.Operations = fields.details(), fields.operations()
	request.Wait, err = waitOf(ctx, m.GetWait())
	return request, fields, err
}

// CountJobs says how many jobs a board has.
func (s *service) CountJobs(ctx context.Context, r *connect.Request[boarddv1.CountJobsRequest]) (*connect.Response[boarddv1.CountJobsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "CountJobs")
	if err != nil {
		return nil, err
	}
	c, err := b.Count(ctx)
	if err != nil {
		return nil, err
	}
	return answer(toCounts(&c))
}

func toCounts(c *board.Counts) *boarddv1.CountJobsResponse {
	counts := &boarddv1.CountJobsResponse{
		Ready: c.Ready, Delayed: c.Delayed, Unclaimed: c.Ready + c.Delayed, Claimed: c.Claimed,
		Trashed: c.Trashed, Complete: c.Complete, Corrupt: c.Corrupt, OldestReadyAt: toTime(c.OldestReadyAt),
	}
	if h := c.History; h != nil {
		counts.History = &boarddv1.HistoryCounts{Jobs: h.Jobs, Bytes: h.Bytes, MaxJobs: h.MaxJobs, MaxBytes: h.MaxBytes, Full: h.Full}
	}
	return counts
}

// ExplainJob says why a job is not yet claimed.
func (s *service) ExplainJob(ctx context.Context, r *connect.Request[boarddv1.ExplainJobRequest]) (*connect.Response[boarddv1.ExplainJobResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ExplainJob")
	if err != nil {
		return nil, err
	}
	id, err := fromID("uuid", r.Msg.GetUuid())
	if err != nil {
		return nil, err
	}
	if len(r.Msg.GetOwner()) > job.MaxOwner {
		return nil, invalid("owner", "want at most %d bytes, got %d", job.MaxOwner, len(r.Msg.GetOwner()))
	}
	worker := job.LabelsOf(r.Msg.GetWorkerLabels())
	e, err := b.Explain(ctx, id, r.Msg.GetOwner(), worker)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ExplainJobResponse{
		State: boarddv1.State_Enum(e.State), Verdict: e.Verdict, Reason: clean(e.Reason), Score: e.Score, Policy: e.Policy,
	}
	if e.Position >= 0 {
		response.Position = &e.Position
	}
	return answer(response)
}
