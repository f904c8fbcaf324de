package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) batchCommand() *cobra.Command {
	about := []*cobra.Command{p.batchPutCommand(), p.batchGetCommand(), p.batchCloseCommand(), p.batchWaitCommand(), p.batchCancelCommand()}
	for _, c := range about {
		c.ValidArgsFunction = p.completeBatches()
	}
	return p.group("batch", "Jobs that belong together",
		"A batch is named by the jobs that are posted with it (job post --batch NAME). The store counts\n"+
			"what becomes of them. Once the batch is closed and none of its jobs is open, the job that\n"+
			"follows it is posted, once.",
		append(about, p.batchListCommand())...)
}

func (p *program) batchPutCommand() *cobra.Command {
	var expected int64
	var c *cobra.Command
	c = p.command("put NAME [flags] [-- JOBNAME [flags of job post]]", "Say what follows a batch",
		"What stands behind -- is the job that is posted once the batch is closed and none of its jobs\n"+
			"is open, as job post takes it. A batch is closed by batch close, or once --expected jobs were\n"+
			"posted with it. What is left out is taken back.",
		`boardd batch put photos --expected 2 -- album --label customer=acme`,
		func(ctx context.Context, args []string) error {
			posting, err := p.following(c, args)
			if err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				put, err := b.PutBatch(ctx, args[0], posting, expected)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.PutBatchResponse{Batch: put}, batchRows([]*client.Batch{put}))
			})
		})
	c.Flags().Int64Var(&expected, "expected", 0, "close the batch once so many jobs were posted with it (default: batch close does that)")
	return c
}

// following reads the job behind --, if there is one.
func (p *program) following(c *cobra.Command, args []string) (*client.NewJob, error) {
	switch dash := c.ArgsLenAtDash(); {
	case dash < 0 && len(args) == 1:
		return nil, nil
	case dash != 1 || len(args) < 2:
		return nil, usagef("want one NAME, and behind --, if a job follows, its name and flags, as in: batch put photos -- album")
	}
	return p.behindDashes(args[1:])
}

func batchRows(list []*client.Batch) func(*table) {
	return func(t *table) {
		t.row("NAME", "STATE", "POSTED", "OPEN", "CONSUMED", "CANCELED", "FAILED", "TRASHED", "PURGED", "THEN", "THEN UUID", "PROBLEM")
		for _, b := range list {
			posted := strconv.FormatInt(b.GetPosted(), 10)
			if b.GetExpected() > 0 {
				posted += " of " + strconv.FormatInt(b.GetExpected(), 10)
			}
			t.row(b.GetName(), batchState(b), posted, b.GetOpen(), b.GetConsumed(), b.GetCanceled(), b.GetFailed(), b.GetTrashed(), b.GetPurged(),
				b.GetThen().GetName(), b.GetThenUuid(), clipped(b.GetProblem()))
		}
	}
}

func batchState(b *client.Batch) string {
	switch {
	case b.GetDone():
		return "done"
	case b.GetClosed():
		return "closed"
	}
	return "open"
}

func (p *program) batchListCommand() *cobra.Command {
	var done bool
	var c *cobra.Command
	c = p.command("list", "List the batches of a board",
		"It has the batches that were put or closed, and those of which a job is open, by name.",
		"boardd batch list --done=false",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			var only *bool
			if c.Flags().Changed("done") {
				only = &done
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				var list []*client.Batch
				for one, err := range b.Batches(ctx, only) {
					if err != nil {
						return err
					}
					list = append(list, one)
				}
				return p.show(&boarddv1.ListBatchesResponse{Batches: list}, batchRows(list))
			})
		})
	c.Flags().BoolVar(&done, "done", false, "only those that are done; --done=false: only those that are not (default: all)")
	return c
}

func (p *program) batchGetCommand() *cobra.Command {
	return p.oneNamed("get NAME", "Show how a batch stands", "", "boardd batch get photos -o json",
		func(ctx context.Context, b *client.Board, name string) error {
			got, err := b.Batch(ctx, name, 0)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.GetBatchResponse{Batch: got}, batchRows([]*client.Batch{got}))
		})
}

func (p *program) batchCloseCommand() *cobra.Command {
	return p.oneNamed("close NAME", "Let no more jobs into a batch", "What follows it is posted once none of its jobs is open.", "boardd batch close photos",
		func(ctx context.Context, b *client.Board, name string) error {
			closed, err := b.CloseBatch(ctx, name)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.CloseBatchResponse{Batch: closed}, batchRows([]*client.Batch{closed}))
		})
}

func (p *program) batchWaitCommand() *cobra.Command {
	var timeout duration
	c := p.oneNamed("wait NAME", "Wait until a batch is done", "It is done once it is closed, none of its jobs is open, and the job that follows it was posted. It\n"+
		"ends with 0 when all were consumed, with 1 when one was canceled, failed or is in the trash, and\n"+
		"with 4 when --timeout ran out before.",
		"boardd batch wait photos --timeout 1h",
		func(ctx context.Context, b *client.Board, name string) error {
			return p.batchWait(ctx, b, name, &timeout)
		})
	c.Flags().Var(&timeout, "timeout", "how long to wait (default: for ever)")
	return c
}

func (p *program) batchWait(ctx context.Context, b *client.Board, name string, timeout *duration) error {
	var got *client.Batch
	_, err := waitFor(ctx, timeout, func(wait time.Duration) (done bool, err error) {
		got, err = b.Batch(ctx, name, wait)
		return got.GetDone(), err
	})
	if err != nil {
		return err
	}
	return p.showBatch(got, timeout)
}

// showBatch shows a batch that was waited for. Jobs that did not end well are findings.
func (p *program) showBatch(b *client.Batch, timeout *duration) error {
	if err := p.show(&boarddv1.GetBatchResponse{Batch: b}, batchRows([]*client.Batch{b})); err != nil {
		return err
	}
	if !b.GetDone() {
		return nothing("the batch was not done within %v", timeout.value())
	}
	if b.GetConsumed() < b.GetPosted() {
		return findings("%d of %d jobs were consumed", b.GetConsumed(), b.GetPosted())
	}
	return nil
}

func (p *program) batchCancelCommand() *cobra.Command {
	var force, yes bool
	c := p.command("cancel NAME", "Close a batch and cancel its jobs",
		"A job of which nothing has begun ends at once. The worker of one that waits is asked to stop,\n"+
			"with --force also that of one that runs. What follows the batch is posted all the same once\n"+
			"none of its jobs is open: batch put NAME before takes it back.",
		"boardd batch cancel photos --yes",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one NAME, got %d", len(args))
			}
			f := &picked{what: "close the batch and cancel", usual: openStates, filter: "batch = " + filterValue(args[0]), yes: yes}
			return p.batchCancel(ctx, args[0], f, p.cancelSome(&force))
		})
	c.Flags().BoolVar(&force, "force", false, "also ask the workers of jobs that run to stop")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask whether these jobs are meant")
	return c
}

// batchCancel closes a batch and cancels its jobs. Nothing opens a batch again, so that it is
// closed after the question, and jobs that were posted meanwhile are looked for after that.
func (p *program) batchCancel(ctx context.Context, name string, jobs *picked, cancel someJobs) error {
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	if !jobs.yes {
		list, first, err := jobs.pick(ctx, board)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if err := p.sure(jobs, len(list), first); err != nil {
				return err
			}
		}
	}
	closed, err := board.CloseBatch(ctx, name)
	if err != nil || closed.GetOpen() == 0 {
		return p.missing(err)
	}
	list, _, err := jobs.pick(ctx, board)
	if err != nil {
		return err
	}
	return p.inBatches(ctx, board, list, cancel)
}

// filterValue writes a text as filters take it. Of the escapes of Go they know two.
func filterValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
