package seeded

import (
	"fmt"
	"slices"
	"sync/atomic"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// clientBugs are wrong clients: what they tell their callers is not what they were told.
func clientBugs() []Bug {
	var fresh atomic.Int64
	lied := every(5)
	return []Bug{
		{Name: "retry-hides-outcome", Where: Client, Doc: "sets aside twice, and passes on the second answer", Checker: "linear", hooks: map[string]hook{
			"TrashJobs": typed(func(q *boarddv1.TrashJobsRequest, send func(*boarddv1.TrashJobsRequest) (*boarddv1.TrashJobsResponse, error)) (*boarddv1.TrashJobsResponse, error) {
				if len(q.GetUuids()) > 0 {
					_, _ = send(q) // as if the answer had been lost
				}
				return send(q)
			}),
		}},
		{Name: "request-renewed", Where: Client, Doc: "names every try of a claim anew", Checker: "repetitions", hooks: map[string]hook{
			"ClaimJobs": asked[claimAsk, claimReply](func(q *claimAsk) { q.RequestId = fmt.Sprint(q.GetRequestId(), fresh.Add(1)) }),
		}},
		{Name: "claims-cut", Where: Client, Doc: "keeps only the first of several claims", Checker: "refusals", hooks: map[string]hook{
			"ClaimJobs": answered(func(_ *claimAsk, a *claimReply) { a.Claims = a.GetClaims()[:min(1, len(a.GetClaims()))] }),
		}},
		{Name: "failures-dropped", Where: Client, Doc: "takes every item of a consumption for done", Checker: "consumption", hooks: map[string]hook{
			"ConsumeJobs": answered(func(_ *endAsk, a *endReply) {
				for _, r := range a.GetResults() {
					r.Error = nil
				}
			}),
		}},
		{Name: "failures-shifted", Where: Client, Doc: "gives the answers of posts to other items", Checker: "repetitions", hooks: map[string]hook{
			"PostJobs": answered(func(q *postAsk, a *postReply) {
				if len(q.GetJobs()) > 1 {
					slices.Reverse(a.GetResults())
				}
			}),
		}},
		{Name: "unknown-is-refused", Where: Client, Doc: "says UNAVAILABLE of what it abandoned and was answered", Checker: "linear", hooks: map[string]hook{
			"AbandonJobs": answered(func(_ *backAsk, a *backReply) {
				for _, r := range a.GetResults() {
					if r.GetError() == nil && lied() {
						r.Error = &boarddv1.Error{Code: boarddv1.Code_UNAVAILABLE, Message: "no answer"}
					}
				}
			}),
		}},
	}
}
