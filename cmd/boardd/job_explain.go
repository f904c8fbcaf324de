package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) jobExplainCommand() *cobra.Command {
	var owner string
	var pairs []string
	c := p.command("explain UUID", "Say why a job is not (yet) claimed",
		"With --owner and --worker-label it answers for that worker, of which policies see the labels only.",
		"boardd job explain 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --worker-label gpu=yes",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one uuid, got %d", len(args))
			}
			if err := uuids(args, true); err != nil {
				return err
			}
			worker, err := labels("worker-label", pairs)
			if err != nil {
				return err
			}
			board, done, err := p.onBoard()
			if err != nil {
				return err
			}
			defer done()
			e, err := board.Explain(ctx, args[0], owner, worker)
			if err != nil {
				return p.reading(err)
			}
			return p.show(e, func(t *table) {
				t.line("state", e.GetState())
				t.line("verdict", e.GetVerdict())
				t.line("reason", e.GetReason())
				t.line("policy", e.GetPolicy())
				if e.Position != nil {
					t.line("jobs before it", e.GetPosition())
				}
				if e.Score != nil {
					t.line("score", e.GetScore())
				}
			})
		})
	c.Flags().StringVar(&owner, "owner", "", "the worker's name")
	c.Flags().StringArrayVar(&pairs, "worker-label", nil, "KEY=VALUE of the worker; may be repeated")
	c.ValidArgsFunction = p.completeJobs(1, allStates...)
	return c
}
