package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) jobCancelCommand() *cobra.Command {
	var force bool
	c := p.onJobs("cancel", openStates, "Cancel jobs",
		"A job of which nothing has begun ends at once. The worker of one that waits is asked to stop,\n"+
			"with --force also that of one that runs. It ends with 1 when a job was not canceled.",
		"boardd job cancel 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11",
		p.cancelSome(&force))
	c.Flags().BoolVar(&force, "force", false, "also ask the workers of jobs that run to stop")
	return c
}

// cancelSome cancels jobs.
func (p *program) cancelSome(force *bool) someJobs {
	return func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error) {
		changes, err := b.Cancel(ctx, *force, uuids...)
		answer := &boarddv1.CancelJobsResponse{}
		for i, err := range client.Each(err, len(changes)) {
			answer.Results = append(answer.Results, &boarddv1.CancelResult{
				Canceled: changes[i].Changed, Message: changes[i].Message, Error: message(err),
			})
		}
		failed := unchanged(changes, err, "canceled")
		if failed != nil && err == nil && !*force && anyRuns(ctx, b, uuids) {
			failed = notChanged{codeError{exitRefused, failed.Error() + "; --force also asks the worker of a job that runs to stop"}}
		}
		return answer, changeRows(changes, err), failed
	}
}

// anyRuns reports whether a worker has one of these jobs.
func anyRuns(ctx context.Context, b *client.Board, uuids []string) bool {
	jobs, _ := b.Get(ctx, client.GetOptions{Fields: []string{"state"}}, uuids...)
	return slices.ContainsFunc(jobs, func(j *client.Job) bool { return j.GetState() == boarddv1.State_CLAIMED })
}

func (p *program) jobPriorityCommand() *cobra.Command {
	f := &picked{what: "change the priority of", usual: openStates}
	c := p.command("priority [UUID...] PRIORITY", "Change the place of jobs in the line",
		"A number from -20 (first) to 19 is the priority of those operations that have not begun to run.\n"+
			"VERY_HIGH, HIGH, NORMAL, LOW and VERY_LOW are the class of the job itself, which counts first."+pickedText,
		"boardd job priority 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 -5",
		func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return usagef("want a priority behind the uuids: a number from %d to %d, or a class such as HIGH", job.MinOperationPriority, job.MaxOperationPriority)
			}
			set, err := priorityChange(args[len(args)-1])
			if err != nil {
				return err
			}
			return p.each(ctx, f, args[:len(args)-1], func(ctx context.Context, b *client.Board, list []string) (proto.Message, func(*table), error) {
				changes, err := set(ctx, b, list)
				answer := &boarddv1.ChangePriorityResponse{}
				for i, err := range client.Each(err, len(changes)) {
					answer.Results = append(answer.Results, &boarddv1.PriorityResult{
						Changed: changes[i].Changed, Message: changes[i].Message, Error: message(err),
					})
				}
				return answer, changeRows(changes, err), unchanged(changes, err, "changed")
			})
		})
	f.add(c)
	c.ValidArgsFunction = p.completeJobs(0, f.usual...)
	return c
}

// priorityChange reads a priority of one of the two sorts.
func priorityChange(to string) (func(context.Context, *client.Board, []string) ([]client.Change, error), error) {
	if n, err := strconv.ParseInt(to, 10, 32); err == nil {
		return func(ctx context.Context, b *client.Board, uuids []string) ([]client.Change, error) {
			return b.SetOperationPriority(ctx, int32(n), uuids...)
		}, nil
	}
	class, err := priority(to)
	return func(ctx context.Context, b *client.Board, uuids []string) ([]client.Change, error) {
		return b.SetPriority(ctx, class, uuids...)
	}, err
}

var negative = regexp.MustCompile(`^-[0-9]+$`)

// negativesLast moves numbers below zero behind everything else, where they are
// not taken for flags. Only boardd job priority takes such arguments.
func negativesLast(args []string) []string {
	at := slices.Index(args, "priority")
	if at < 1 || !slices.Contains(args[:at], "job") || slices.Contains(args, "--") || !slices.ContainsFunc(args[at:], negative.MatchString) {
		return args
	}
	var kept, numbers []string
	for _, arg := range args {
		if negative.MatchString(arg) {
			numbers = append(numbers, arg)
		} else {
			kept = append(kept, arg)
		}
	}
	return append(append(kept, "--"), numbers...)
}

func changeRows(changes []client.Change, err error) func(*table) {
	return func(t *table) {
		for i, err := range client.Each(err, len(changes)) {
			if err == nil {
				t.row(changes[i].Message)
			}
		}
	}
}

// unchanged is the end of a command some of whose jobs were not changed.
func unchanged(changes []client.Change, err error, what string) error {
	if err != nil {
		return err
	}
	left := 0
	for _, c := range changes {
		if !c.Changed {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	return notChanged{findings("%d of %d jobs were not %s", left, len(changes), what)}
}

// notChanged is an answer that says no to some items, though none has an error.
type notChanged struct{ error }

// Unwrap returns the code that the program ends with.
func (e notChanged) Unwrap() error { return e.error }

func (p *program) jobArchiveCommand() *cobra.Command {
	return p.onJobs("archive", []string{"TRASHED"}, "End jobs in the trash as failed",
		"For jobs in the trash that nobody will restore. They are kept as long as the board keeps ended\njobs; boardd job purge removes them at once.",
		"boardd job archive 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11",
		func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error) {
			err := b.Archive(ctx, uuids...)
			return &boarddv1.ArchiveJobsResponse{Results: results(err, len(uuids))}, doneRows("archived", uuids, err), err
		})
}

func (p *program) jobLogCommand() *cobra.Command {
	var follow bool
	var newerThan int64
	c := p.command("log UUID", "Show the log of a job",
		"Each line has the time, the index of the operation, the entry's type and its message. With -f it\n"+
			"goes on with what comes until the job ends.",
		"boardd job log 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 -f",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one uuid, got %d", len(args))
			}
			if err := uuids(args, true); err != nil {
				return err
			}
			board, done, err := p.onBoard()
			if err != nil {
				return err
			}
			defer done()
			for e, err := range board.Log(ctx, args[0], newerThan, follow) {
				if err != nil {
					return p.missing(err)
				}
				if err := p.logLine(e); err != nil {
					return err
				}
			}
			return nil
		})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job ends")
	c.Flags().Int64Var(&newerThan, "newer-than", 0, "only entries after this serial (default: all)")
	c.ValidArgsFunction = p.completeJobs(1, allStates...)
	return c
}

func (p *program) logLine(e *client.LogEntry) error {
	if p.output == "json" {
		return p.showJSON(e)
	}
	_, err := fmt.Fprintf(p.out, "%s  %d  %s  %s\n", text(e.GetAt()), e.GetIndex(), text(e.GetType()), text(e.GetMessage()))
	return err
}

// logRows shows the log that came with a job, below its uuid where there are
// several.
func logRows(j *client.Job, several bool) func(*table) {
	return func(t *table) {
		if len(j.GetLog()) == 0 {
			return
		}
		t.buffer.WriteByte('\n')
		if several {
			t.line("log of", j.GetUuid())
		}
		for _, e := range j.GetLog() {
			t.row(e.GetAt(), e.GetIndex(), e.GetType(), e.GetMessage())
		}
	}
}

// missing makes the error of a job that is not there one that says only that.
func (p *program) missing(err error) error {
	if job.KindOf(err) != job.NotFound {
		return err
	}
	p.complainOf(err)
	return codeError{code: exitNothing}
}

// operationRows shows the operations of a job.
func operationRows(list []*client.Operation) func(*table) {
	return func(t *table) {
		t.row("OPERATION", "NAME", "STATUS", "PRIORITY", "STARTED", "ENDED", "RESULT")
		for _, op := range list {
			t.row(op.GetIndex(), op.GetName(), op.GetStatus(), op.GetPriority(), op.GetStartedAt(), op.GetEndedAt(), clipped(string(op.GetResult())))
		}
	}
}

// clipped shortens a text for a table.
func clipped(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
