package api

import (
	"context"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// Bounds on answers with details, in bytes of these: a page ends after the chunk
// of jobs that makes it so large, and named jobs beyond the limit are refused one
// by one. Chunks are small at first, since each job may have megabytes.
const (
	maxPageBytes = 4 << 20
	maxGetBytes  = 32 << 20
	firstChunk   = 8
)

// The two ways to read from a board.
type (
	listFunc func(context.Context, board.ListRequest) (board.ListPage, error)
	getFunc  func(context.Context, []job.ID, board.GetOptions) ([]board.JobResult, error)
)

// detailBytes is how much a job adds to an answer, beyond what every job does.
func detailBytes(j *job.Job) int {
	if j == nil {
		return 0
	}
	size := len(j.Details)
	if j.RawDetails != nil {
		size += len(j.RawDetails.Data)
	}
	for i := range j.Operations {
		size += len(j.Operations[i].Input) + len(j.Operations[i].Result)
	}
	for i := range j.Log {
		size += len(j.Log[i].Message) + len(j.Log[i].Type)
	}
	if j.AsItWas != nil {
		size += len(j.AsItWas.Record)
	}
	return size
}

// listBounded is List that ends a page early where the details are large.
func listBounded(ctx context.Context, list listFunc, request board.ListRequest) (board.ListPage, error) {
	if !request.Details && !request.Operations {
		return list(ctx, request)
	}
	size := request.PageSize
	if size == 0 {
		size = board.DefaultPage
	}
	var all board.ListPage
	for bytes, chunk := 0, firstChunk; ; chunk *= 2 {
		request.PageSize = min(chunk, size-len(all.Jobs))
		page, err := list(ctx, request)
		if err != nil {
			return board.ListPage{}, err
		}
		for _, j := range page.Jobs {
			bytes += detailBytes(j)
		}
		all.Jobs, all.Next, all.Corrupt = append(all.Jobs, page.Jobs...), page.Next, append(all.Corrupt, page.Corrupt...)
		if all.Next == "" || bytes >= maxPageBytes || len(all.Jobs) >= size || len(page.Jobs) < request.PageSize {
			return all, nil
		}
		request.PageToken, request.Wait = page.Next, 0
	}
}

// getBounded is Get that reads no more details than an answer should have.
func getBounded(ctx context.Context, get getFunc, ids []job.ID, o board.GetOptions) ([]board.JobResult, error) {
	if !o.Details && !o.Operations && !o.Log && !o.AsItWas || len(ids) <= firstChunk {
		return get(ctx, ids, o)
	}
	if o.Wait > 0 {
		ended, err := get(ctx, ids, board.GetOptions{Wait: o.Wait})
		if err != nil || len(ended) == 0 {
			return nil, err
		}
	}
	all := make([]board.JobResult, 0, len(ids))
	for bytes, chunk := 0, firstChunk; len(all) < len(ids); {
		if bytes >= maxGetBytes {
			err := job.Errorf(job.QuotaExceeded, "the answer has %d bytes of details already: ask for this job in another call, or for fields without details", bytes)
			all = append(all, board.JobResult{Err: err})
			continue
		}
		read, err := get(ctx, ids[len(all):min(len(ids), len(all)+chunk)], board.GetOptions{
			Details: o.Details, Operations: o.Operations, Log: o.Log, AsItWas: o.AsItWas,
		})
		if err != nil {
			return nil, err
		}
		size := 0
		for _, r := range read {
			size += detailBytes(r.Job)
		}
		all, bytes = append(all, read...), bytes+size
		if size < maxGetBytes/firstChunk {
			chunk *= 2
		}
	}
	return all, nil
}
