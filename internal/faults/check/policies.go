package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// reason is what the policy of a load says of jobs that it denies.
const reason = "kept for its team"

// policies holds claims against the rules that may have been in force: none is granted
// that all of them forbid, and none refused by the policy that all of them allow. What
// servers say of the rule that they go by has to be one of those.
func policies(h *history.History) (problems []Problem) {
	boards := map[string]*deployments{}
	for _, c := range h.Policies {
		if boards[c.Board] == nil {
			d, found := follow(h, c.Board)
			boards[c.Board] = d
			problems = append(problems, found...)
		}
	}
	for _, c := range h.Policies {
		problems = append(problems, shownRule(boards[c.Board], c)...)
	}
	posted := postings(h)
	for _, op := range h.Ops {
		if d := boards[op.Board]; d != nil && op.Call == history.Claim && op.Job != "" && !op.Outside {
			problems = append(problems, judged(d, op, posted)...)
		}
	}
	return problems
}

// postings returns a post of each job.
func postings(h *history.History) map[string]history.Op {
	posted := map[string]history.Op{}
	for _, op := range h.Ops {
		if op.Call == history.Post && possible(op) {
			posted[op.Job] = op
		}
	}
	return posted
}

// judged looks at a claim that was granted, or refused by the policy.
func judged(d *deployments, op history.Op, posted map[string]history.Op) []Problem {
	rules, known := d.during(op.Server, op.From, op.To)
	post, ok := posted[op.Job]
	if !known || !ok {
		return nil
	}
	allows := func(r history.Rule) bool { return r.Allows(op.Team, post.Team) }
	var what string
	switch {
	case op.Outcome == history.Done && op.Granted != "" && !slices.ContainsFunc(rules, allows):
		what = "got it"
	case byPolicy(op) && !slices.ContainsFunc(rules, func(r history.Rule) bool { return !allows(r) }):
		what = "was refused it by the policy"
	default:
		return nil
	}
	return []Problem{{Job: op.Job, Text: fmt.Sprintf("it is of the team %q, and %s of the team %q %s from %s between %v and %v, where only these rules can have been in force: %+v",
		post.Team, op.Owner, op.Team, what, op.Server, op.Begin, op.End, rules)}}
}

// byPolicy reports whether a claim was refused by the policy's verdict.
func byPolicy(op history.Op) bool {
	return op.Outcome == history.Refused && op.Kind == job.NotEligible && strings.Contains(op.Text, reason)
}

// shownRule looks at what a server says of the rule that it goes by. At rest every server
// goes by what came last.
func shownRule(d *deployments, c history.PolicyCall) []Problem {
	if c.Call != history.Explain || c.Outcome != history.Done {
		return nil
	}
	rules, known := d.during(c.Server, c.From, c.To)
	if c.Final {
		rules, known = d.final()
	}
	if !known || slices.ContainsFunc(rules, func(r history.Rule) bool { return r.Serial == c.Shown }) {
		return nil
	}
	return []Problem{{Text: fmt.Sprintf("%s goes by rule %d at some time between %v and %v, where only these can have been in force: %+v", c.Server, c.Shown, c.Begin, c.End, rules)}}
}

// withJudged marks the claims that a policy may have denied, by its verdict or because it
// could not be asked.
func withJudged(h *history.History, ops []history.Op) []history.Op {
	if len(h.Policies) == 0 {
		return ops
	}
	ops = slices.Clone(ops)
	boards := map[string]*deployments{}
	for i := range ops {
		op := &ops[i]
		if op.Call != history.Claim || op.Outcome != history.Refused || op.Kind != job.NotEligible {
			continue
		}
		if boards[op.Board] == nil {
			boards[op.Board], _ = follow(h, op.Board)
		}
		rules, known := boards[op.Board].during(op.Server, op.From, op.To)
		op.Judged = !known || slices.ContainsFunc(rules, func(r history.Rule) bool { return r.Serial != 0 })
	}
	return ops
}
