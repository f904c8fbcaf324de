package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

const done, untold, noted = history.Done, history.Unknown, history.Refused

// deploys are calls about policies, each from 10 times its number to 5 later.
func deploys(calls ...history.PolicyCall) *history.History {
	h := &history.History{Ops: []history.Op{{Call: history.Post, Job: a, Team: "red", Outcome: done, From: 1, To: 2}}}
	for i, c := range calls {
		c.From, c.To = int64(10*i+10), int64(10*i+15)
		if c.Outcome == untold {
			c.To = int64(history.Forever)
		}
		h.Policies = append(h.Policies, c)
	}
	return h
}

func promoted(server string, serial int64, kept string, outcome history.Outcome) history.PolicyCall {
	return history.PolicyCall{Call: history.Promote, Server: server, Rule: history.Rule{Serial: serial, Kept: kept}, Outcome: outcome, Shown: serial}
}

func rolledBack(server string, shown int64, outcome history.Outcome) history.PolicyCall {
	return history.PolicyCall{Call: history.Rollback, Server: server, Outcome: outcome, Shown: shown}
}

func explained(server string, shown int64, final bool) history.PolicyCall {
	return history.PolicyCall{Call: history.Explain, Server: server, Shown: shown, Outcome: done, Final: final}
}

// claimed is a claim of the red job by a worker of a team.
func claimed(server, team string, from, to int64) history.Op {
	return history.Op{Call: history.Claim, Job: a, Server: server, Team: team, Granted: "t", Owner: "w", Outcome: done, From: from, To: to}
}

func denied(server string, from, to int64) history.Op {
	return history.Op{
		Call: history.Claim, Job: a, Server: server, Team: "blue", Owner: "w", Outcome: noted, From: from, To: to,
		Kind: job.NotEligible, Text: "claim: the job is kept for its team",
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	kept := promoted("one", 1, "red", done) // from 10 to 15
	for _, c := range []struct {
		name string
		h    *history.History
		op   history.Op
		want string // empty: nothing is wrong
	}{
		{"a stranger after it", deploys(kept), claimed("one", "blue", 16, 18), "got it"},
		{"its worker after it", deploys(kept), claimed("one", "red", 16, 18), ""},
		{"everybody's worker", deploys(kept), claimed("one", history.Everybody, 16, 18), ""},
		{"a stranger whose call began before", deploys(kept), claimed("one", "blue", 14, 18), ""},
		{"a stranger on another server", deploys(kept), claimed("two", "blue", 16, 18), ""},
		{"a stranger on no known server", deploys(kept), claimed("", "blue", 16, 18), ""},
		{"a stranger after nobody was told", deploys(promoted("one", 1, "red", untold)), claimed("one", "blue", 30, 31), ""},
		{"a stranger after it was refused", deploys(promoted("one", 1, "red", noted)), claimed("one", "blue", 30, 31), ""},
		{"a stranger after both said so", deploys(kept, promoted("two", 2, "red", done)), claimed("two", "blue", 26, 28), "got it"},
		{"a stranger after the other's second", deploys(kept, promoted("two", 2, "red", done)), claimed("one", "blue", 26, 28), "got it"},
		{"a stranger after it was taken back", deploys(kept, rolledBack("two", 0, done)), claimed("one", "blue", 26, 28), ""},
		{"a stranger after perhaps it was taken back", deploys(kept, rolledBack("one", 0, untold)), claimed("one", "blue", 90, 91), ""},
		{"a stranger after the second was taken back", deploys(kept, promoted("one", 2, "", done), rolledBack("one", 1, done)), claimed("one", "blue", 36, 37), "got it"},
		{"refused before there was a rule", deploys(kept), denied("one", 3, 5), "was refused it"},
		{"refused while it came", deploys(kept), denied("one", 3, 12), ""},
		{"refused after it was taken back", deploys(kept, rolledBack("one", 0, done)), denied("one", 26, 28), "was refused it"},
		{"refused where the other took it back", deploys(kept, rolledBack("two", 0, done)), denied("one", 26, 28), ""},
		{"refused after something that may come later", deploys(promoted("one", 1, "red", untold), promoted("one", 2, "", done)), denied("one", 90, 91), ""},
		{"a late one is over when it was seen", deploys(promoted("one", 1, "red", untold), rolledBack("one", 0, done)), denied("one", 90, 91), "was refused it"},
	} {
		c.h.Ops = append(c.h.Ops, c.op)
		found(t, c.name, c.h, c.want)
	}
	for _, c := range []struct {
		name string
		h    *history.History
		want string
	}{
		{"the rule", deploys(kept, explained("one", 1, false)), ""},
		{"another rule", deploys(kept, promoted("one", 2, "", done), explained("one", 1, false)), "goes by rule 1"},
		{"not heard of it", deploys(kept, explained("two", 0, false)), ""},
		{"not heard of it at rest", deploys(kept, explained("two", 0, true)), "goes by rule 0"},
		{"an answer that cannot be", deploys(kept, rolledBack("one", 1, done)), "which cannot be"},
	} {
		found(t, c.name, c.h, c.want)
	}
}

// found wants one problem of the checker of policies, or none.
func found(t *testing.T, name string, h *history.History, want string) {
	t.Helper()
	problems := slices.DeleteFunc(check.Run(h), func(p check.Problem) bool { return p.Checker != "policies" })
	if (len(problems) > 0) != (want != "") || want != "" && !strings.Contains(problems[0].Text, want) {
		t.Errorf("%s: found %v, want %q", name, problems, want)
	}
}

// So many calls of which nobody was told that everything may be in force.
func TestPoliciesNobodyWasTold(t *testing.T) {
	t.Parallel()
	var calls []history.PolicyCall
	for n := range int64(40) {
		calls = append(calls, promoted("one", n+1, "red", untold))
	}
	h := deploys(append(calls, promoted("one", 50, "red", done), explained("one", 50, false))...)
	h.Ops = append(h.Ops, claimed("one", "blue", 900, 901))
	found(t, "many", h, "")
}

// At rest the order is that of the rule in force.
func TestOrderByPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reversed bool
		want     string
	}{{true, ""}, {false, "rank 0 by rule 1"}} {
		p := promoted("one", 1, "", done)
		p.Rule.Reversed = c.reversed
		h := deploys(p)
		h.Ops[0].Rank = 2
		h.Lists = []history.List{{Final: true, State: job.Unclaimed, Jobs: []history.Listed{{Job: b, Priority: 3, Sequence: 9}, {Job: a, Priority: 1, Sequence: 1}}}}
		problems := slices.DeleteFunc(check.Run(h), func(p check.Problem) bool { return p.Checker != "order" })
		if (len(problems) > 0) != (c.want != "") || c.want != "" && !strings.Contains(problems[0].Text, c.want) {
			t.Errorf("reversed %v: found %v, want %q", c.reversed, problems, c.want)
		}
	}
}
