// Package main is a policy in Go: whose job needs a GPU gets a worker with that
// GPU, and gold comes before silver. The folders beside this one have the same
// in other languages.
package main

import "github.com/boardd/boardd/sdk/policy/guest"

func init() { guest.Serve(newPolicy()) }

func main() {}

// newPolicy is kept out of init: in a copy of it there the compiler would not inline
// what its functions call.
//
//go:noinline
func newPolicy() *guest.Policy {
	var gold, silver int64
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			gold, _ = b.Parameter(0).Int()
			silver, _ = b.Parameter(1).Int()
			return nil
		},
		Eligible: func(b guest.Batch, j guest.Job) guest.Verdict {
			wants, needs := j.Label("gpu")
			if has, ok := b.Worker("gpu"); needs && (!ok || has != wants) {
				return guest.Verdict{Decision: guest.Deny, Reason: 0}
			}
			return guest.Verdict{Decision: guest.Allow}
		},
		Score: func(_ guest.Batch, j guest.Job) int64 {
			score := int64(-j.Priority())*1_000_000 - int64(j.Attempt())*1_000 - int64(j.OperationPriority())
			switch tier, _ := j.Label("tier"); tier {
			case "gold":
				score += gold
			case "silver":
				score += silver
			}
			return score + int64(guest.Hash(j.Name())&63) // spreads what is alike
		},
	}
}
