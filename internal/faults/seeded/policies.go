package seeded

import (
	"bytes"
	"sync"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

type (
	promoteAsk   = boarddv1.PromotePolicyRequest
	promoteReply = boarddv1.PromotePolicyResponse
)

// wrongPolicies are servers that go by other policies than they say.
func wrongPolicies() []Bug {
	forgotten := every(2)
	return []Bug{
		{Name: "promotion-forgotten", Where: Server, Doc: "acknowledges every second promotion of a policy and forgets it", Checker: "policies", policies: true, hooks: map[string]hook{
			"PromotePolicy": typed(func(q *promoteAsk, send func(*promoteAsk) (*promoteReply, error)) (*promoteReply, error) {
				if !forgotten() {
					return send(q)
				}
				return &promoteReply{Policies: []*boarddv1.BoardPolicy{{Name: q.GetName(), Params: q.GetParams()}}}, nil
			}),
		}},
		{Name: "labels-of-another", Where: Server, Doc: "judges a claim by the labels of the worker who asked before", Checker: "policies", policies: true, hooks: map[string]hook{
			"ClaimJobs": labelsOfAnother(),
		}},
		{Name: "order-backwards", Where: Server, Doc: "has a promoted policy order the other way around", Checker: "order", policies: true, hooks: map[string]hook{
			"PromotePolicy": typed(func(q *promoteAsk, send func(*promoteAsk) (*promoteReply, error)) (*promoteReply, error) {
				no, yes := []byte(`"reversed":false`), []byte(`"reversed":true`)
				if bytes.Contains(q.GetParams(), no) {
					no, yes = yes, no
				}
				q.Params = bytes.Replace(q.GetParams(), yes, no, 1)
				return send(q)
			}),
		}},
	}
}

func labelsOfAnother() hook {
	var mu sync.Mutex
	var before map[string]string
	return asked[claimAsk, claimReply](func(q *claimAsk) {
		mu.Lock()
		defer mu.Unlock()
		before, q.WorkerLabels = q.GetWorkerLabels(), before
	})
}
