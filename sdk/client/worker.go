package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A Worker claims jobs of one board, runs a handler on each, keeps the claims
// alive meanwhile, and ends them by what the handler returned. While it runs, the
// board lists it among its entities, where its token allows that, under its owner
// name and with its labels, names, filter and concurrency, its host, process and
// version. Board and Handler must be set; every other field has a meaning when it is zero. The fields must
// not change while Run runs.
type Worker struct {
	Board *Board

	// Handler works on one job. Its context ends before the claim's lease can run
	// out, and at once when the claim was taken away or the worker's token was
	// revoked, with a cause that is job.LeaseLost; when the job is to be canceled, with ErrCancelRequested; when
	// it has run for as long as it may, with ErrTimeout (by the job's timeout up to 15 s before that is
	// over, at most an eighth of it); and when the worker stops, with ErrStopping. What it returns ends the
	// claim:
	//
	//   - nil: the job is consumed
	//   - ErrCancelRequested, or any error when the context ended with it: the job
	//     is canceled
	//   - an error that wraps ErrTrash: it is set aside for a person
	//   - an error that wraps ErrRetry or a RetryAfter: it is given back and the
	//     attempt is refunded
	//   - any error when the context ended with ErrTimeout: it is given back with the reason
	//     "timeout", and the attempt counts
	//   - any other error: it is given back, to be tried again after the board's
	//     back-off, or where the board sets none after 1 s, doubled for each
	//     attempt up to 5 min
	//
	// A job runs at least once: a handler may see one again whose claim was lost.
	Handler func(ctx context.Context, c *Claim) error

	Owner       string            // empty: NewOwner()
	Names       []string          // only jobs of these names; absent: of any
	Filter      string            // only jobs that it fits
	Labels      map[string]string // describe the worker to the board's policies
	Concurrency int               // handlers at the same time; 0: 1
	Lease       time.Duration     // 0: the board's
	Timeout     time.Duration     // for which a handler may run; 0: as long as the job's timeout lets it
	// Ahead is how many claims it may have whose handlers have not begun, so that short jobs
	// need no trip to the server each. 0: as many as pay by what is measured, at most 256,
	// and none where a handler takes longer than a few trips; negative: none. With none, jobs
	// begin exactly in the board's order; otherwise one that comes first may begin after as
	// many as this worker has ahead. Claims ahead are given back when the worker stops, or
	// when another one has nothing to do, and use up no attempt.
	Ahead int

	Version string // shown to people; empty: that of the program's main module

	MaxJobs    int  // Run returns after this many jobs; 0: no limit
	UntilEmpty bool // Run returns when there is nothing to claim and nothing in hand

	// Report is told how each job ended, by several goroutines at once. Without it, a line is
	// logged for each that failed, was set aside or lost.
	Report func(Report)

	// Logger is told what passes, such as a server that cannot be reached. Nil: slog.Default(),
	// which writes to standard error; slog.New(slog.DiscardHandler) is told nothing.
	Logger *slog.Logger
}

// NewOwner returns a name for a worker that no other one has: HOST-PID-RANDOM.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	if len(host) > 200 {
		host = host[:200]
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(b[:]))
}

// Run works until ctx ends, there is nothing more to do by MaxJobs or
// UntilEmpty, or the server refuses the worker for good. It returns nil in the
// first two cases. When ctx ends it claims no more, ends the handlers' contexts,
// and gives back what they leave undone with the attempt refunded; it returns
// when every handler has returned, and goes on extending their leases until then.
func (w *Worker) Run(ctx context.Context) error {
	if w.Board == nil || w.Handler == nil {
		return job.Errorf(job.Invalid, "a Worker needs a Board and a Handler")
	}
	if w.Concurrency < 0 {
		return job.Errorf(job.Invalid, "a Worker's Concurrency: want 1 or more, or 0 for 1, got %d", w.Concurrency)
	}
	r := w.prepare()
	if err := r.learnBoard(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	// Handlers outlive ctx: they are ended by their own causes.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	trips := r.newTrips(background)
	r.held.send = trips.extend
	keeping.Go(func() { trips.fly(ctx) })
	keeping.Go(func() { r.held.keep(background) })
	keeping.Go(func() { r.show(background) })

	end := <-trips.over
	err := end.err
	if job.KindOf(err) == job.Unsupported {
		// A server of an older version, which does not know Work.
		r.old.Store(true)
		keeping.Go(func() { r.listen(background) })
		err = r.claimUntil(ctx, background, end.started)
	}
	err = unlessDone(ctx, err)
	if ctx.Err() != nil {
		r.held.stopAll()
	}
	r.handlers.Wait()
	stop()
	keeping.Wait()
	return err
}

// run is one Run of a Worker.
type run struct {
	*Worker
	Board    *Board // the Worker's, whose calls tell whether the server can be reached
	log      *slog.Logger
	owner    string
	free     chan struct{} // one element for each handler that may start
	handlers sync.WaitGroup
	held     *held
	old      atomic.Bool   // the server does not know Work
	lease    time.Duration // asked for or the board's; 0: not known, or none
	backsOff bool          // the board has a back-off of its own
}

func (w *Worker) prepare() *run {
	r := &run{Worker: w, log: w.Logger, owner: w.Owner, lease: w.Lease}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.Board = &Board{client: w.Board.client.telling(&outage{log: r.log}), name: w.Board.name}
	if r.owner == "" {
		r.owner = NewOwner()
	}
	n := max(w.Concurrency, 1)
	r.free = make(chan struct{}, n)
	for range n {
		r.free <- struct{}{}
	}
	r.held = newHeld(w.Lease, w.Timeout, r.log)
	return r
}

func (r *run) outage() *outage { return r.Board.client.outage }

// learnBoard asks for the board's lease and back-off.
func (r *run) learnBoard(ctx context.Context) error {
	for failed := 0; ; failed++ {
		info, err := r.Board.Info(ctx)
		switch {
		case err == nil:
			r.backsOff = info.GetBackoff().AsDuration() > 0
			if r.lease == 0 {
				r.lease = info.GetLease().AsDuration()
			}
			return nil
		case job.KindOf(err) == job.PermissionDenied:
			return nil // a narrow token: claims tell their lease
		}
		if err := r.pause(ctx, failed, err); err != nil {
			return err
		}
	}
}

// pause waits before the next try after a passing error; it returns the error
// if it is one that does not pass, and that of ctx when it ends.
func (r *run) pause(ctx context.Context, failed int, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !job.KindOf(err).Retryable() {
		return err
	}
	r.outage().refusal(failed, err)
	return sleep.For(ctx, backoff(failed, 500*time.Millisecond, 30*time.Second))
}

// claimUntil claims jobs and starts their handlers until there is a reason to
// stop. It does not wait for the handlers.
func (r *run) claimUntil(ctx, background context.Context, started int) error {
	failed := 0
	for r.MaxJobs == 0 || started < r.MaxJobs {
		slots := r.take(ctx, r.MaxJobs-started)
		if slots == 0 {
			return nil // ctx ended
		}
		busy, changed := r.held.count()
		sent := time.Now()
		claims, err := r.Board.Claim(ctx, r.options(slots))
		for _, c := range claims {
			r.start(background, c, sent)
		}
		r.giveBack(slots - len(claims))
		started += len(claims)
		if err != nil {
			if err := r.pause(ctx, failed, err); err != nil {
				if job.KindOf(err) == job.Unauthenticated {
					r.held.refuse(err)
				}
				return unlessDone(ctx, err)
			}
			failed++
			continue
		}
		failed = 0
		if len(claims) > 0 || !r.UntilEmpty {
			continue
		}
		if busy == 0 {
			return nil
		}
		// A handler may give its job back, or post another, before it is done.
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// take waits for a free handler and takes all free ones, at most most if that is
// positive. It returns 0 when ctx has ended.
func (r *run) take(ctx context.Context, most int) int {
	if most <= 0 || most > cap(r.free) {
		most = cap(r.free)
	}
	if ctx.Err() != nil {
		return 0
	}
	select {
	case <-ctx.Done():
		return 0
	case <-r.free:
	}
	n := 1
	for n < most {
		select {
		case <-r.free:
			n++
		default:
			return n
		}
	}
	return n
}

func (r *run) giveBack(n int) {
	for range n {
		select {
		case r.free <- struct{}{}:
		default: // a server granted more than it was asked for
		}
	}
}

func (r *run) options(slots int) ClaimOptions {
	o := ClaimOptions{
		Owner: r.owner, Max: int32(min(slots, 1000)), Names: r.Names, Filter: r.Filter, Lease: r.Lease, Labels: r.Labels,
	}
	if !r.UntilEmpty {
		o.Wait = r.wait()
	}
	return o
}

// wait is how long a claim may wait for a job. A lease counts from before the
// call, so that a third of it at most may go by unused.
func (r *run) wait() time.Duration {
	const longest = 30 * time.Second
	if r.lease <= 0 {
		return 5 * time.Second // not known yet
	}
	return min(longest, r.lease/3)
}

// start runs the handler on a claim.
func (r *run) start(background context.Context, c *Claim, sent time.Time) {
	if lease := c.GetLease().AsDuration(); lease > 0 {
		r.lease = lease
	}
	ctx, entry := r.held.add(background, c, sent)
	r.held.begin(entry)
	r.handlers.Go(func() {
		began := time.Now()
		err := r.handle(ctx, c)
		r.held.finished(entry)
		ending := r.conclude(background, entry, err)
		r.held.remove(entry)
		r.giveBack(1)
		ending.Took = time.Since(began)
		r.report(ending, r.held.isStopping(entry))
	})
}

// handle calls the handler and makes an error of a panic: one bad job must not
// take the others' claims with it.
func (r *run) handle(ctx context.Context, c *Claim) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, string(debug.Stack())}
		}
	}()
	return r.Handler(ctx, c)
}

// panicked is the error of a handler that panicked.
type panicked struct {
	with  any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprintf("the handler panicked: %v", p.with) }

// report tells how a job ended; stopping says that its handler was told that the worker stops.
func (r *run) report(e Report, stopping bool) {
	about := []any{"job", e.Claim.GetUuid(), "name", e.Claim.GetJob().GetName(), "attempt", e.Claim.GetAttempt(), "ending", e.Ending, "error", e.Err}
	panicked, bad := errors.AsType[*panicked](e.Err)
	asked := stopping || e.Ending == Canceled || errors.Is(e.Err, ErrRetry)
	switch {
	case bad: // the stack stands nowhere else
		r.log.Error("the handler of a job panicked", append(about, "stack", panicked.stack)...)
	case r.Report != nil || e.Err == nil:
	case e.Ending == Lost:
		r.log.Warn("a claim was lost", about...)
	case !asked:
		r.log.Warn("a job failed", about...)
	}
	if r.Report != nil {
		r.Report(e)
	}
}

// unlessDone leaves out the errors that the end of ctx makes.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
