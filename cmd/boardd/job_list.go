package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// listFlags are the flags of job list.
type listFlags struct {
	states []string
	filter string
	fields []string
	limit  int
	wait   duration
	order  ordered
}

func (p *program) jobListCommand() *cobra.Command {
	f := &listFlags{}
	c := p.command("list", "List jobs in the order in which they will be claimed",
		"Without --state it lists the UNCLAIMED and the CLAIMED ones.\n"+
			"A filter is FIELD OP VALUE, joined by AND; the fields are name, owner, priority,\n"+
			"attempt, createdAt, batch, unique.key, labels.KEY and details.KEY, the operators\n"+
			"= != < <= > >=.",
		`boardd job list --state unclaimed --filter 'name = "resize" AND priority = HIGH' --limit 20`,
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("list takes no arguments, got %q; boardd job get shows single jobs", args[0])
			}
			return p.jobList(ctx, f)
		})
	flags := c.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "UNCLAIMED, CLAIMED, COMPLETE or TRASHED; may be repeated")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(allStates, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&f.filter, "filter", "", "only jobs that it fits")
	flags.StringSliceVar(&f.fields, "fields", nil, "show only these fields")
	flags.IntVar(&f.limit, "limit", 100, "how many jobs at most; 0: all of them")
	flags.Var(&f.wait, "wait", "how long to wait until there is a job to list (at most 60s)")
	f.order.add(c)
	return c
}

func (p *program) jobList(ctx context.Context, f *listFlags) error {
	if f.limit < 0 {
		return usagef("--limit %d: want a number of jobs, or 0 for all", f.limit)
	}
	chosen, err := states(f.states)
	if err != nil {
		return err
	}
	sorted, err := f.order.given()
	if err != nil {
		return err
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	most := f.limit
	if sorted {
		most = 0
	}
	o := client.ListOptions{States: chosen, Filter: f.filter, Fields: f.order.fields(f.fields), Wait: f.wait.value()}
	answer, more, err := readList(ctx, board, o, most)
	if err != nil {
		return err
	}
	f.order.apply(answer.Jobs)
	if f.limit > 0 && len(answer.Jobs) > f.limit {
		answer.Jobs, more = answer.Jobs[:f.limit], true
	}
	if err := p.show(answer, jobRows(answer.Jobs)); err != nil {
		return err
	}
	if p.output != "json" {
		for _, c := range answer.Corrupt {
			p.complain(fmt.Sprintf("%s %s: %s", cmp.Or(c.GetUuid(), c.GetKey()), c.GetError().GetCode(), c.GetError().GetMessage()))
		}
	}
	if f.wait.set != nil && len(answer.Jobs) == 0 {
		return nothing("no job to list within %v", f.wait.value())
	}
	if more && p.output != "json" {
		p.complain("there are more: --limit says how many are listed")
	}
	return nil
}

// readList reads up to most jobs, 0 for all, and says whether there are more.
func readList(ctx context.Context, b *client.Board, o client.ListOptions, most int) (answer *boarddv1.ListJobsResponse, more bool, err error) {
	answer = &boarddv1.ListJobsResponse{}
	for {
		o.PageSize = 1000
		if most > 0 {
			o.PageSize = int32(min(1000, most-len(answer.Jobs)))
		}
		page, err := b.ListAnswer(ctx, o, answer.NextPageToken)
		if err != nil {
			return nil, false, err
		}
		answer.Jobs, answer.NextPageToken = append(answer.Jobs, page.GetJobs()...), page.GetNextPageToken()
		answer.Corrupt = append(answer.Corrupt, page.GetCorrupt()...)
		if answer.NextPageToken == "" || most > 0 && len(answer.Jobs) >= most {
			return answer, answer.NextPageToken != "", nil
		}
		o.Wait = 0
	}
}

// allStates are those of jobs that can be shown.
var allStates = []string{"UNCLAIMED", "CLAIMED", "TRASHED", "COMPLETE"}
