package policy_test

import (
	"context"
	"fmt"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/guest"
	"github.com/boardd/boardd/sdk/policy/native"
)

// A module serves the policy from an init function and has an empty main:
//
//	func init() { guest.Serve(urgent()) }
//
//	func main() {}

//go:noinline
func urgent() *guest.Policy {
	return &guest.Policy{
		Score: func(b guest.Batch, j guest.Job) int64 {
			if _, ok := j.Label("urgent"); ok {
				return 1
			}
			return 0
		},
	}
}

const urgentManifest = `{"name": "acme/urgent", "version": "1.0.0", "abi": 1, "kinds": ["ordering"], "labels": ["urgent"]}`

// A policy's functions run natively in its tests.
func Example() {
	p, err := native.New([]byte(urgentManifest), nil, urgent())
	if err != nil {
		fmt.Println(err)
		return
	}
	scores := make([]int64, 2)
	err = p.Score(context.Background(), &policy.Batch{Jobs: []policy.Job{{}, {Labels: []job.Label{{Key: "urgent", Value: "yes"}}}}}, scores)
	fmt.Println(scores, err)
	// Output: [0 1] <nil>
}
