// Package workload is what clients do to a board while things break: every call that
// stands, by many clients at once on few jobs, so that they get into each other's way.
// It writes down what was asked and what was answered, and judges nothing.
package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
)

// Config says what a load is made of. Every field but Server, Prefix and
// Limited must be set.
type Config struct {
	Recorder *history.Recorder
	Board    string
	Seed     uint64
	Clients  int           // at the same time
	Pause    time.Duration // of a client between two calls, on average
	Lease    time.Duration // the longest; the shortest is a second

	// Connect returns the connection of the n-th client, and whether it tries again by
	// itself where an answer is lost.
	Connect func(n int) (c *client.Client, retries bool)

	// Server names the server that the n-th client asks, for those that ask one alone.
	Server func(n int) string

	// Prefix begins the clients' names, where several loads write one history.
	Prefix string

	// Limited says that the board has a limit of open jobs. Jobs are not purged and put
	// back then, so that it is sure when which of them are open.
	Limited bool

	// Timeouts says that some jobs have a timeout, and of these some a number of attempts.
	Timeouts bool
}

// Load is a board's clients, and what they know of its jobs.
type Load struct {
	Config

	mu      sync.Mutex
	jobs    []*known
	pending []*asked // claims whose answer nobody has got yet

	deployer *deployer // nil: the board's policies stay as they are
}

// known is a job that clients know of.
type known struct {
	posting *client.NewJob
	claims  []*client.Claim // that somebody was given, the last one at the end
	outside bool            // TaskFlow posted it
}

// New makes a load. Nothing is asked before Run.
func New(c Config) *Load { return &Load{Config: c} }

// Run has the clients work until ctx ends, and returns when the last call is over.
func (l *Load) Run(ctx context.Context) {
	var group sync.WaitGroup
	for n := range l.Clients {
		group.Go(func() { l.client(n).run(ctx) })
	}
	group.Wait()
}

// Jobs returns the uuids of all jobs that somebody tried to post.
func (l *Load) Jobs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]string, len(l.jobs))
	for i, k := range l.jobs {
		ids[i] = k.posting.GetUuid()
	}
	return ids
}

// timeout is for how long one claim of a job may stand; 0: for any time.
func (l *Load) timeout(id string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.jobs {
		if k.posting.GetUuid() == id {
			return k.posting.GetTimeout().AsDuration()
		}
	}
	return 0
}

func (l *Load) learn(jobs ...*client.NewJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range jobs {
		l.jobs = append(l.jobs, &known{posting: j})
	}
}

// recent is among how many of the last jobs clients choose one: few, so that they meet.
const recent = 12

// some returns up to n of the last jobs, none twice.
func (l *Load) some(random *rand.Rand, n int) (jobs []*known) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.jobs[max(0, len(l.jobs)-recent):]
	for _, i := range random.Perm(len(last))[:min(n, len(last))] {
		jobs = append(jobs, last[i])
	}
	return jobs
}

// given keeps a claim, so that others can try its token too.
func (l *Load) given(c *client.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.jobs {
		if k.posting.GetUuid() == c.GetUuid() {
			k.claims = append(k.claims, c)
		}
	}
}

// anyClaim returns one of the claims that were ever given on one of the last jobs.
func (l *Load) anyClaim(random *rand.Rand) *client.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*client.Claim
	for _, k := range l.jobs[max(0, len(l.jobs)-recent):] {
		all = append(all, k.claims...)
	}
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}

// worker is one client.
type worker struct {
	*Load
	name    string
	server  string // that it asks; empty: any
	team    string
	board   *client.Board
	retries bool
	random  *rand.Rand
	calls   int
	mine    []*client.Claim // in hand, as far as it knows
	hung    []outlasting
}

func (l *Load) client(n int) *worker {
	c, retries := l.Connect(n)
	return &worker{
		Load: l, name: fmt.Sprint(l.Prefix, "client ", n), server: l.serverOf(n), team: teams[n%len(teams)], board: c.Board(l.Board), retries: retries,
		random: rand.New(rand.NewPCG(l.Seed, uint64(n))), //nolint:gosec // a run that can be made again
	}
}

func (l *Load) serverOf(n int) string {
	if l.Server == nil {
		return ""
	}
	return l.Server(n)
}

// Labels of jobs, and of workers the first, by which policies decide.
const (
	teamLabel = "team"
	rankLabel = "rank"
	ranks     = 4
)

var teams = []string{"red", "green", "blue"}

func (w *worker) labels() map[string]string { return map[string]string{teamLabel: w.team} }

// step is something that a client does, and how often in comparison.
type step struct {
	weight int
	do     func(*worker, context.Context)
}

var steps = []step{
	{10, (*worker).postNew},
	{3, (*worker).postAgain},
	{1, (*worker).postOther},
	{14, (*worker).claimBest},
	{6, (*worker).claimChosen},
	{3, (*worker).repeatClaim},
	{6, (*worker).extend},
	{12, (*worker).consume},
	{8, (*worker).abandon},
	{8, (*worker).together},
	{3, (*worker).trash},
	{3, (*worker).setAside},
	{4, (*worker).restore},
	{2, (*worker).replace},
	{2, (*worker).purge},
	{2, (*worker).release},
	{2, (*worker).cancel},
	{6, (*worker).get},
	{2, (*worker).list},
	{2, (*worker).count},
	{3, (*worker).work},
	{8, (*worker).outlast},
	{1, (*worker).register},
}

var weights = func() (total int) {
	for _, s := range steps {
		total += s.weight
	}
	return total
}()

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		roll := w.random.IntN(weights)
		for _, s := range steps {
			if roll -= s.weight; roll < 0 {
				s.do(w, context.WithoutCancel(ctx)) // a call that was begun is finished
				break
			}
		}
		pause := time.NewTimer(time.Duration(w.random.Int64N(2 * int64(w.Pause))))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// owner names a call that claims.
func (w *worker) owner() string {
	w.calls++
	return fmt.Sprintf("%s, call %d", w.name, w.calls)
}

// lease is how long a claim, or an extension, is to last.
func (w *worker) lease() time.Duration {
	const shortest = time.Second
	return shortest + time.Duration(w.random.Int64N(int64(w.Lease-shortest)+1)).Truncate(time.Millisecond)
}

// uuid is random by the load's seed.
func (w *worker) uuid() string {
	a, b := w.random.Uint64(), w.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}
