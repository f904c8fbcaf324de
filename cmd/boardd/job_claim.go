package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// claimFlags are the flags of job claim.
type claimFlags struct {
	o      client.ClaimOptions
	lease  duration
	wait   duration
	labels []string
}

func (p *program) jobClaimCommand() *cobra.Command {
	f := &claimFlags{}
	c := p.command("claim [UUID...] --owner WORKER", "Claim jobs",
		"With uuids it claims those; without, the best ones that this worker may have. It ends\n"+
			"with 4 when there was nothing to claim. Keep what -o json prints: its tokens are what\n"+
			"extend, consume, abandon and trash ask for (--claims).",
		"boardd job claim --owner me --max 10 --wait 30s -o json > claims.jsonl\n  boardd job consume --claims claims.jsonl",
		func(ctx context.Context, args []string) error {
			f.o.UUIDs = args
			return p.jobClaim(ctx, f)
		})
	flags := c.Flags()
	flags.StringVar(&f.o.Owner, "owner", "", "who claims; any text (demanded)")
	flags.Int32Var(&f.o.Max, "max", 1, "how many jobs at most")
	flags.StringArrayVar(&f.o.Names, "name", nil, "only jobs of this name; may be repeated")
	flags.StringVar(&f.o.Filter, "filter", "", "only jobs that it fits, as in boardd job list")
	flags.Var(&f.lease, "lease", "how long the claim holds (default: the board's)")
	flags.BoolVar(&f.o.NoExpiry, "no-expiry", false, "a claim that does not expire, where the board allows it")
	flags.Var(&f.wait, "wait", "how long to wait for a job (default: not at all)")
	flags.StringArrayVar(&f.labels, "worker-label", nil, "KEY=VALUE that describes the worker to the board's policies; may be repeated")
	flags.Var((*named)(&f.o.RequestID), "request-id", "the same one again answers the same claims")
	c.MarkFlagsMutuallyExclusive("lease", "no-expiry")
	c.ValidArgsFunction = p.completeJobs(0, "UNCLAIMED")
	return c
}

func (p *program) jobClaim(ctx context.Context, f *claimFlags) error {
	if f.o.Owner == "" {
		return usagef("--owner is missing: any text that names who works on the job")
	}
	if err := uuids(f.o.UUIDs, false); err != nil {
		return err
	}
	if f.o.Max < 1 {
		return usagef("--max %d: want at least 1", f.o.Max)
	}
	var err error
	if f.o.Labels, err = labels("worker-label", f.labels); err != nil {
		return err
	}
	f.o.Lease = f.lease.value()
	if len(f.o.UUIDs) > 0 {
		f.o.Max = 0
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	claims, err := claimWithin(ctx, board, f.o, f.wait.value())
	if !partly(err) {
		return err
	}
	answer := &boarddv1.ClaimJobsResponse{Claims: claims}
	for i, err := range client.Each(err, len(f.o.UUIDs)) {
		if err != nil {
			answer.Failures = append(answer.Failures, &boarddv1.ClaimFailure{Uuid: f.o.UUIDs[i], Error: message(err)})
		}
	}
	if shown := p.show(answer, claimRows(claims)); shown != nil {
		return shown
	}
	if err == nil && len(claims) == 0 {
		return nothing("there is nothing to claim%s", f.waiting(ctx, board))
	}
	f.shorter(p, claims)
	return err
}

// waiting names a job that is there and was not granted, and how to learn why; nothing if
// there is none, or the token may not look.
func (f *claimFlags) waiting(ctx context.Context, board *client.Board) string {
	filters := []string{f.o.Filter}
	if len(f.o.Names) > 0 {
		filters = nil
	}
	for _, name := range f.o.Names {
		filters = append(filters, strings.TrimSuffix("name = "+strconv.Quote(name)+" AND "+f.o.Filter, " AND "))
	}
	for _, filter := range filters {
		o := client.ListOptions{States: []boarddv1.State_Enum{boarddv1.State_UNCLAIMED}, Filter: filter, Fields: []string{"uuid"}, PageSize: 1}
		if jobs, _, err := board.ListPage(ctx, o, ""); err == nil && len(jobs) > 0 {
			return fmt.Sprintf(" for this worker; job %s waits: boardd job explain, with this --owner and --worker-label, says for what", jobs[0].GetUuid())
		}
	}
	return ""
}

// shorter says that the server gave less time than was asked for.
func (f *claimFlags) shorter(p *program, claims []*client.Claim) {
	for _, c := range claims {
		if got := c.GetLease().AsDuration(); c.GetLease() != nil && got < f.o.Lease {
			p.complain("the leases are of " + got.String() + ", the longest that the board grants")
			return
		}
	}
}

// claimWithin claims, and waits longer than one call can where that is asked for.
func claimWithin(ctx context.Context, board *client.Board, o client.ClaimOptions, wait time.Duration) ([]*client.Claim, error) {
	deadline := time.Now().Add(wait)
	for {
		o.Wait = max(0, min(longestWait, time.Until(deadline)))
		claims, err := board.Claim(ctx, o)
		if err != nil || len(claims) > 0 || !time.Now().Before(deadline) {
			return claims, err
		}
	}
}

func claimRows(claims []*client.Claim) func(*table) {
	return func(t *table) {
		if len(claims) == 0 {
			return
		}
		t.row("UUID", "NAME", "ATTEMPT", "LEASE", "TOKEN")
		for _, c := range claims {
			lease := "no expiry"
			if c.GetLease() != nil {
				lease = c.GetLease().AsDuration().String()
			}
			t.row(c.GetUuid(), c.GetJob().GetName(), c.GetAttempt(), lease, c.GetToken())
		}
	}
}
