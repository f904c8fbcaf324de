package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/host/wasm"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// simulating is what the flags of policy simulate say.
type simulating struct {
	versionFlags

	onError, by, recording, against string
	starvedAfter                    duration
	from                            string
}

func (p *program) policySimulateCommand() *cobra.Command {
	f := &simulating{}
	c := p.command("simulate NAME | FILE.wasm --recording PATH", "Go through what was recorded, with a policy and without",
		"The board's settings say how much of its past is recorded (record = \"24h\"). The same jobs and\n"+
			"the same claims are gone through twice: with what the board asks now, and with the policy in\n"+
			"the place of its earlier version, or besides the others. Nothing changes on the board.\n"+
			"With --recording nobody is asked but this machine: PATH is a file or a folder of a recording.",
		"boardd policy simulate urgent --board builds --by label:team\n"+
			"  boardd policy simulate fair-share --param by=label:team\n"+
			"  boardd policy simulate urgent.wasm --recording recordings/default/builds --against old.wasm",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "policy")
			if err != nil {
				return err
			}
			if f.recording != "" {
				return p.simulateHere(ctx, f, name)
			}
			if f.against != "" {
				return usagef("--against goes with --recording: a board is compared with what it asks now")
			}
			r, err := f.request(p.board, name)
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				s, err := a.SimulatePolicy(ctx, r)
				if err != nil {
					return err
				}
				return p.show(s, func(t *table) { simulationReport(t, s) })
			})
		})
	f.add(c, true)
	c.Flags().StringVar(&f.onError, "on-error", "", "for eligibility deny or allow, for ordering last or builtin")
	c.Flags().StringVar(&f.by, "by", "", "group the jobs by label:KEY, priority or name (default what an order by counts goes by, or else the name)")
	c.Flags().Var(&f.starvedAfter, "starved-after", "a job that waits longer starves (default a quarter of the recording's time)")
	c.Flags().StringVar(&f.from, "from", "", "begin at this time, or so long ago")
	c.Flags().StringVar(&f.recording, "recording", "", "go through this file or folder, on this machine")
	c.Flags().StringVar(&f.against, "against", "", "with --recording: the module to compare with (default none: the board's own order)")
	return c
}

// begin reads --from.
func (f *simulating) begin() (time.Time, error) {
	if f.from == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(f.from); err == nil && ago > 0 {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, f.from)
	if err != nil {
		return at, usagef("--from %q: want a time such as 2026-01-31T09:00:00Z, or a duration such as 6h", f.from)
	}
	return at, nil
}

func (f *simulating) request(board, name string) (*boarddv1.SimulatePolicyRequest, error) {
	params, err := paramFlags(f.pairs, f.object)
	if err != nil {
		return nil, err
	}
	from, err := f.begin()
	if err != nil {
		return nil, err
	}
	r := &boarddv1.SimulatePolicyRequest{
		Tenant: f.tenant, Board: board, Name: name, Digest: f.digest, Params: params, OnError: f.onError, By: f.by,
	}
	if f.starvedAfter.set != nil {
		r.StarvedAfter = durationpb.New(*f.starvedAfter.set)
	}
	if !from.IsZero() {
		r.From = timestamppb.New(from)
	}
	return r, nil
}

// simulateHere goes through a recording on this machine.
func (p *program) simulateHere(ctx context.Context, f *simulating, path string) error {
	set, err := parameters(f.pairs, f.object)
	if err != nil {
		return err
	}
	from, err := f.begin()
	if err != nil {
		return err
	}
	o := replay.Options{By: f.by, From: from}
	if f.starvedAfter.set != nil {
		o.StarvedAfter = *f.starvedAfter.set
	}
	return p.withPolicy(ctx, path, set, func(candidate *wasm.Policy) error {
		if f.against == "" {
			return p.compareHere(ctx, f, o, nil, candidate)
		}
		return p.withPolicy(ctx, f.against, nil, func(present *wasm.Policy) error {
			return p.compareHere(ctx, f, o, present, candidate)
		})
	})
}

func (p *program) compareHere(ctx context.Context, f *simulating, o replay.Options, present, candidate *wasm.Policy) error {
	report, err := replay.Run(ctx, recording.Read(f.recording), alone(present), alone(candidate), o)
	if err != nil {
		return findings("%v", err)
	}
	s := &admin.Simulation{Report: *report, Present: title(present), Candidate: title(candidate)}
	message := api.SimulationMessage(s)
	return p.show(message, func(t *table) { simulationReport(t, message) })
}

// alone are the rules of a board that asks one policy, or none.
func alone(w *wasm.Policy) board.Rules {
	if w == nil {
		return board.Rules{}
	}
	m := w.Manifest()
	rule := board.Rule{Policy: w, Name: m.Name}
	var rules board.Rules
	if m.Eligibility {
		rules.Eligibility = []board.Rule{rule}
	}
	if m.Ordering || m.Counts != "" {
		rules.Ordering = &rule
	}
	return rules
}

func title(w *wasm.Policy) string {
	if w == nil {
		return "none"
	}
	m := w.Manifest()
	return m.Name + " " + m.Version
}

func simulationReport(t *table, s *boarddv1.SimulatePolicyResponse) {
	t.line("recorded", s.GetFrom().AsTime().Format(time.RFC3339)+" to "+s.GetUntil().AsTime().Format(time.RFC3339))
	if n := s.GetGaps(); n > 0 {
		t.line("gaps", n)
	}
	for _, m := range s.GetMissing() {
		t.line("not recorded", m)
	}
	t.line("jobs", s.GetJobs())
	t.line("claims", s.GetClaims())
	t.line("of unknown workers", s.GetUnasked())
	t.line("as they were", s.GetAsRecorded())
	t.line("other jobs", s.GetDiffer())
	t.line("jobs served earlier", s.GetEarlier())
	t.line("jobs served later", s.GetLater())
	t.line("by at most, claims", s.GetLargestShift())
	t.line("starved after", s.GetStarvedAfter().AsDuration())
	t.line("now", s.GetPresent().GetPolicies())
	t.line("then", s.GetCandidate().GetPolicies())
	for _, e := range []struct {
		label string
		side  *boarddv1.SimulatedSide
	}{{"errors now", s.GetPresent()}, {"errors then", s.GetCandidate()}} {
		if n := e.side.GetErrors(); n > 0 {
			t.line(e.label, n)
		}
	}
	t.row("", "")
	t.row("BY "+s.GetBy(), "JOBS", "CLAIMED", "LEFT", "STARVED", "WAIT P50", "P99", "MOST")
	sides(t, "(all)", s.GetJobs(), s.GetPresent(), s.GetCandidate())
	for _, k := range s.GetKeys() {
		sides(t, k.GetKey(), k.GetJobs(), k.GetPresent(), k.GetCandidate())
	}
	if len(s.GetStarved()) == 0 {
		return
	}
	t.row("", "")
	t.row("STARVES", "KEY", "WAITED", "CLAIMED")
	for _, j := range s.GetStarved() {
		t.row(j.GetUuid(), j.GetKey(), short(j.GetWait()), j.GetClaimed())
	}
}

// sides writes what was and what would be of a group of jobs, where it differs.
func sides(t *table, key string, jobs int64, now, then *boarddv1.SimulatedSide) {
	both := func(a, b string) string {
		if a == b {
			return a
		}
		return a + " -> " + b
	}
	count := func(of func(*boarddv1.SimulatedSide) int64) string {
		return both(fmt.Sprint(of(now)), fmt.Sprint(of(then)))
	}
	span := func(of func(*boarddv1.SimulatedSide) *durationpb.Duration) string {
		return both(short(of(now)), short(of(then)))
	}
	t.row(key, jobs, count((*boarddv1.SimulatedSide).GetClaimed), count((*boarddv1.SimulatedSide).GetLeft), count((*boarddv1.SimulatedSide).GetStarved),
		span((*boarddv1.SimulatedSide).GetWaitP50), span((*boarddv1.SimulatedSide).GetWaitP99), span((*boarddv1.SimulatedSide).GetWaitMost))
}

// short is a duration as exactly as people need it.
func short(d *durationpb.Duration) string {
	v := d.AsDuration()
	switch {
	case v >= time.Minute:
		v = v.Round(time.Second)
	case v >= time.Second:
		v = v.Round(10 * time.Millisecond)
	default:
		v = v.Round(time.Millisecond)
	}
	return v.String()
}
