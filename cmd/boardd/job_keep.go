package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// onJobs makes a command that needs nothing but to know which jobs. Where they are picked
// by a filter alone, those in one of the usual states are.
func (p *program) onJobs(use string, usual []string, short, long, example string, do someJobs) *cobra.Command {
	f := &picked{what: use, usual: usual}
	c := p.command(use+" [UUID...]", short, long+pickedText, example, func(ctx context.Context, args []string) error {
		return p.each(ctx, f, args, do)
	})
	f.add(c)
	c.ValidArgsFunction = p.completeJobs(0, usual...)
	return c
}

func (p *program) jobRestoreCommand() *cobra.Command {
	return p.onJobs("restore", []string{"TRASHED"}, "Put jobs from the trash back onto the board", "Their attempts count from the beginning.",
		"boardd job restore 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11",
		func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error) {
			err := b.Restore(ctx, uuids...)
			return &boarddv1.RestoreJobsResponse{Results: results(err, len(uuids))}, doneRows("restored", uuids, err), err
		})
}

func (p *program) jobPurgeCommand() *cobra.Command {
	return p.onJobs("purge", []string{"TRASHED"}, "Remove jobs for good", "Nothing brings them back.",
		"boardd job purge 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11",
		func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error) {
			err := b.Purge(ctx, uuids...)
			return &boarddv1.PurgeJobsResponse{Results: results(err, len(uuids))}, doneRows("purged", uuids, err), err
		})
}

func (p *program) jobReleaseCommand() *cobra.Command {
	var o client.ReleaseOptions
	c := p.onJobs("release", []string{"CLAIMED"}, "Break the claims on jobs without their tokens",
		"For a person to free a job whose worker is gone for good. The worker's token is worth\nnothing from then on.",
		"boardd job release 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --reason 'the machine burned'",
		func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error) {
			err := b.Release(ctx, o, uuids...)
			return &boarddv1.ReleaseJobsResponse{Results: results(err, len(uuids))}, doneRows("released", uuids, err), err
		})
	c.Flags().StringVar(&o.ExpectOwner, "expect-owner", "", "break only a claim of this owner")
	c.Flags().StringVar(&o.Reason, "reason", "", "why, for people and the audit")
	return c
}
