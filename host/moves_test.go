package host_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// lent is a store that several hosts have, and that none of them closes.
type lent struct {
	driver.Driver
	driver.Mover

	trouble *atomic.Bool // then no import is done
	keep    *atomic.Bool // then no record of a batch says that it was followed
	plain   *atomic.Bool // then it counts no batches, and keeps one job in its history
	unread  *atomic.Bool // then nobody reads its open jobs
	stuck   *atomic.Bool // then it gives up no board
	seen    *seenSteps
}

func (l lent) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	if l.unread.Load() && req.Set == driver.OpenJobs && req.Limit == 0 {
		return func(yield func(driver.Page, error) bool) {
			for l.unread.Load() && sleep.For(ctx, time.Millisecond) == nil { // until it is read, or given up
				continue
			}
			l.Driver.Scan(ctx, board, req)(yield)
		}
	}
	return l.Driver.Scan(ctx, board, req)
}

func (l lent) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := l.Driver.OpenBoard(ctx, spec)
	if l.plain.Load() {
		status.Capabilities.Groups, status.MaxFinals = false, 1
	}
	return status, err
}

func (l lent) Documents() driver.Documents { return keptDocuments{l.Driver.Documents(), l.keep} }

type keptDocuments struct {
	driver.Documents
	keep *atomic.Bool
}

func (k keptDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if k.keep.Load() && strings.HasPrefix(doc.Name, "batch/") && bytes.Contains(doc.Data, []byte(`"followed":true`)) {
		return 0, job.Errorf(job.Unavailable, "the store is away")
	}
	return k.Documents.Put(ctx, space, doc, ifVersion)
}

func (lent) Close() error { return nil }

func (l lent) DropBoard(ctx context.Context, board string) error {
	if l.stuck.Load() {
		return job.Errorf(job.Unavailable, "the store is away")
	}
	return l.Driver.DropBoard(ctx, board)
}

func (l lent) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if l.trouble.Load() && ops[0].Import != nil {
		results := make([]driver.Result, len(ops))
		for i := range results {
			results[i] = driver.Failed(job.Errorf(job.Unavailable, "the store is away"))
		}
		return results
	}
	return l.Driver.Apply(ctx, board, ops)
}

// stores are drivers named one and two, each with one store for all hosts.
func stores(t *testing.T) (programs map[string]driver.Program, all map[string]lent) {
	t.Helper()
	programs, all = map[string]driver.Program{}, map[string]lent{}
	for _, name := range []string{"one", "two"} {
		program := memdriver.Program()
		d, err := program.Open(t.Context(), driver.Config{Settings: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		its := lent{d, d.(driver.Mover), &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}, &seenSteps{}}
		program.Info.Board.Fields = []driver.Field{{Name: "namespace", Type: driver.String}, {Name: "foreign", Type: driver.Boolean}}
		program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return its, nil }
		programs[name], all[name] = program, its
	}
	return programs, all
}

// twoStores is a configuration with these drivers, whose catalog is on the first.
func twoStores() config.Config {
	c := config.Config{
		Tokens: []tenant.Token{token(), {Name: "operator", Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)}},
	}
	for _, name := range []string{"one", "two"} {
		c.Backends = append(c.Backends, config.Backend{Name: name, Driver: name, Settings: []byte("{}"), Tenants: []string{"*"}})
	}
	c.Catalog = "one"
	return c
}

// deployment is two hosts with a board on the first of two stores.
type deployment struct {
	*testing.T
	hosts    [2]*host.Host
	as       [2]*admin.Session
	one, two lent
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	return deployAt(t, "")
}

// deployAt makes the board with settings.
func deployAt(t *testing.T, settings string) *deployment {
	t.Helper()
	programs, all := stores(t)
	d := &deployment{T: t, one: all["one"], two: all["two"]}
	for i := range d.hosts {
		d.hosts[i], _ = open(t, host.Config{Config: twoStores(), Drivers: programs})
		host.SetMoves(d.hosts[i], nil, 50*time.Millisecond, time.Minute)
		d.as[i] = operator(t, d.hosts[i])
	}
	b := config.NewBoard("builds")
	b.Backend, b.History, b.Settings = "one", time.Hour, []byte(settings)
	if _, err := d.as[0].CreateBoard(within(t), tenant.Default, b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other host has the board", func() bool { return d.hosts[1].Hosted(d.at()) != nil })
	return d
}

func (d *deployment) at() catalog.At { return catalog.At{Tenant: tenant.Default, Name: "builds"} }

// board is the board as a host serves it now.
func (d *deployment) board(i int) *hostboard.Board {
	d.Helper()
	for ctx := within(d.T); ; {
		b, err := d.hosts[i].Open(ctx, d.hosts[i].Hosted(d.at()))
		if err == nil {
			soon, cancel := context.WithTimeout(ctx, time.Second) // one that has just been replaced never is
			err = b.Ready(soon)
			cancel()
		}
		if err == nil {
			return b
		}
		if sleep.For(ctx, 2*time.Millisecond) != nil {
			d.Fatal(err)
		}
	}
}

// again does something until the board does not refuse it for being frozen, or in the middle
// of a change of its settings.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if kind := job.KindOf(err); kind != job.Unavailable {
			return err
		}
		if sleep.For(ctx, 2*time.Millisecond) != nil {
			return err
		}
	}
}

// until waits until the move is in a state.
func (d *deployment) until(state catalog.MoveState) catalog.Move {
	d.Helper()
	var m catalog.Move
	eventually(d.T, "the move is "+string(state), func() bool {
		var err error
		m, err = d.as[1].Move(within(d.T), tenant.Default, "builds")
		return err == nil && m.State == state
	})
	return m
}

func (d *deployment) post(n int) []job.ID {
	d.Helper()
	var ids []job.ID
	for i := range n {
		result, err := d.board(0).Post(within(d.T), []job.Posting{{Name: "n" + strconv.Itoa(i), Details: []byte(`{"n":` + strconv.Itoa(i) + `}`)}})
		if err == nil {
			err = result[0].Err
		}
		if err != nil {
			d.Fatal(err)
		}
		ids = append(ids, result[0].Job.ID)
	}
	return ids
}

func (d *deployment) claim(n int) []job.Claim {
	d.Helper()
	response, err := d.board(0).Claim(within(d.T), hostboard.ClaimRequest{Owner: "w", Max: n})
	if err != nil || len(response.Claims) != n {
		d.Fatalf("a claim of %d jobs: %d, %v", n, len(response.Claims), err)
	}
	return response.Claims
}

func (d *deployment) refOf(c *job.Claim) hostboard.Ref { return refOn(d.board(0), c) }

func refOn(b *hostboard.Board, c *job.Claim) hostboard.Ref {
	return hostboard.Ref{ID: c.Job.ID, Token: b.FormatToken(c.Job.ID, c.Token)}
}

func (d *deployment) move(i int, to string) {
	d.Helper()
	if _, _, err := d.as[i].MoveBoard(within(d.T), tenant.Default, "builds", to, host.MoveOptions{}); err != nil {
		d.Fatal(err)
	}
}

func TestMoveBoard(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	ids := d.post(40)
	claims := d.claim(10)
	if errs, err := d.board(0).Consume(ctx, []hostboard.Ref{d.refOf(&claims[0]), d.refOf(&claims[1])}); err != nil || errors.Join(errs...) != nil {
		t.Fatal(err, errs)
	}
	if _, err := d.board(0).Trash(ctx, []hostboard.Ref{d.refOf(&claims[2])}, nil, "wrong"); err != nil {
		t.Fatal(err)
	}
	var cursor string
	for e, err := range d.board(0).Watch(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		cursor = e.Cursor
		break
	}
	before, err := d.board(0).Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := d.as[0].MoveBoard(ctx, tenant.Default, "builds", "two", host.MoveOptions{Dry: true})
	if err != nil || plan.Total != 40 || plan.Claims != 7 || plan.State != "" {
		t.Errorf("a dry run says %+v, %v: want 40 jobs with 7 claims", plan, err)
	}
	d.move(0, "two")
	m := d.until(catalog.Moved)
	if m.Jobs != 40 || m.Claims != 7 || m.Lost != 0 || m.From.Backend != "one" || m.To.Backend != "two" {
		t.Errorf("the move is %+v: want 40 jobs with 7 claims from one to two", m)
	}
	eventually(t, "both hosts serve the board from its new store", func() bool {
		return d.hosts[0].Hosted(d.at()).Config().Backend == "two" && d.hosts[1].Hosted(d.at()).Config().Backend == "two"
	})
	after, err := d.board(1).Count(ctx)
	if err != nil || after.Ready != before.Ready || after.Claimed != before.Claimed || after.Trashed != before.Trashed || after.Complete != before.Complete {
		t.Errorf("there are %+v, %v after the move, and there were %+v", after, err, before)
	}
	extended, err := d.board(0).Extend(ctx, []hostboard.Ref{d.refOf(&claims[3])}, 0)
	if err != nil || extended[0].Err != nil {
		t.Errorf("a claim of before the move is extended: %v, %v", extended, err)
	}
	for i := 3; i < 10; i++ {
		errs, err := d.board(i%2).Consume(ctx, []hostboard.Ref{d.refOf(&claims[i])})
		if err != nil || errs[0] != nil {
			t.Errorf("a job that was claimed before the move is consumed: %v, %v", errs, err)
		}
	}
	errs, err := d.board(1).Consume(ctx, []hostboard.Ref{d.refOf(&claims[0])})
	if err != nil || errs[0] != nil {
		t.Errorf("a consumption of before the move, once more: %v, %v", errs, err)
	}
	next := d.claim(30)
	for i := range next {
		if next[i].Job.ID != ids[10+i] {
			t.Fatalf("claim %d after the move is of job %v: want them in the order of their posts", i, next[i].Job.ID)
		}
	}
	for e, err := range d.board(1).Watch(ctx, cursor) {
		if err != nil || e.Type != job.Resync {
			t.Errorf("a watch from before the move begins with %v, %v: want RESYNC", e.Type, err)
		}
		break
	}
	if dropped, err := d.as[1].DropMoved(ctx, tenant.Default, "builds"); err != nil || dropped.State != catalog.Dropped {
		t.Errorf("what is left is dropped: %+v, %v", dropped, err)
	}
}

// TestMovedBoardServesAtOnce asks a board that has moved before its jobs were read in the new
// store.
func TestMovedBoardServesAtOnce(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	ids := d.post(20)
	claims := d.claim(5)
	d.two.unread.Store(true)
	d.move(0, "two")
	d.until(catalog.Moved)
	eventually(t, "the board is served from its new store", func() bool { return d.hosts[0].Hosted(d.at()).Config().Backend == "two" })
	if counts, err := d.board(0).Count(ctx); err != nil || counts.Ready != 15 || counts.Claimed != 5 {
		t.Errorf("there are %+v, %v: want 15 that are ready, and 5 claimed", counts, err)
	}
	for i, c := range append(claims, d.claim(10)...) {
		if c.Job.ID != ids[i] {
			t.Errorf("claim %d is of job %v: want them in the order of their posts", i, c.Job.ID)
		}
		if errs, err := d.board(0).Consume(ctx, []hostboard.Ref{d.refOf(&c)}); err != nil || errs[0] != nil {
			t.Errorf("a job is consumed: %v, %v", errs, err)
		}
	}
	d.post(1)
	d.two.unread.Store(false)
	eventually(t, "the other host reads the board, too", func() bool {
		counts, err := d.board(1).Count(ctx)
		return err == nil && counts.Ready == 6 && counts.Claimed == 0
	})
	if counts, err := d.board(0).Count(ctx); err != nil || counts.Ready != 6 || counts.Claimed != 0 {
		t.Errorf("there are %+v, %v in the end: want 6 that are ready", counts, err)
	}
	if rest := d.claim(6); rest[0].Job.ID != ids[15] || rest[4].Job.ID != ids[19] {
		t.Error("the jobs are in another order")
	}
}

// TestMoveThereAndBack moves a board to and fro, which finds what it left.
func TestMoveThereAndBack(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ids := d.post(10)
	claim := d.claim(1)[0]
	for i, to := range []string{"two", "one", "two", "one"} {
		d.move(i%2, to)
		d.until(catalog.Moved)
		eventually(t, "both hosts serve the board from "+to, func() bool {
			return d.hosts[0].Hosted(d.at()).Config().Backend == to && d.hosts[1].Hosted(d.at()).Config().Backend == to
		})
		extended, err := d.board(i%2).Extend(within(t), []hostboard.Ref{d.refOf(&claim)}, 0)
		if err != nil || extended[0].Err != nil {
			t.Fatalf("after move %d the claim is extended: %v, %v", i, extended, err)
		}
	}
	status := d.board(0).Status()
	if status.Loss != "" {
		t.Errorf("a board that was moved is said to have lost something: %s", status.Loss)
	}
	if errs, err := d.board(0).Consume(within(t), []hostboard.Ref{d.refOf(&claim)}); err != nil || errs[0] != nil {
		t.Errorf("the claim's job is consumed: %v, %v", errs, err)
	}
	if next := d.claim(9); next[0].Job.ID != ids[1] || next[8].Job.ID != ids[9] {
		t.Errorf("the jobs are in another order")
	}
}

// pauseAt has a host's moves pause before a step, and returns what waits until one is there and
// what lets it go on.
func (d *deployment) pauseAt(i int, step string) (paused, goOn func()) {
	there, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	host.SetMoves(d.hosts[i], func(name string) error {
		if name == step {
			once.Do(func() { close(there) })
			<-on
		}
		return nil
	}, time.Hour, time.Minute)
	wait := func() {
		select {
		case <-there:
		case <-within(d.T).Done():
			d.Error("the move did not come to the step " + step)
		}
	}
	goOn = sync.OnceFunc(func() { close(on) })
	d.Cleanup(goOn)
	return wait, goOn
}

// moveSteps are all places at which a host may be killed, in order.
var moveSteps = []string{"prepare", "receive", "documents", "jobs", "round", "freeze", "rest", "compare", "leave", "switch", "admit", "admitted"}

// TestMoveGoesOn kills the host that moves a board at each step, while others work on the
// board: another host goes on, and no job is lost or consumed twice.
func TestMoveGoesOn(t *testing.T) {
	t.Parallel()
	for _, step := range moveSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			dead := d.killAt(step)
			w := d.work()
			d.move(0, "two")
			d.until(catalog.Moved)
			if !dead.Load() {
				t.Errorf("the step %q was never reached", step)
			}
			w.end()
		})
	}
}

// killAt has the first host end at a step of its moves, and the other one go on. It returns whether
// the first came there.
func (d *deployment) killAt(step string) *atomic.Bool {
	host.SetMoves(d.hosts[1], nil, 5*time.Second, time.Minute) // the first is to come as far as that
	var dead atomic.Bool
	host.SetMoves(d.hosts[0], func(name string) error {
		if name == step {
			dead.Store(true)
		}
		if dead.Load() {
			return errors.New("killed")
		}
		return nil
	}, time.Hour, time.Minute)
	return &dead
}

// work has clients post, claim and consume, and counts what becomes of it.
type work struct {
	*deployment
	stop             context.CancelFunc
	posters, workers sync.WaitGroup
	all              atomic.Bool // posted

	mu       sync.Mutex
	posted   map[job.ID]bool
	consumed map[job.ID]int
}

func (d *deployment) work() *work {
	ctx, stop := context.WithCancel(within(d.T))
	w := &work{deployment: d, stop: stop, posted: map[job.ID]bool{}, consumed: map[job.ID]int{}}
	for i := range 2 {
		w.posters.Go(func() { w.poster(ctx, i) })
		w.workers.Go(func() { w.worker(ctx, i) })
	}
	eventually(d.T, "the board is at work", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.consumed) > 10
	})
	return w
}

// open opens the board at one host. Its deadline ends with it: a client makes so many calls
// that deadlines kept until the test's end would fill the memory.
func (w *work) open(i int) (*hostboard.Board, error) {
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	return w.hosts[i].Open(ctx, w.hosts[i].Hosted(w.at()))
}

func (w *work) poster(ctx context.Context, i int) {
	for sleep.For(ctx, 5*time.Millisecond) == nil {
		var result []hostboard.JobResult
		err := again(context.WithoutCancel(ctx), func() (err error) {
			b, err := w.open(i)
			if err != nil {
				return err
			}
			if result, err = b.Post(context.WithoutCancel(ctx), []job.Posting{{Name: "a"}}); err != nil {
				return err
			}
			return result[0].Err
		})
		if err != nil {
			w.Errorf("a post: %v", err)
			return
		}
		w.mu.Lock()
		w.posted[result[0].Job.ID] = true
		w.mu.Unlock()
	}
}

// worker works until it is to stop, and there is nothing to do.
func (w *work) worker(ctx context.Context, i int) {
	for {
		var response hostboard.ClaimResponse
		last := w.all.Load()
		err := again(context.WithoutCancel(ctx), func() (err error) {
			b, err := w.open(i)
			if err != nil {
				return err
			}
			response, err = b.Claim(context.WithoutCancel(ctx), hostboard.ClaimRequest{Owner: "w", Max: 3, Wait: 10 * time.Millisecond})
			return err
		})
		if err != nil {
			w.Errorf("a claim: %v", err)
			return
		}
		for n := range response.Claims {
			c := &response.Claims[n]
			err := again(context.WithoutCancel(ctx), func() (err error) {
				b, err := w.open(i)
				if err != nil {
					return err
				}
				errs, err := b.Consume(context.WithoutCancel(ctx), []hostboard.Ref{refOn(b, c)})
				return errors.Join(err, errors.Join(errs...))
			})
			if err != nil {
				w.Errorf("a job is consumed: %v", err)
				return
			}
			w.mu.Lock()
			w.consumed[c.Job.ID]++
			w.mu.Unlock()
		}
		if len(response.Claims) == 0 && last {
			return
		}
	}
}

// end waits until all work is done, and checks that it was done once.
func (w *work) end() {
	w.Helper()
	w.stop()
	w.posters.Wait()
	w.all.Store(true)
	w.workers.Wait()
	for id := range w.posted {
		if n := w.consumed[id]; n != 1 {
			w.Errorf("the job %v was posted, and consumed %d times", id, n)
		}
	}
	if len(w.posted) != len(w.consumed) {
		w.Errorf("%d jobs were posted, and %d consumed", len(w.posted), len(w.consumed))
	}
}

// TestAbandonMove gives a move up at each step: up to the switch the board goes on where it
// was, and after it the move goes on.
func TestAbandonMove(t *testing.T) {
	t.Parallel()
	for _, step := range moveSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			var answered error
			host.SetMoves(d.hosts[1], nil, time.Hour, time.Minute) // the first does it, however slow this machine is
			host.SetMoves(d.hosts[0], func(name string) error {
				if name == step {
					_, answered = d.as[1].AbandonMove(within(t), tenant.Default, "builds")
				}
				return nil
			}, time.Hour, time.Minute)
			d.post(1)
			claim := d.claim(1)[0]
			w := d.work()
			d.move(0, "two")
			if late := step == "admit" || step == "admitted"; late {
				d.until(catalog.Moved)
				if job.KindOf(answered) != job.Precondition {
					t.Errorf("a move is given up after the switch: %v, want FAILED_PRECONDITION", answered)
				}
			} else {
				d.until(catalog.Abandoned)
				if answered != nil {
					t.Errorf("a move is given up: %v", answered)
				}
				if got := d.hosts[0].Hosted(d.at()).Config().Backend; got != "one" {
					t.Errorf("the board is on %s: want one", got)
				}
				if _, err := d.two.Count(within(t), tenant.Default+"/builds"); job.KindOf(err) != job.Precondition {
					t.Errorf("the other store still knows of the board: %v", err)
				}
			}
			err := again(within(t), func() error {
				errs, err := d.board(1).Consume(within(t), []hostboard.Ref{d.refOf(&claim)})
				return errors.Join(err, errors.Join(errs...))
			})
			if err != nil {
				t.Errorf("a claim of before the move: %v", err)
			}
			w.mu.Lock()
			w.posted[claim.Job.ID] = true
			w.consumed[claim.Job.ID]++
			w.mu.Unlock()
			w.end()
		})
	}
}

// TestAbandonGoesOn kills the host that gives a move up at each step of that: another host goes on,
// and the board with what it was, where it was.
func TestAbandonGoesOn(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"thaw", "clear"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			var dead atomic.Bool
			host.SetMoves(d.hosts[1], nil, 5*time.Second, time.Minute) // the first is to come as far as that
			host.SetMoves(d.hosts[0], func(name string) error {
				if name == "compare" {
					_, _ = d.as[1].AbandonMove(within(t), tenant.Default, "builds") // until says whether it was
				}
				if name == step {
					dead.Store(true)
				}
				if dead.Load() {
					return errors.New("killed")
				}
				return nil
			}, time.Hour, time.Minute)
			w := d.work()
			d.move(0, "two")
			d.until(catalog.Abandoned)
			if !dead.Load() {
				t.Errorf("the step %q was never reached", step)
			}
			w.end()
			if _, err := d.two.Count(within(t), tenant.Default+"/builds"); job.KindOf(err) != job.Precondition {
				t.Errorf("the other store still knows of the board: %v", err)
			}
		})
	}
}

// TestMoveGivesUp: a move to a store that is away ends by itself, and the board goes on.
func TestMoveGivesUp(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for i := range d.hosts {
		host.SetMoves(d.hosts[i], nil, time.Hour, 100*time.Millisecond)
	}
	d.post(3)
	d.two.trouble.Store(true)
	d.move(0, "two")
	if m := d.until(catalog.Abandoned); m.Problem == "" {
		t.Errorf("a move that was given up does not say why: %+v", m)
	}
	d.post(3)
	d.two.trouble.Store(false)
	d.move(0, "two")
	if m := d.until(catalog.Moved); m.Jobs != 6 {
		t.Errorf("the second try brought %d jobs, want 6", m.Jobs)
	}
}

func TestMoveRefused(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	d.post(1)
	refused := func(name, to string, wait time.Duration, want job.Kind, why string) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			if _, _, err := d.as[0].MoveBoard(ctx, tenant.Default, name, to, host.MoveOptions{Wait: wait, Dry: dry}); job.KindOf(err) != want {
				t.Errorf("%s: %v, want %v", why, err, want)
			}
		}
	}
	refused("builds", "one", 0, job.Precondition, "to where the board is")
	refused("builds", "three", 0, job.Invalid, "to a backend that there is not")
	refused("nothing", "two", 0, job.NotFound, "a board that there is not")
	refused("builds", "two", host.MaxMoveWait+1, job.Invalid, "a wait that is too long")
	refused("builds", "two", -1, job.Invalid, "a wait of less than nothing")
	if _, _, err := d.as[0].MoveBoard(ctx, tenant.Default, "builds", "two", host.MoveOptions{Wait: host.MaxMoveWait, Dry: true}); err != nil {
		t.Errorf("the longest wait: %v", err)
	}
	if _, err := d.as[0].Move(ctx, tenant.Default, "builds"); job.KindOf(err) != job.NotFound {
		t.Errorf("the move of a board that never moved: %v", err)
	}
	if _, err := d.as[0].AbandonMove(ctx, tenant.Default, "builds"); job.KindOf(err) != job.Precondition {
		t.Errorf("a move that there is not is given up: %v", err)
	}
	if _, err := d.as[0].DropMoved(ctx, tenant.Default, "builds"); job.KindOf(err) != job.Precondition {
		t.Errorf("what a board left that never moved is dropped: %v", err)
	}
	other := config.NewBoard("other") // of which jobs are left, since it is deleted without them
	other.Backend = "two"
	if _, err := d.as[0].CreateBoard(ctx, tenant.Default, other); err != nil {
		t.Fatal(err)
	}
	if _, err := ready(t, d.as[0], "other").Post(ctx, []job.Posting{{Name: "left"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.as[0].DeleteBoard(ctx, tenant.Default, "other", 0, false); err != nil {
		t.Fatal(err)
	}
	other.Backend = "one"
	eventually(t, "the board is made anew", func() bool {
		_, err := d.as[0].CreateBoard(ctx, tenant.Default, other)
		return err == nil
	})
	refused("other", "two", 0, job.Precondition, "to where jobs of an earlier board lie")

	stop := make(chan struct{})
	host.SetMoves(d.hosts[0], func(name string) error {
		if name == "prepare" {
			<-stop
		}
		return nil
	}, time.Hour, time.Minute)
	d.move(0, "two")
	refused("builds", "two", 0, job.Precondition, "a board that moves already")
	if err := d.as[0].DeleteBoard(ctx, tenant.Default, "builds", 0, true); job.KindOf(err) != job.Precondition {
		t.Errorf("a board that moves is deleted: %v", err)
	}
	close(stop)
	d.until(catalog.Moved)
}
