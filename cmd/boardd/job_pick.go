package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/sdk/client"
)

// openStates are those of jobs that have not ended.
var openStates = []string{"UNCLAIMED", "CLAIMED"}

// picked is how a command that changes jobs is told which: by uuids, or by what they are.
type picked struct {
	what   string // is done with them, such as restore
	usual  []string
	states []string
	filter string
	yes    bool
}

const pickedText = "\nInstead of uuids, --filter and --state pick the jobs as in boardd job list; how many that are is\n" +
	"said, and asked about, first."

func (f *picked) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.filter, "filter", "", "of all jobs in these states those that it fits, as in boardd job list")
	flags.StringSliceVar(&f.states, "state", nil, "of all jobs those in this state; may be repeated (with --filter: "+strings.Join(f.usual, " and ")+")")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(allStates, cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask whether these jobs are meant")
}

// given reports whether jobs are picked by what they are. If so, no uuids may be given.
func (f *picked) given(args []string) (bool, error) {
	if f.filter == "" && len(f.states) == 0 {
		if f.yes {
			return false, usagef("--yes is for --filter and --state: what uuids name is not asked about")
		}
		if len(args) == 0 {
			return false, usagef("which jobs? Give uuids, or --filter or --state")
		}
		return false, uuids(args, true)
	}
	if len(args) > 0 {
		return false, usagef("--filter and --state pick the jobs: no uuids besides them")
	}
	return true, nil
}

// someJobs does something with jobs, and returns the answer as it is and as a table.
type someJobs func(ctx context.Context, b *client.Board, uuids []string) (proto.Message, func(*table), error)

// each does something with the jobs that are named or picked.
func (p *program) each(ctx context.Context, f *picked, args []string, do someJobs) error {
	byKind, err := f.given(args)
	if err != nil {
		return err
	}
	if !byKind {
		return p.end(ctx, func(ctx context.Context, b *client.Board) (proto.Message, func(*table), error) {
			return do(ctx, b, args)
		})
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	list, first, err := f.pick(ctx, board)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return nothing("no job is picked by that")
	}
	if err := p.sure(f, len(list), first); err != nil {
		return err
	}
	return p.inBatches(ctx, board, list, do)
}

// pickedAtOnce is how many jobs one call lists, or changes.
const pickedAtOnce = 1000

// pick returns the uuids of the jobs that are meant, and the first of them.
func (f *picked) pick(ctx context.Context, b *client.Board) (list []string, first *client.Job, err error) {
	names := f.states
	if len(names) == 0 {
		names = f.usual
	}
	chosen, err := states(names)
	if err != nil {
		return nil, nil, err
	}
	o := client.ListOptions{States: chosen, Filter: f.filter, Fields: []string{"uuid", "name"}, PageSize: pickedAtOnce}
	for j, err := range b.List(ctx, o) {
		if err != nil {
			return nil, nil, err
		}
		if first == nil {
			first = j
		}
		list = append(list, j.GetUuid())
	}
	return list, first, nil
}

// sure asks whether so many jobs are meant.
func (p *program) sure(f *picked, n int, first *client.Job) error {
	jobs := "1 job"
	if n > 1 {
		jobs = fmt.Sprintf("%d jobs", n)
	}
	if f.yes {
		return nil
	}
	if !terminal(p.in) {
		return usagef("%s would be picked, the first one %s (%s): --yes says that they are meant", jobs, first.GetUuid(), first.GetName())
	}
	fmt.Fprintf(p.err, "%s %s, the first one %s (%s)? [y/N] ", f.what, jobs, first.GetUuid(), printable(first.GetName()))
	answer, err := bufio.NewReader(p.in).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return codeError{exitRefused, "nothing was changed"}
}

// inBatches does something with many jobs, and goes on behind those that fail.
func (p *program) inBatches(ctx context.Context, b *client.Board, list []string, do someJobs) error {
	worst := exitDone
	for done := 0; done < len(list); done += pickedAtOnce {
		batch := list[done:min(done+pickedAtOnce, len(list))]
		answer, rows, err := do(ctx, b, batch)
		if !partly(err) {
			if done > 0 {
				p.complain(fmt.Sprintf("of %d jobs the first %d were seen to, and then:", len(list), done))
			}
			return err
		}
		if err := p.show(answer, rows); err != nil {
			return err
		}
		if err != nil {
			p.complainOf(err)
			worst = max(worst, exitCode(err))
		}
	}
	if worst != exitDone {
		return codeError{code: worst}
	}
	return nil
}
