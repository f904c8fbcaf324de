package seeded

import (
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// Messages with shorter names.
type (
	claimAsk   = boarddv1.ClaimJobsRequest
	claimReply = boarddv1.ClaimJobsResponse
	listAsk    = boarddv1.ListJobsRequest
	listReply  = boarddv1.ListJobsResponse
	getAsk     = boarddv1.GetJobsRequest
	getReply   = boarddv1.GetJobsResponse
	postAsk    = boarddv1.PostJobsRequest
	postReply  = boarddv1.PostJobsResponse
	eventAsk   = boarddv1.ListEventsRequest
	eventReply = boarddv1.ListEventsResponse
	countAsk   = boarddv1.CountJobsRequest
	countReply = boarddv1.CountJobsResponse
	endAsk     = boarddv1.ConsumeJobsRequest
	endReply   = boarddv1.ConsumeJobsResponse
	backAsk    = boarddv1.AbandonJobsRequest
	backReply  = boarddv1.AbandonJobsResponse
	workAsk    = boarddv1.WorkRequest
	workReply  = boarddv1.WorkResponse
)

// every returns whether this is one of every n times.
func every(n int64) func() bool {
	var count atomic.Int64
	return func() bool { return count.Add(1)%n == 0 }
}

// serverBugs are wrong servers, seen from outside.
func serverBugs() []Bug {
	return slices.Concat(wrongCalls(), wrongWork(), wrongKeys(), wrongTimeouts(), wrongReads(), wrongTenants(), wrongPolicies())
}

// wrongKeys are servers that mix up whose a key is.
func wrongKeys() []Bug {
	lost := every(3)
	return []Bug{
		{Name: "key-forgotten", Where: Server, Doc: "forgets the unique key of every third posting that has one", Checker: "keys", hooks: map[string]hook{
			"PostJobs": asked[postAsk, postReply](func(q *postAsk) {
				for _, j := range q.GetJobs() {
					if j.Unique != nil && lost() {
						j.Unique = nil
					}
				}
			}),
		}},
	}
}

// wrongTimeouts are servers that lose what a posting says of its claims.
func wrongTimeouts() []Bug {
	lost := every(2)
	return []Bug{
		{Name: "timeout-forgotten", Where: Server, Doc: "forgets the timeout of every second posting that has one", Checker: "timeouts", hooks: map[string]hook{
			"PostJobs": asked[postAsk, postReply](func(q *postAsk) {
				for _, j := range q.GetJobs() {
					if j.Timeout != nil && lost() {
						j.Timeout = nil
					}
				}
			}),
		}},
		{Name: "attempts-forgotten", Where: Server, Doc: "forgets how often a job may be claimed", Checker: "timeouts", hooks: map[string]hook{
			"PostJobs": asked[postAsk, postReply](func(q *postAsk) {
				for _, j := range q.GetJobs() {
					j.MaxAttempts = 0
				}
			}),
		}},
		{Name: "timeout-not-told", Where: Server, Doc: "says that a lease ran out where the job's timeout was over", Checker: "timeouts", hooks: map[string]hook{
			"GetJobs": answered(func(_ *getAsk, a *getReply) {
				for _, r := range a.GetResults() {
					for _, attempt := range r.GetJob().GetAttempts() {
						if attempt.GetReason() == "timeout" {
							attempt.Reason = "the lease of " + attempt.GetOwner() + " ran out"
						}
					}
				}
			}),
		}},
	}
}

func wrongWork() []Bug {
	lost := every(3)
	return []Bug{
		{Name: "work-forgets-endings", Where: Server, Doc: "acknowledges the endings of every third call of Work, and forgets them", Checker: "linear", hooks: map[string]hook{
			"Work": typed(func(q *workAsk, send func(*workAsk) (*workReply, error)) (*workReply, error) {
				endings := q.GetEndings()
				if len(endings) == 0 || !lost() {
					return send(q)
				}
				q.Endings, q.Wait = nil, nil
				a, err := send(q)
				if err == nil {
					for _, e := range endings {
						a.Ended = append(a.Ended, &boarddv1.WorkEnded{Uuid: e.GetUuid(), Token: e.GetToken()})
					}
				}
				return a, err
			}),
		}},
		{Name: "work-claims-anew", Where: Server, Doc: "does not look at the request ids of Work", Checker: "repetitions", hooks: map[string]hook{
			"Work": asked[workAsk, workReply](func(q *workAsk) { q.RequestId = "" }),
		}},
	}
}

// wrongTenants are servers that mix up what two tenants have.
func wrongTenants() []Bug {
	var known sync.Map // jobs of all boards that were posted, by uuid
	posted := answered(func(_ *postAsk, a *postReply) {
		for _, r := range a.GetResults() {
			if r.GetJob() != nil {
				known.Store(r.GetJob().GetUuid(), r.GetJob())
			}
		}
	})
	return []Bug{
		{Name: "get-for-all", Where: Server, Doc: "shows a job to whoever knows its uuid, on whichever board", Checker: "apart", tenants: true, hooks: map[string]hook{
			"PostJobs": posted,
			"GetJobs": answered(func(q *getAsk, a *getReply) {
				for i, r := range a.GetResults() {
					if j, ok := known.Load(q.GetUuids()[i]); ok && q.GetBoard() == otherBoard && r.GetError() != nil {
						r.Error, r.Job = nil, j.(*boarddv1.Job)
					}
				}
			}),
		}},
		{Name: "restore-for-all", Where: Server, Doc: "tells another tenant that it has restored a job", Checker: "apart", tenants: true, hooks: map[string]hook{
			"RestoreJobs": answered(func(q *boarddv1.RestoreJobsRequest, a *boarddv1.RestoreJobsResponse) {
				for _, r := range a.GetResults() {
					if q.GetBoard() == otherBoard {
						r.Error = nil
					}
				}
			}),
		}},
	}
}

func wrongCalls() []Bug {
	lost, swapped, unsent, forged, now := every(6), every(3), every(4), every(5), every(4)
	return []Bug{
		{Name: "claims-kept", Where: Server, Doc: "claims, and answers every sixth call without the claims", Checker: "refusals", hooks: map[string]hook{
			"ClaimJobs": answered(func(_ *claimAsk, a *claimReply) {
				if lost() {
					a.Claims = nil
				}
			}),
		}},
		{Name: "request-forgotten", Where: Server, Doc: "does not look at the request ids of claims", Checker: "repetitions", hooks: map[string]hook{
			"ClaimJobs": asked[claimAsk, claimReply](func(q *claimAsk) { q.RequestId = "" }),
		}},
		{Name: "lease-capped", Where: Server, Doc: "grants a second, whatever is asked for", Checker: "leases", hooks: map[string]hook{
			"ClaimJobs": asked[claimAsk, claimReply](func(q *claimAsk) { q.Lease = durationpb.New(1e9) }),
		}},
		{Name: "epoch-lost", Where: Server, Doc: "shows every third claim with the number 1", Checker: "fencing", hooks: map[string]hook{
			"ClaimJobs": answered(func(_ *claimAsk, a *claimReply) {
				for _, c := range a.GetClaims() {
					if swapped() {
						c.Epoch = 1
					}
				}
			}),
		}},
		{Name: "consume-acknowledged-early", Where: Server, Doc: "acknowledges every fourth consumption and forgets it", Checker: "posts", hooks: map[string]hook{
			"ConsumeJobs": typed(func(q *endAsk, send func(*endAsk) (*endReply, error)) (*endReply, error) {
				if !unsent() {
					return send(q)
				}
				results := make([]*boarddv1.Result, len(q.GetClaims()))
				for i := range results {
					results[i] = &boarddv1.Result{}
				}
				return &endReply{Results: results}, nil
			}),
		}},
		{Name: "refusal-invented", Where: Server, Doc: "abandons, and says of every fifth claim that it was lost before", Checker: "linear", hooks: map[string]hook{
			"AbandonJobs": answered(func(_ *backAsk, a *backReply) {
				for _, r := range a.GetResults() {
					if forged() {
						r.Error = &boarddv1.Error{Code: boarddv1.Code_LEASE_LOST, Message: "the claim has ended"}
					}
				}
			}),
		}},
		{Name: "limit-off-by-one", Where: Server, Doc: "refuses posts, now and then, below the limit of open jobs", Checker: "limits", Limit: 500, hooks: map[string]hook{
			"PostJobs": typed(func(q *postAsk, send func(*postAsk) (*postReply, error)) (*postReply, error) {
				if !now() {
					return send(q)
				}
				results := make([]*boarddv1.JobResult, len(q.GetJobs()))
				for i := range results {
					results[i] = &boarddv1.JobResult{Error: &boarddv1.Error{Code: boarddv1.Code_QUOTA_EXCEEDED, Message: "open_jobs"}}
				}
				return &postReply{Results: results}, nil
			}),
		}},
		{Name: "post-renumbered", Where: Server, Doc: "shows the jobs of posts with numbers that fall", Checker: "order", hooks: map[string]hook{
			"PostJobs": answered(func(_ *postAsk, a *postReply) {
				for _, r := range a.GetResults() {
					if r.GetJob() != nil {
						r.Job.Sequence = 1_000_000 - r.GetJob().GetSequence()
					}
				}
			}),
		}},
	}
}

func wrongReads() []Bug {
	stale, gap := every(5), every(4)
	return []Bug{
		{Name: "list-short", Where: Server, Doc: "leaves out the last job of a list", Checker: "counts", hooks: map[string]hook{
			"ListJobs": answered(func(_ *listAsk, a *listReply) { a.Jobs = a.GetJobs()[:max(0, len(a.GetJobs())-1)] }),
		}},
		{Name: "list-repeats", Where: Server, Doc: "lists the first job again at the end", Checker: "counts", hooks: map[string]hook{
			"ListJobs": answered(func(_ *listAsk, a *listReply) {
				if len(a.GetJobs()) > 0 {
					a.Jobs = append(a.GetJobs(), a.GetJobs()[0])
				}
			}),
		}},
		{Name: "list-reversed", Where: Server, Doc: "lists the youngest job first", Checker: "order", hooks: map[string]hook{
			"ListJobs": answered(func(_ *listAsk, a *listReply) { slices.Reverse(a.GetJobs()) }),
		}},
		{Name: "count-drifts", Where: Server, Doc: "counts one job too many as unclaimed", Checker: "counts", hooks: map[string]hook{
			"CountJobs": answered(func(_ *countAsk, a *countReply) { a.Unclaimed++ }),
		}},
		{Name: "get-stale", Where: Server, Doc: "shows every fifth claimed job as unclaimed", Checker: "linear", hooks: map[string]hook{
			"GetJobs": answered(func(_ *getAsk, a *getReply) {
				for _, r := range a.GetResults() {
					if r.GetJob().GetState() == boarddv1.State_CLAIMED && stale() {
						r.Job.State, r.Job.Owner = boarddv1.State_UNCLAIMED, ""
					}
				}
			}),
		}},
		{Name: "details-mixed-up", Where: Server, Doc: "shows the details of another job", Checker: "posts", hooks: map[string]hook{
			"GetJobs": answered(func(_ *getAsk, a *getReply) {
				list := a.GetResults()
				for i := 1; i < len(list); i++ {
					if list[i].GetJob().GetDetails() != nil && list[i-1].GetJob().GetDetails() != nil {
						list[i].Job.Details = list[i-1].GetJob().GetDetails()
					}
				}
			}),
		}},
		{Name: "events-skipped", Where: Server, Doc: "leaves out every fourth event of a poll", Checker: "watchers", hooks: map[string]hook{
			"ListEvents": answered(func(_ *eventAsk, a *eventReply) {
				a.Events = slices.DeleteFunc(a.GetEvents(), func(*boarddv1.Event) bool { return gap() })
			}),
		}},
		{Name: "events-swapped", Where: Server, Doc: "shows the events of a poll in another order", Checker: "watchers", hooks: map[string]hook{
			"ListEvents": answered(func(_ *eventAsk, a *eventReply) { slices.Reverse(a.GetEvents()) }),
		}},
		{Name: "events-again", Where: Server, Doc: "begins every poll with the last event of the one before", Checker: "watchers", hooks: map[string]hook{
			"ListEvents": eventsAgain(),
		}},
	}
}

func eventsAgain() hook {
	var last atomic.Pointer[boarddv1.Event]
	return answered(func(q *eventAsk, a *eventReply) {
		if e := last.Load(); e != nil && q.GetFrom() != "" && len(a.GetEvents()) > 0 {
			a.Events = append([]*boarddv1.Event{e}, a.GetEvents()...)
		}
		if n := len(a.GetEvents()); n > 0 {
			last.Store(a.GetEvents()[n-1])
		}
	})
}
