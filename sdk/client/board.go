package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// A Board is one board of a server. It may be used from many goroutines at once.
//
// A call on several items does what it can: its error is a [Failures] where
// some items failed, and its results are in the request's order with nil for the
// failed ones.
//
// When many goroutines post, claim or end single jobs at once, they share calls: a call
// is sent at once while fewer than two of its kind are under way on the board, and those
// that come meanwhile are sent together. That costs the client and the server a fraction
// of as many calls, and changes nothing else: each caller gets its own result and its own
// error, and may give up without affecting the others.
type Board struct {
	client *Client
	name   string
}

// Name returns the board's name.
func (b *Board) Name() string { return b.name }

// Post puts jobs on the board and returns them as they stand there. It gives a
// uuid to each posting that has none, in the posting itself, so that posting the
// same ones again after an error adds nothing twice. A job with another uuid than its
// posting is one that stands already and has the posting's unique key.
func (b *Board) Post(ctx context.Context, jobs ...*NewJob) ([]*Job, error) {
	for _, posting := range jobs {
		if posting.Uuid == "" {
			posting.Uuid = NewUUID()
		}
	}
	if len(jobs) != 1 || proto.Size(jobs[0]) > maxItemBytes {
		return b.post(ctx, jobs)
	}
	posted, err := b.client.gathered.posts.do(ctx, b, b.name, jobs[0])
	if _, item := errors.AsType[Failures](err); err != nil && !item {
		return nil, err
	}
	return []*Job{posted}, err
}

// post makes one call.
func (b *Board) post(ctx context.Context, jobs []*NewJob) ([]*Job, error) {
	answer, unsure, err := tried(ctx, b.client, "post", 0, b.client.rpc.PostJobs, &boarddv1.PostJobsRequest{Board: b.name, Jobs: jobs})
	if err != nil {
		return nil, err
	}
	for _, r := range answer.GetResults() {
		r.Error = refusedLater(r.GetError(), unsure)
	}
	return b.jobs("post", answer.GetResults(), len(jobs), func(i int) string { return jobs[i].Uuid })
}

// GetOptions says what Get shows and whether it waits.
type GetOptions struct {
	Fields []string      // absent: all
	Wait   time.Duration // how long to wait until every job has ended or is in the trash; at most 60 s
}

// Get returns the named jobs. With a wait that ran out it returns none, and no
// error.
func (b *Board) Get(ctx context.Context, o GetOptions, uuids ...string) ([]*Job, error) {
	request := &boarddv1.GetJobsRequest{Board: b.name, Uuids: uuids, Fields: o.Fields, Wait: duration(o.Wait)}
	answer, err := call(ctx, b.client, "get", o.Wait, b.client.rpc.GetJobs, request)
	if err != nil {
		return nil, err
	}
	if o.Wait > 0 && len(answer.GetResults()) == 0 {
		return nil, nil
	}
	return b.jobs("get", answer.GetResults(), len(uuids), func(i int) string { return uuids[i] })
}

func (b *Board) jobs(op string, results []*boarddv1.JobResult, n int, uuid func(i int) string) ([]*Job, error) {
	if err := checkCount(op, len(results), n); err != nil {
		return nil, err
	}
	jobs := make([]*Job, n)
	for i, r := range results {
		jobs[i] = r.GetJob()
	}
	return jobs, failures(op, n, func(i int) (string, *boarddv1.Error) { return uuid(i), results[i].GetError() })
}

// ListOptions says which jobs a listing shows.
type ListOptions struct {
	States   []boarddv1.State_Enum // absent: UNCLAIMED and CLAIMED
	Filter   string                // FIELD OP VALUE, joined by AND
	Fields   []string              // absent: all
	PageSize int32                 // 0: 100
	Wait     time.Duration         // how long to wait until there is a job to list; at most 60 s
}

// List goes through the jobs in claim order, a page at a time. It ends with the
// first error, which comes without a job.
func (b *Board) List(ctx context.Context, o ListOptions) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		for token := ""; ; {
			jobs, next, err := b.ListPage(ctx, o, token)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}

// ListPage returns one page of a listing and the token of the next one, which
// is empty after the last. The first page has the empty token.
func (b *Board) ListPage(ctx context.Context, o ListOptions, token string) ([]*Job, string, error) {
	answer, err := b.ListAnswer(ctx, o, token)
	return answer.GetJobs(), answer.GetNextPageToken(), err
}

// ListAnswer is ListPage with the server's whole answer, which also names records that
// another program put among the jobs and that cannot be read.
func (b *Board) ListAnswer(ctx context.Context, o ListOptions, token string) (*boarddv1.ListJobsResponse, error) {
	return call(ctx, b.client, "list", o.Wait, b.client.rpc.ListJobs, &boarddv1.ListJobsRequest{
		Board: b.name, States: o.States, Filter: o.Filter, Fields: o.Fields,
		PageSize: o.PageSize, PageToken: token, Wait: duration(o.Wait),
	})
}

// Count returns how many jobs the board has.
func (b *Board) Count(ctx context.Context) (*Counts, error) {
	return call(ctx, b.client, "count", 0, b.client.rpc.CountJobs, &boarddv1.CountJobsRequest{Board: b.name})
}

// Explain says why a job is not (yet) claimed, by a worker with the given owner
// and labels, both of which may be absent.
func (b *Board) Explain(ctx context.Context, uuid, owner string, labels map[string]string) (*Explanation, error) {
	return call(ctx, b.client, "explain", 0, b.client.rpc.ExplainJob,
		&boarddv1.ExplainJobRequest{Board: b.name, Uuid: uuid, Owner: owner, WorkerLabels: labels})
}

// RegisterEntity tells the board who works on it, for the given time.
func (b *Board) RegisterEntity(ctx context.Context, e *Entity, ttl time.Duration) (*Entity, error) {
	answer, err := call(ctx, b.client, "register entity", 0, b.client.rpc.RegisterEntity,
		&boarddv1.RegisterEntityRequest{Board: b.name, Entity: e, Ttl: duration(ttl)})
	return answer.GetEntity(), err
}

// RemoveEntity takes an entity away before its time.
func (b *Board) RemoveEntity(ctx context.Context, kind, name string) error {
	_, err := call(ctx, b.client, "remove entity", 0, b.client.rpc.RemoveEntity, &boarddv1.RemoveEntityRequest{Board: b.name, Kind: kind, Name: name})
	return err
}

// Entities lists who works on the board.
func (b *Board) Entities(ctx context.Context) ([]*Entity, error) {
	answer, err := call(ctx, b.client, "list entities", 0, b.client.rpc.ListEntities, &boarddv1.ListEntitiesRequest{Board: b.name})
	return answer.GetEntities(), err
}

// Info returns the board's settings and whether it is ready.
func (b *Board) Info(ctx context.Context) (*BoardInfo, error) {
	answer, err := call(ctx, b.client, "get board", 0, b.client.rpc.GetBoard, &boarddv1.GetBoardRequest{Board: b.name})
	return answer.GetBoard(), err
}

// Pause makes the board grant no claims. It still takes posts and the ends of
// claims.
func (b *Board) Pause(ctx context.Context, reason string) (*BoardInfo, error) {
	answer, err := call(ctx, b.client, "pause board", 0, b.client.rpc.PauseBoard,
		&boarddv1.PauseBoardRequest{Board: b.name, Reason: reason})
	return answer.GetBoard(), err
}

// Resume ends a pause.
func (b *Board) Resume(ctx context.Context) (*BoardInfo, error) {
	answer, err := call(ctx, b.client, "resume board", 0, b.client.rpc.ResumeBoard, &boarddv1.ResumeBoardRequest{Board: b.name})
	return answer.GetBoard(), err
}

// AcknowledgeLoss says that somebody knows of the losses that the board shows, up to
// those of a generation; 0 is the board's present one. They are shown no more.
func (b *Board) AcknowledgeLoss(ctx context.Context, generation int64) (*BoardInfo, error) {
	answer, err := call(ctx, b.client, "acknowledge loss", 0, b.client.rpc.AcknowledgeLoss,
		&boarddv1.AcknowledgeLossRequest{Board: b.name, Generation: generation})
	return answer.GetBoard(), err
}

// duration leaves out a duration of zero.
func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
