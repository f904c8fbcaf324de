package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// workerFlags are the flags of worker run.
type workerFlags struct {
	worker    client.Worker
	labels    []string
	lease     duration
	timeout   duration
	grace     time.Duration
	passToken bool
	noLog     bool
	ahead     int
	aheadSet  func() bool // --ahead was given
}

func (p *program) workerCommand() *cobra.Command {
	return p.group("worker", "Run workers, and look at them", "", p.workerRunCommand(), p.workerListCommand())
}

func (p *program) workerRunCommand() *cobra.Command {
	f := &workerFlags{}
	c := p.command("run [flags] -- COMMAND [ARG...]", "Claim jobs and run a command for each",
		`The command gets the job as JSON on standard input, and in its environment
BOARDD_JOB_UUID, _NAME, _BOARD, _ATTEMPT, _OWNER, _CLAIM_TOKEN and _LABEL_KEY for each label
(in capitals, with _ for whatever is no letter or digit). The lease is extended while it
runs. How it ends decides what becomes of the job:

  exit 0    consumed
  exit 65   bad data: set aside for a person
  exit 75   try again later: given back, and the attempt is refunded
  other     given back, to be tried again after the board's back-off, or where it
            sets none after 1s, doubled for each attempt up to 5m

What the command writes comes out as it is, standard output on standard output (with
-o json on standard error, for standard output then has one JSON object for each job), and
each line becomes an entry of the job's log, of the type stdout or stderr.
A job that is made of operations has the command run once for each that is not finished, in
order, with BOARDD_JOB_OPERATION (its index) and BOARDD_JOB_OPERATION_NAME. Exit 65 ends the
operation with ERROR, and those behind it; after any other failure the next worker begins
with it.
The command runs in a process group of its own. The group gets SIGTERM, and after --grace
SIGKILL, when the lease is lost, when the job is canceled, when the job's timeout or
--timeout is over, when the worker's token is revoked, and when the worker is stopped by
SIGINT or SIGTERM; at the loss of a lease and at the end of a job's timeout SIGKILL comes
sooner. A command that ran for too long gives its job back with the reason "timeout". A
stopped worker claims no more and gives back what it had, with the attempt refunded. It
ends with 0 after SIGTERM and with 130 after SIGINT.

Commands that end quickly are given their jobs some at a time, so that they need no trip
to the server each: where they take less than a few trips, it claims as many ahead as are
worked off meanwhile. A job that comes first in the board's order may then begin after as
many as are ahead. --ahead says how many at most, whatever the commands take, and with 0
jobs begin in the board's order. What has not begun is given back when the worker stops or
another one has nothing to do; if it is killed, with the end of the lease. It uses up no
attempt.

While it runs, the board lists it under its owner name among those who work there, with its
labels, names, filter and concurrency, its host, process and version.`,
		"boardd worker run --name resize --concurrency 4 -- ./resize.sh\n"+
			"  boardd worker run --until-empty -- sh -c 'cat > /tmp/$BOARDD_JOB_UUID.json'",
		func(ctx context.Context, args []string) error { return p.workerRun(ctx, f, args) })
	flags := c.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVar(&f.worker.Owner, "owner", "", "who claims (default HOST-PID-RANDOM)")
	flags.StringArrayVar(&f.worker.Names, "name", nil, "only jobs of this name; may be repeated")
	flags.StringVar(&f.worker.Filter, "filter", "", "only jobs that it fits, as in boardd job list")
	flags.StringArrayVar(&f.labels, "worker-label", nil, "KEY=VALUE that describes the worker to the board's policies; may be repeated")
	flags.IntVar(&f.worker.Concurrency, "concurrency", 1, "how many commands run at the same time")
	flags.IntVar(&f.ahead, "ahead", 0, "how many jobs at most to claim before their commands can run; 0: none (default: as many as pay)")
	f.aheadSet = func() bool { return flags.Changed("ahead") }
	flags.Var(&f.lease, "lease", "how long a claim holds between two extensions (default: the board's)")
	flags.Var(&f.timeout, "timeout", "how long a command may run (default: as long as the job's timeout lets it)")
	flags.DurationVar(&f.grace, "grace", 10*time.Second, "how long a command has after SIGTERM")
	flags.BoolVar(&f.passToken, "pass-token", false, "give the command BOARDD_TOKEN, BOARDD_ADDR and BOARDD_BOARD, so that it can use boardd")
	flags.BoolVar(&f.noLog, "no-log", false, "do not keep what the command writes in the job's log")
	flags.IntVar(&f.worker.MaxJobs, "max-jobs", 0, "return after this many jobs (default: never)")
	flags.BoolVar(&f.worker.UntilEmpty, "until-empty", false, "return when there is nothing to claim")
	return c
}

func (p *program) workerRun(ctx context.Context, f *workerFlags, args []string) error {
	if len(args) == 0 {
		return usagef("which command? Write it after --, as in: boardd worker run -- ./resize.sh")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return usagef("the command cannot be run: %v", err)
	}
	if n := f.worker.Concurrency; n < 1 || n > mostCommands {
		return usagef("--concurrency must be 1 to %d, got %d", mostCommands, n)
	}
	if f.worker.MaxJobs < 0 || f.grace < 0 {
		return usagef("--max-jobs and --grace must not be negative")
	}
	if f.worker.Ahead, err = f.claimsAhead(); err != nil {
		return err
	}
	if f.worker.Labels, err = labels("worker-label", f.labels); err != nil {
		return err
	}
	c, err := p.connect(0) // a handler's calls outlast a restart of the server, as the worker does
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := &jobCommand{program: p, path: path, args: args, grace: f.grace, passToken: f.passToken, noLog: f.noLog, onto: c.Board(p.board)}
	if err := cmd.prepare(); err != nil {
		return err
	}
	tally := &tally{program: p, counts: map[client.Ending]int{}, line: terminal(p.err) && !terminal(p.out)}
	w := &f.worker
	w.Board, w.Lease, w.Handler, w.Report = c.Board(p.board), f.lease.value(), cmd.run, tally.report
	w.Timeout, w.Version = f.timeout.value(), thisBuild().Version
	w.Logger = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := p.there(ctx); err != nil {
		if w.UntilEmpty || w.MaxJobs > 0 {
			return err // somebody waits for it to return: a server that is not there is no reason to wait
		}
		p.complainOf(err)
		p.complain("the worker waits for the server")
	}
	err = w.Run(ctx)
	tally.finish()
	var s signaled
	if err == nil && errors.As(context.Cause(ctx), &s) && s.signal == syscall.SIGINT {
		return codeError{code: exitInterrupted}
	}
	return err
}

// there fails if the server cannot be reached now.
func (p *program) there(ctx context.Context) error {
	c, err := p.connect(impatient)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Board(p.board).Info(ctx); job.KindOf(err) == job.Unavailable {
		return err
	}
	return nil
}

// claimsAhead is what --ahead means to a client.Worker.
func (f *workerFlags) claimsAhead() (int, error) {
	switch {
	case !f.aheadSet():
		return 0, nil
	case f.ahead < 0 || f.ahead > mostAhead:
		return 0, usagef("--ahead must be 0 to %d, got %d", mostAhead, f.ahead)
	case f.ahead == 0:
		return -1, nil
	}
	return f.ahead, nil
}

// mostCommands is how many commands one worker runs at the same time.
const mostCommands = 1000

// mostAhead is how many claims one call gives.
const mostAhead = 1000

// tally tells people and programs how jobs ended.
type tally struct {
	*program
	line bool // keep a line of counts on the terminal

	mu     sync.Mutex
	counts map[client.Ending]int
}

// report shows how one job ended: with -o json each of them, otherwise only the
// ones that were not consumed.
func (t *tally) report(r client.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[r.Ending]++
	if t.output == "json" {
		t.json(r)
	}
	if t.line {
		fmt.Fprint(t.err, "\r\x1b[K")
	}
	if r.Ending != client.Consumed {
		t.complain(fmt.Sprintf("job %s (%s): %s: %v", r.Claim.GetUuid(), r.Claim.GetJob().GetName(), r.Ending, r.Err))
	}
	if t.line {
		fmt.Fprint(t.err, t.summary())
	}
}

// ended is the line that -o json prints for each job.
type ended struct {
	UUID    string        `json:"uuid"`
	Name    string        `json:"name"`
	Attempt int32         `json:"attempt"`
	Ending  client.Ending `json:"ending"`
	Seconds float64       `json:"seconds"`
	Reason  string        `json:"reason"`
}

func (t *tally) json(r client.Report) {
	line := ended{
		UUID: r.Claim.GetUuid(), Name: r.Claim.GetJob().GetName(), Attempt: r.Claim.GetAttempt(),
		Ending: r.Ending, Seconds: r.Took.Seconds(),
	}
	if r.Err != nil {
		line.Reason = r.Err.Error()
	}
	if err := json.NewEncoder(t.out).Encode(line); err != nil {
		t.complain(err.Error())
	}
}

func (t *tally) summary() string {
	var parts []string
	for _, ending := range []client.Ending{client.Consumed, client.Canceled, client.Trashed, client.Abandoned, client.Lost} {
		if n := t.counts[ending]; n > 0 || ending == client.Consumed {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(string(ending))))
		}
	}
	return strings.Join(parts, ", ")
}

func (t *tally) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line {
		fmt.Fprint(t.err, "\r\x1b[K")
	}
	t.complain(t.summary())
}
