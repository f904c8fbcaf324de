package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

// longestWait is how long the server holds an answer at most.
const longestWait = 60 * time.Second

func (p *program) jobGetCommand() *cobra.Command {
	var fields []string
	var log bool
	c := p.command("get UUID...", "Show jobs", "A job that ended is shown as long as the board remembers it. With --log what is kept of its log is\nshown as well, as boardd job log does; with -o json it is then written whole, and boardd job post\n--from FILE --as-it-was puts it back, or onto another board.",
		"boardd job get 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --fields name,details\n  boardd job get 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --log -o json > job.json",
		func(ctx context.Context, args []string) error {
			if err := uuids(args, true); err != nil {
				return err
			}
			board, done, err := p.onBoard()
			if err != nil {
				return err
			}
			defer done()
			if log {
				fields = withLog(fields, p.output == "json")
			}
			jobs, err := board.Get(ctx, client.GetOptions{Fields: fields}, args...)
			return p.showJobs(jobs, err)
		})
	c.Flags().StringSliceVar(&fields, "fields", nil, "show only these fields")
	c.Flags().BoolVar(&log, "log", false, "show the log as well")
	c.ValidArgsFunction = p.completeJobs(0, allStates...)
	return c
}

// withLog adds the log to the fields that are wanted, of which none means all, and all of
// them the job whole where that is wanted, too.
func withLog(fields []string, whole bool) []string {
	if len(fields) > 0 {
		return append(fields, "log")
	}
	all := (*boarddv1.Job)(nil).ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		if name := all.Get(i).JSONName(); name != "givenFields" && (whole || name != "asItWas") {
			fields = append(fields, name)
		}
	}
	return fields
}

// showJobs shows what a reading call returned: one job with everything, several
// in a table.
func (p *program) showJobs(jobs []*client.Job, err error) error {
	if !partly(err) {
		return err
	}
	shown := p.show(&boarddv1.GetJobsResponse{Results: jobResults(jobs, err)}, func(t *table) {
		found := 0
		for _, j := range jobs {
			if j != nil {
				found++
			}
		}
		switch {
		case found == 0:
		case len(jobs) == 1:
			jobLines(jobs[0])(t)
			if operations := jobs[0].GetOperations(); len(operations) > 0 {
				t.buffer.WriteByte('\n')
				operationRows(operations)(t)
			}
		default:
			jobRows(jobs)(t)
		}
		for _, j := range jobs {
			logRows(j, len(jobs) > 1)(t)
		}
	})
	if err != nil {
		return p.reading(err)
	}
	return shown
}

func (p *program) jobCountCommand() *cobra.Command {
	return p.command("count", "Count the board's jobs", "ready and delayed make up unclaimed.", "boardd job count --board default",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("count takes no arguments; --board names the board")
			}
			board, done, err := p.onBoard()
			if err != nil {
				return err
			}
			defer done()
			counts, err := board.Count(ctx)
			if err != nil {
				return err
			}
			return p.show(counts, func(t *table) {
				t.line("ready", counts.GetReady())
				t.line("delayed", counts.GetDelayed())
				t.line("unclaimed", counts.GetUnclaimed())
				t.line("claimed", counts.GetClaimed())
				t.line("trashed", counts.GetTrashed())
				t.line("complete", counts.GetComplete())
				t.line("corrupt", counts.GetCorrupt())
				if h := counts.GetHistory(); h != nil {
					t.line("history", historyLine(h))
				}
				t.line("oldest ready", counts.GetOldestReadyAt())
			})
		})
}

func (p *program) jobWaitCommand() *cobra.Command {
	var timeout duration
	c := p.command("wait UUID...", "Wait until jobs have ended", "It returns when every one is COMPLETE or in the trash. It ends with 0 when all were consumed, with\n1 when one was canceled, failed or is in the trash, and with 4 when --timeout ran out before.",
		"boardd job wait 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --timeout 5m",
		func(ctx context.Context, args []string) error {
			if err := uuids(args, true); err != nil {
				return err
			}
			return p.jobWait(ctx, args, &timeout)
		})
	c.Flags().Var(&timeout, "timeout", "how long to wait (default: for ever)")
	c.ValidArgsFunction = p.completeJobs(0, "UNCLAIMED", "CLAIMED")
	return c
}

func (p *program) jobWait(ctx context.Context, args []string, timeout *duration) error {
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	var jobs []*client.Job
	ended, err := waitFor(ctx, timeout, func(wait time.Duration) (ended bool, err error) {
		jobs, err = board.Get(ctx, client.GetOptions{Wait: wait}, args...)
		return len(jobs) > 0 && allEnded(jobs), err
	})
	if err == nil && !ended {
		jobs, err = board.Get(ctx, client.GetOptions{}, args...)
		ended = err != nil || allEnded(jobs)
	}
	if err != nil || ended {
		return p.showEnded(jobs, err)
	}
	if err := p.showJobs(jobs, nil); err != nil {
		return err
	}
	return nothing("not every job ended within %v", timeout.value())
}

// waitFor asks, each time for as long as a server waits at most, until something is done or
// the timeout is over, and reports whether it is done.
func waitFor(ctx context.Context, timeout *duration, ask func(wait time.Duration) (done bool, err error)) (done bool, err error) {
	deadline := time.Now().Add(timeout.value())
	for {
		wait := longestWait
		if timeout.set != nil {
			wait = max(0, min(wait, time.Until(deadline)))
		}
		began := time.Now()
		if done, err := ask(wait); err != nil || done {
			return done, err
		}
		if timeout.set != nil && !time.Now().Before(deadline) {
			return false, nil
		}
		// A server that answers at once must not be asked without end.
		if time.Since(began) < time.Second && wait > time.Second {
			if err := sleep.For(ctx, time.Second); err != nil {
				return false, err
			}
		}
	}
}

// showEnded shows jobs that were waited for. Those that did not end well are
// findings.
func (p *program) showEnded(jobs []*client.Job, err error) error {
	if err := p.showJobs(jobs, err); err != nil {
		return err
	}
	counts := endings{}
	for _, j := range jobs {
		counts.add(j)
	}
	if counts.consumed == len(jobs) {
		return nil
	}
	return findings("%d of %d jobs were consumed: %s", counts.consumed, len(jobs), counts.others())
}

// endings counts what became of jobs.
type endings struct {
	open, consumed, canceled, failed, trashed int
}

func (e *endings) add(j *client.Job) {
	switch {
	case j.GetState() == boarddv1.State_TRASHED:
		e.trashed++
	case j.GetState() != boarddv1.State_COMPLETE:
		e.open++
	case j.GetOutcome() == boarddv1.Outcome_CANCELED:
		e.canceled++
	case j.GetOutcome() == boarddv1.Outcome_FAILED:
		e.failed++
	default:
		e.consumed++
	}
}

// others names what did not end well.
func (e *endings) others() string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{e.canceled, "canceled"}, {e.failed, "failed"}, {e.trashed, "in the trash"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.Join(parts, ", ")
}

func allEnded(jobs []*client.Job) bool {
	for _, j := range jobs {
		if s := j.GetState(); s != boarddv1.State_COMPLETE && s != boarddv1.State_TRASHED {
			return false
		}
	}
	return true
}

// historyLine says how full a history is.
func historyLine(h *boarddv1.HistoryCounts) string {
	line := fmt.Sprintf("%d of at most %d jobs, %d of at most %d bytes", h.GetJobs(), h.GetMaxJobs(), h.GetBytes(), h.GetMaxBytes())
	if h.GetFull() {
		line += "; full: the oldest go before their time"
	}
	return line
}
