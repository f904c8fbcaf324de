package workload

import (
	"context"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// insisted is how often a call is made again.
const insisted = 150

// insist makes a call until it is done, also by an earlier try, and reports whether it is.
func insist(ctx context.Context, call func() error) bool {
	for range insisted {
		if call() == nil {
			return true
		}
		if sleep.For(ctx, 30*time.Millisecond) != nil {
			return false
		}
	}
	return false
}

// surely makes a call until its job, of which nobody else knows, is in a state, and reports
// whether it is. Of one that has gone nothing may be left.
func surely(ctx context.Context, board *client.Board, id string, want boarddv1.State_Enum, call func() error) bool {
	return insist(ctx, func() error {
		err := call()
		jobs, looked := board.Get(ctx, client.GetOptions{Fields: []string{"state"}}, id)
		switch {
		case want == boarddv1.State_COMPLETE && job.KindOf(looked) == job.NotFound:
			return nil
		case looked != nil || len(jobs) != 1:
			return job.Errorf(job.Unavailable, "job %s cannot be looked at: %v, after %v", id, looked, err)
		case jobs[0].GetState() != want:
			return job.Errorf(job.Unavailable, "job %s is %v, after %v", id, jobs[0].GetState(), err)
		}
		return nil
	})
}

// withClaim claims a job of which nobody else knows, and ends the claim. One whose answer was
// lost is ended first.
func withClaim(ctx context.Context, board *client.Board, id string, end func(*client.Claim) error) error {
	_ = board.Release(ctx, client.ReleaseOptions{Reason: "the claim's answer was lost"}, id) // mostly there is none
	claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "the only one", UUIDs: []string{id}, Lease: time.Minute, RequestID: client.NewUUID()})
	if err != nil || len(claims) != 1 {
		return err
	}
	return end(claims[0])
}
