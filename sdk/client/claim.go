package client

import (
	"context"
	"crypto/rand"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// ClaimOptions says which jobs are claimed, by whom and for how long.
type ClaimOptions struct {
	Owner    string            // who claims; never empty
	UUIDs    []string          // these jobs; absent: the best that this worker may have
	Max      int32             // how many of the best; 0: 1
	Names    []string          // only jobs of these names; absent: of any
	Filter   string            // only jobs that it fits: FIELD OP VALUE, joined by AND
	Lease    time.Duration     // 0: the board's
	NoExpiry bool              // a claim without a lease, where the board allows it
	Labels   map[string]string // describe the worker to the board's policies
	Wait     time.Duration     // how long to wait for a job; at most 60 s

	// RequestID makes claiming again answer the same claims; empty: Claim makes
	// one, which covers its own repetitions.
	RequestID string
}

// Claim claims jobs. Without UUIDs it returns from none to Max claims; none is
// not an error. With UUIDs it returns the claims that were granted, and a
// Failures in the order of UUIDs where some were not.
//
// The lease of a claim counts from before the call was sent: keep the time.
func (b *Board) Claim(ctx context.Context, o ClaimOptions) ([]*Claim, error) {
	request := &boarddv1.ClaimJobsRequest{
		Board: b.name, Owner: o.Owner, Uuids: o.UUIDs, Max: o.Max, Names: o.Names, Filter: o.Filter,
		Lease: duration(o.Lease), NoExpiry: o.NoExpiry, WorkerLabels: o.Labels, Wait: duration(o.Wait), RequestId: o.RequestID,
	}
	if len(o.UUIDs) > 0 || o.Max > 1 || o.Wait > 0 || o.RequestID != "" {
		return b.claim(ctx, request)
	}
	request.Max = 0
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return b.claim(ctx, request) // which says so
	}
	c, err := b.client.gathered.claims.do(ctx, b, string(key), request)
	if c == nil {
		return nil, err
	}
	return []*Claim{c}, err
}

// claimAlike makes one call of several that are alike. An answer may have fewer claims
// than the board has jobs, if these are large: it is asked again then, so that none is
// said to be left only where there is none.
func (b *Board) claimAlike(ctx context.Context, requests []*boarddv1.ClaimJobsRequest) (all []*Claim, err error) {
	request := requests[0]
	for len(all) < len(requests) {
		request.Max, request.RequestId = int32(len(requests)-len(all)), ""
		claims, err := b.claim(ctx, request)
		all = append(all, claims...)
		if err != nil || len(claims) == 0 {
			return all, err
		}
	}
	return all, nil
}

// returned gives claims back that were made for somebody who has gone. It is a
// courtesy: their leases end anyway.
func (b *Board) returned(claims []*Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.Abandon(ctx, AbandonOptions{Reason: "nobody waited for it any more", RetryAfter: new(time.Duration), RefundAttempt: true}, claims...)
}

// claim makes one call.
func (b *Board) claim(ctx context.Context, request *boarddv1.ClaimJobsRequest) ([]*Claim, error) {
	if request.RequestId == "" {
		request.RequestId = NewUUID()
	}
	answer, err := call(ctx, b.client, "claim", request.GetWait().AsDuration(), b.client.rpc.ClaimJobs, request)
	if err != nil {
		return nil, err
	}
	failed := make(map[string]*boarddv1.Error, len(answer.GetFailures()))
	for _, f := range answer.GetFailures() {
		failed[f.GetUuid()] = f.GetError()
	}
	return answer.GetClaims(), failures("claim", len(request.Uuids), func(i int) (string, *boarddv1.Error) {
		return request.Uuids[i], failed[request.Uuids[i]]
	})
}

// Extend makes the leases of claims begin anew, with the given length; 0: as
// long as before. A new lease counts from before the call was sent.
func (b *Board) Extend(ctx context.Context, lease time.Duration, claims ...*Claim) ([]*Extension, error) {
	answer, unsure, err := tried(ctx, b.client, "extend", 0, b.client.rpc.ExtendClaims,
		&boarddv1.ExtendClaimsRequest{Board: b.name, Claims: proofs(claims), Lease: duration(lease)})
	if err != nil {
		return nil, err
	}
	results := answer.GetResults()
	if err := checkCount("extend", len(results), len(claims)); err != nil {
		return nil, err
	}
	extensions := make([]*Extension, len(results))
	for i, r := range results {
		r.Error = refusedLater(r.GetError(), unsure)
		if r.GetError() == nil {
			extensions[i] = r
		}
	}
	return extensions, failures("extend", len(claims), func(i int) (string, *boarddv1.Error) {
		return claims[i].GetUuid(), results[i].GetError()
	})
}

// Consume ends claimed jobs as done.
func (b *Board) Consume(ctx context.Context, claims ...*Claim) error {
	if len(claims) != 1 {
		_, err := b.consume(ctx, proofs(claims))
		return err
	}
	_, err := b.client.gathered.ends.do(ctx, b, b.name, proofs(claims)[0])
	return err
}

// consume makes one call.
func (b *Board) consume(ctx context.Context, proofs []*Claim) ([]struct{}, error) {
	answer, unsure, err := tried(ctx, b.client, "consume", 0, b.client.rpc.ConsumeJobs, &boarddv1.ConsumeJobsRequest{Board: b.name, Claims: proofs})
	return nil, claimResults("consume", proofs, answer.GetResults(), unsure, err)
}

// AbandonOptions says why claims are given up and when the jobs may be claimed
// again.
type AbandonOptions struct {
	Reason        string
	RetryAfter    *time.Duration // nil: the board's back-off
	RefundAttempt bool           // the claim does not count as an attempt
}

// Abandon gives claimed jobs back to the board.
func (b *Board) Abandon(ctx context.Context, o AbandonOptions, claims ...*Claim) error {
	request := &boarddv1.AbandonJobsRequest{
		Board: b.name, Claims: proofs(claims), Reason: o.Reason, RefundAttempt: o.RefundAttempt,
	}
	if o.RetryAfter != nil {
		request.RetryAfter = durationpb.New(*o.RetryAfter)
	}
	answer, unsure, err := tried(ctx, b.client, "abandon", 0, b.client.rpc.AbandonJobs, request)
	return claimResults("abandon", claims, answer.GetResults(), unsure, err)
}

// Trash sets claimed jobs aside for a person to look at.
func (b *Board) Trash(ctx context.Context, reason string, claims ...*Claim) error {
	answer, unsure, err := tried(ctx, b.client, "trash", 0, b.client.rpc.TrashJobs,
		&boarddv1.TrashJobsRequest{Board: b.name, Claims: proofs(claims), Reason: reason})
	return claimResults("trash", claims, answer.GetResults(), unsure, err)
}

// TrashUnclaimed sets jobs aside that nobody has claimed.
func (b *Board) TrashUnclaimed(ctx context.Context, reason string, uuids ...string) error {
	answer, unsure, err := tried(ctx, b.client, "trash", 0, b.client.rpc.TrashJobs,
		&boarddv1.TrashJobsRequest{Board: b.name, Uuids: uuids, Reason: reason})
	return uuidResults("trash", uuids, answer.GetResults(), unsure, err)
}

// Restore puts jobs from the trash back onto the board.
func (b *Board) Restore(ctx context.Context, uuids ...string) error {
	answer, unsure, err := tried(ctx, b.client, "restore", 0, b.client.rpc.RestoreJobs,
		&boarddv1.RestoreJobsRequest{Board: b.name, Uuids: uuids})
	return uuidResults("restore", uuids, answer.GetResults(), unsure, err)
}

// Purge removes jobs for good.
func (b *Board) Purge(ctx context.Context, uuids ...string) error {
	answer, unsure, err := tried(ctx, b.client, "purge", 0, b.client.rpc.PurgeJobs,
		&boarddv1.PurgeJobsRequest{Board: b.name, Uuids: uuids})
	return uuidResults("purge", uuids, answer.GetResults(), unsure, err)
}

// ReleaseOptions says whose claims are broken, and why.
type ReleaseOptions struct {
	ExpectOwner string // only a claim of this owner is broken; empty: anybody's
	Reason      string
}

// Release breaks the claims on jobs without their tokens.
func (b *Board) Release(ctx context.Context, o ReleaseOptions, uuids ...string) error {
	answer, unsure, err := tried(ctx, b.client, "release", 0, b.client.rpc.ReleaseJobs,
		&boarddv1.ReleaseJobsRequest{Board: b.name, Uuids: uuids, ExpectOwner: o.ExpectOwner, Reason: o.Reason})
	return uuidResults("release", uuids, answer.GetResults(), unsure, err)
}

// PostAsItWas puts jobs on the board as they were when they were read, with their uuids, ages,
// states, attempts, operations and logs, but without claims: for jobs that Get returned with
// the field asItWas. Other fields that they have must say the same, so that no change of them
// is lost unnoticed. One that the board knows already, in any state, is refused.
func (b *Board) PostAsItWas(ctx context.Context, jobs ...*Job) ([]*Job, error) {
	answer, unsure, err := tried(ctx, b.client, "post as it was", 0, b.client.rpc.PostAsItWas, &boarddv1.PostAsItWasRequest{Board: b.name, Jobs: jobs})
	if err != nil {
		return nil, err
	}
	if unsure {
		for _, r := range answer.GetResults() {
			r.Error = afterLost(r.GetError())
		}
	}
	return b.jobs("post as it was", answer.GetResults(), len(jobs), func(i int) string { return jobs[i].GetUuid() })
}

// NewUUID returns a random uuid (RFC 4122, version 4).
func NewUUID() string {
	var id job.ID
	_, _ = rand.Read(id[:]) // never fails: it ends the program instead
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// proofs strips claims to what a request needs, so that no job's details travel
// back.
func proofs(claims []*Claim) []*Claim {
	stripped := make([]*Claim, len(claims))
	for i, c := range claims {
		stripped[i] = &Claim{Uuid: c.GetUuid(), Owner: c.GetOwner(), Token: c.GetToken()}
	}
	return stripped
}

// claimResults are the errors of a call that ends claims, which a server knows again by
// their tokens.
func claimResults(op string, claims []*Claim, results []*boarddv1.Result, unsure bool, err error) error {
	for _, r := range results {
		r.Error = refusedLater(r.GetError(), unsure)
	}
	return plainResults(op, len(claims), func(i int) string { return claims[i].GetUuid() }, results, err)
}

// uuidResults are the errors of a call that names jobs and nothing by which a server would
// know it again.
func uuidResults(op string, uuids []string, results []*boarddv1.Result, unsure bool, err error) error {
	if err == nil && unsure {
		for _, r := range results {
			r.Error = afterLost(r.GetError())
		}
	}
	return plainResults(op, len(uuids), func(i int) string { return uuids[i] }, results, err)
}

func plainResults(op string, n int, uuid func(i int) string, results []*boarddv1.Result, err error) error {
	if err != nil {
		return err
	}
	if err := checkCount(op, len(results), n); err != nil {
		return err
	}
	return failures(op, n, func(i int) (string, *boarddv1.Error) { return uuid(i), results[i].GetError() })
}

// afterLost is what an item's error is worth after a try whose answer was lost: that may
// have made the change, and be the reason for the error.
func afterLost(e *boarddv1.Error) *boarddv1.Error {
	if e == nil {
		return nil
	}
	return &boarddv1.Error{
		Code: boarddv1.Code_OUTCOME_UNKNOWN, Owner: e.GetOwner(),
		Message: "the answer to an earlier try was lost, which may have done it; to the next one the server said " + e.GetCode().String() + ": " + e.GetMessage(),
	}
}

// refusedLater is an item's error of a call that names its changes, where unsure says that
// the answer to an earlier try was lost. That a later one could not be served does not say
// what became of that one, which may still be on its way.
func refusedLater(e *boarddv1.Error, unsure bool) *boarddv1.Error {
	switch {
	case !unsure:
	case e.GetCode() == boarddv1.Code_UNAVAILABLE, e.GetCode() == boarddv1.Code_QUOTA_EXCEEDED:
		return afterLost(e)
	}
	return e
}

// checkCount guards against a server that answers fewer items than were asked.
func checkCount(op string, got, want int) error {
	if got == want {
		return nil
	}
	return &job.Error{Op: op, Kind: job.Internal, Message: "the server did not answer every item"}
}
