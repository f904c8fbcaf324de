package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// patience is how long the calls on one job are looked at. Those that take longer are a
// problem too: nothing is known of them.
const patience = time.Minute

// model is what the calls of a history on a job of a board are held against.
func model(h *history.History, board string) porcupine.Model {
	first := state{undecided: undecided(h, board), moves: len(h.Moves) > 0}
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{first} },
		Step:              func(s, in, _ any) []any { return s.(state).next(in.(history.Op)) },
		DescribeOperation: func(in, _ any) string { return describe(in.(history.Op)) },
	}
	return m.ToModel()
}

// undecided returns until when a claim on a board whose token was refused may go on; see state. Among
// the stores between which boards move there may be a PostgreSQL.
func undecided(h *history.History, board string) (until time.Duration) {
	for _, m := range h.Moves {
		if m.Board == board {
			until = max(until, m.End)
		}
	}
	switch h.Store {
	case "zookeeper":
		return history.Forever
	case "postgres", "postgres-standby", "moving":
		for _, f := range h.Faults {
			if recounts(f) {
				until = max(until, f.End)
			}
		}
	}
	return until
}

func describe(op history.Op) string {
	text := fmt.Sprintf("%s %s", op.Client, op.Call)
	if op.Token != "" {
		text += fmt.Sprintf(" by %.12s", op.Token)
	}
	if op.Owner != "" {
		text += " as " + op.Owner
	}
	if op.Lease != 0 {
		text += fmt.Sprint(" for ", op.Lease)
	}
	text += fmt.Sprintf(", %v to %v: %s", op.Begin, op.End, op.Outcome)
	switch {
	case op.Outcome == history.Refused:
		text += fmt.Sprint(" ", op.Kind)
	case op.Call == history.Get:
		text += fmt.Sprintf(" %v %s", op.State, op.Holder)
	case op.Granted != "":
		text += fmt.Sprintf(" token %.12s", op.Granted)
	}
	return text
}

// Linear finds jobs whose calls cannot have come one after the other in any order that
// agrees with their times. Of the calls on such a job it shows those up to the first
// that is impossible.
func Linear(h *history.History) (problems []Problem) {
	foreign := touched(h)
	for id, ops := range byJob(withLostClaims(h)) {
		if foreign[id] {
			ops = certain(ops)
		}
		calls := operations(once(withLostTries(h, ops)))
		if len(calls) == 0 {
			continue
		}
		m := model(h, ops[0].Board)
		switch porcupine.CheckOperationsTimeout(m, calls, patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("its %d calls could not be judged within %v", len(calls), patience)})
		case porcupine.Illegal:
			problems = append(problems, Problem{Job: id, Text: "impossible: " + impossible(m, calls)})
		}
	}
	return problems
}

// withLostTries returns the ops on a job, with another one for each that may have been
// made twice: its client tries again where an answer is lost, something was broken at the
// time, and it is not known again when it comes once more. That is so for what people do
// without a token, and for a posting whose job was purged in between, and also where the
// last try was not answered either.
func withLostTries(h *history.History, ops []history.Op) []history.Op {
	all := slices.Clip(ops)
	for _, op := range ops {
		switch op.Call {
		case history.Post, history.Purge, history.SetAside, history.Restore, history.Release, history.Cancel:
		default:
			continue
		}
		broken := slices.ContainsFunc(h.Faults, func(f history.Fault) bool { return f.Begin <= op.End && f.End >= op.Begin })
		if op.Retries && op.Outcome != history.Refused && broken {
			op.Outcome, op.End, op.To = history.Unknown, history.Forever, int64(history.Forever)
			if op.From == 0 {
				op.To = 0
			}
			all = append(all, op)
		}
	}
	return all
}

// doubled reports whether a call may have been asked for twice by itself of stores or servers of
// which one does not know the other's answer: the board moved meanwhile, or a server of a fleet
// that it was passed on to stood still or could not be reached. That one makes the call when it
// goes on, and a store remembers no answer that nothing is there.
func doubled(h *history.History, op history.Op) bool {
	return h.Moved(op.Board, op.Begin, op.End) || h.Store == "fleet" && slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		return (f.Name == "server stopped" || strings.HasPrefix(f.Name, "peer")) && f.Begin <= op.End && f.End >= op.Begin
	})
}

// withLostClaims returns the ops, with those claims whose client was not told what it
// got put to the jobs that were seen in its owner's hands. Who is told that it got nothing may
// have asked twice.
func withLostClaims(h *history.History) []history.Op {
	lost, calls, nothing := map[string]history.Op{}, map[string][]history.Op{}, map[string][]history.Op{}
	lose := func(op history.Op) {
		if first, ok := lost[op.Owner]; !ok || op.From < first.From {
			lost[op.Owner] = op
		}
	}
	for _, op := range h.Ops {
		switch {
		case op.Call != history.Claim:
		case op.Outcome == history.Unknown && op.Job == "":
			lose(op)
		case op.Outcome == history.Done && op.Job == "" && doubled(h, op):
			lose(unanswered(op))
		case op.Outcome == history.Done && op.Job == "":
			nothing[op.Owner] = append(nothing[op.Owner], op)
		case op.Outcome == history.Done:
			calls[op.Owner] = append(calls[op.Owner], op)
		}
	}
	ops := slices.Clone(h.Ops)
	for key := range sightings(h).owners {
		told := calls[key.owner]
		op, ok := lost[key.owner]
		if len(told) == 0 && !ok {
			told = nothing[key.owner]
		}
		switch {
		case ok && len(told) == 0:
		case len(told) > 0 && !slices.ContainsFunc(told, func(op history.Op) bool { return op.Job == key.job }) && lapsedUntold(h, key, told):
			op = unanswered(told[0])
		default:
			continue
		}
		op.Job = key.job
		ops = append(ops, op)
	}
	return ops
}

// settled makes one op of a claim that was repeated, from its first begin to the first
// answer that has it: it was made some time between. Attempts whose client was told
// nothing are left out where a later one was told, but for one that a store may have
// answered from which the board moved meanwhile: the new one does not know the call again,
// and claims once more.
func settled(h *history.History, ops []history.Op) (kept []history.Op) {
	begins, answers := map[string]history.Op{}, map[string]history.Op{}
	told := map[string]bool{}
	for _, op := range ops {
		if op.Call != history.Claim || op.Request == "" {
			continue
		}
		if first, ok := begins[op.Request]; !ok || op.From < first.From {
			begins[op.Request] = op
		}
		if op.Outcome != history.Done || op.Job == "" {
			continue
		}
		told[op.Request] = true
		if first, ok := answers[claimOf(op)]; !ok || op.To < first.To {
			answers[claimOf(op)] = op
		}
	}
	for _, op := range ops {
		if op.Call == history.Claim && op.Job != "" && op.Outcome != history.Unknown && h.Moved(op.Board, begins[op.Request].Begin, op.End) {
			kept = append(kept, triedBefore(op, begins[op.Request]))
		}
		switch {
		case op.Call != history.Claim || !told[op.Request]:
			kept = append(kept, op)
		case op.Outcome == history.Unknown:
		case op.Kind == job.NotEligible && op.From != begins[op.Request].From: // the request has its answer, without the job
		case op.Outcome != history.Done:
			kept = append(kept, op)
		case op.Job != "" && op.From == answers[claimOf(op)].From:
			first := begins[op.Request]
			op.From, op.Begin = first.From, first.Begin
			kept = append(kept, op)
		}
	}
	return kept
}

// triedBefore is what a client may have asked a store for, without an answer, from which the
// board had gone before it asked again.
func triedBefore(op, first history.Op) history.Op {
	op.From, op.Begin = first.From, first.Begin
	return unanswered(op)
}

// unanswered is a claim call of whose answer its client never heard.
func unanswered(op history.Op) history.Op {
	op.Outcome, op.Granted, op.Epoch, op.End = history.Unknown, "", 0, history.Forever
	if op.To != 0 { // else nothing counted the order of calls
		op.To = int64(history.Forever)
	}
	return op
}

func claimOf(op history.Op) string { return op.Request + " " + op.Job + " " + op.Granted }

// once leaves out what changes nothing more: calls whose outcome is not known, if the same
// was asked before with an unknown outcome. Only what is recognised when it comes again,
// or cannot be done twice, is the same.
func once(ops []history.Op) (kept []history.Op) {
	_, purged := find(ops, func(op history.Op) bool { return op.Call == history.Purge && possible(op) })
	asked := map[string]bool{}
	for _, op := range ops {
		key := ""
		switch op.Call {
		case history.Claim:
			key = op.Request
		case history.Post:
			if !purged {
				key = op.Posting
			}
		case history.Consume, history.Abandon, history.Trash:
			key = op.Token
		}
		if key = string(op.Call) + " " + key; op.Outcome == history.Unknown && asked[key] {
			continue
		}
		asked[key] = asked[key] || op.Outcome == history.Unknown && key != string(op.Call)+" "
		kept = append(kept, op)
	}
	return kept
}

func operations(ops []history.Op) []porcupine.Operation {
	calls := make([]porcupine.Operation, 0, len(ops))
	for _, op := range ops {
		c := porcupine.Operation{Input: op, Call: op.From, Return: op.To}
		if op.From == 0 && op.To == 0 {
			c.Call, c.Return = int64(op.Begin), int64(op.End)
		}
		if op.Call != history.Get || op.Outcome != history.Unknown { // that says nothing
			calls = append(calls, c)
		}
	}
	return calls
}

// impossible shows the calls up to the first whose answer cannot be.
func impossible(m porcupine.Model, calls []porcupine.Operation) string {
	slices.SortFunc(calls, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	n := 1
	for n < len(calls) && porcupine.CheckOperations(m, upTo(calls, n)) {
		n++
	}
	shown := upTo(calls, n)
	slices.SortFunc(shown, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, c := range shown {
		text.WriteString("\n    ")
		text.WriteString(describe(c.Input.(history.Op)))
	}
	return text.String()
}

// upTo returns the first n calls that were answered, and those that were under way
// then, as if nobody had waited for them.
func upTo(calls []porcupine.Operation, n int) []porcupine.Operation {
	shown := slices.Clone(calls[:n])
	last := shown[n-1].Return
	for _, c := range calls[n:] {
		if op := c.Input.(history.Op); c.Call < last {
			op.Outcome, op.End = history.Unknown, history.Forever
			c.Input, c.Return = op, int64(history.Forever)
			shown = append(shown, c)
		}
	}
	return shown
}
