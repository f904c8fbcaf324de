package store

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// pair opens a driver on two servers, whichever takes changes.
func pair(t *testing.T, a, b *testserver.Postgres) driver.Driver {
	t.Helper()
	return at(t, "postgres://postgres@"+a.Addr+","+b.Addr+"/postgres?sslmode=disable")
}

func at(t *testing.T, url string) driver.Driver {
	t.Helper()
	d, err := openWith(t.Context(), map[string]any{"url": url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// opensAgain opens a board as soon as that is possible.
func opensAgain(t *testing.T, d driver.Driver, spec driver.BoardSpec) (status driver.BoardStatus) {
	t.Helper()
	testserver.Eventually(t, "the board is open again", func() bool {
		var err error
		status, err = d.OpenBoard(t.Context(), spec)
		return err == nil
	})
	return status
}

// TestFailover puts a synchronous standby into the place of a primary that is killed under
// load: nothing is lost, nothing is told to be lost, claims go on, and the drivers find the
// new server by themselves.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{"synchronous_commit=on"}})
	standby := primary.Standby(t, nil)
	primary.SQL("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
	primary.SQL("postgres", `SELECT pg_reload_conf()`)
	testserver.Eventually(t, "the standby is synchronous", func() bool {
		return primary.SQL("postgres", `SELECT sync_state FROM pg_stat_replication`) == "sync\n"
	})
	failover(t, func() driver.Driver { return pair(t, standby, primary) }, func() { // the one that takes no changes comes first
		primary.Kill()
		standby.Promote()
	})
}

// TestPatroni has Patroni do so, which notices by itself that the primary has gone.
func TestPatroni(t *testing.T) {
	t.Parallel()
	p := testserver.StartPatroni(t)
	failover(t, func() driver.Driver { return at(t, p.URL()) }, p.KillPrimary)
}

// failover has drivers work while another PostgreSQL takes the place of the one that they work on.
func failover(t *testing.T, open func() driver.Driver, replace func()) {
	t.Helper()
	said := map[job.ID]driver.Result{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := make(chan struct{})
	var drivers []driver.Driver
	for range 2 {
		d := open()
		drivers = append(drivers, d)
		status := opensAgain(t, d, driver.BoardSpec{Name: "b"})
		wg.Go(func() {
			var seen driver.Position
			for {
				select {
				case <-end:
					return
				default:
				}
				ops := postsOf(8)
				results := d.Apply(t.Context(), "b", ops)
				mu.Lock()
				for k := range ops {
					said[ops[k].Job] = results[k]
					if results[k].Kind == job.NoKind {
						seen = max(seen, results[k].Position)
					}
				}
				mu.Unlock()
				if results[0].Kind == job.NoKind {
					continue
				}
				time.Sleep(10 * time.Millisecond) // nobody tells when a server takes changes again
				again, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Witness: status.Witness, Seen: seen})
				if err == nil && (again.Loss != "" || again.Generation != 1) {
					t.Errorf("with all that was acknowledged: generation %d, %q", again.Generation, again.Loss)
				}
			}
		})
	}
	more := func() {
		t.Helper()
		before := acknowledged(&mu, said)
		testserver.Eventually(t, "the drivers have posted more", func() bool { return acknowledged(&mu, said) > before+32 })
	}
	more()
	claim := driver.Op{Kind: driver.Claim, Request: [16]byte{9}, Claim: &driver.ClaimSpec{Count: 1, Owner: "w", Lease: time.Hour}}
	mu.Lock()
	for id, r := range said {
		if r.Kind == job.NoKind {
			claim.Claim.Candidates = []driver.Candidate{{Job: id, Nonce: [16]byte{1}}}
			break
		}
	}
	mu.Unlock()
	claimed := drivers[0].Apply(t.Context(), "b", []driver.Op{claim})[0]
	if len(claimed.Claims) != 1 {
		t.Fatalf("a claim: %+v", claimed)
	}
	replace()
	more()
	close(end)
	wg.Wait()
	held := driver.Op{Kind: driver.Extend, Precondition: driver.HeldByToken, Job: claimed.Claims[0].Job, Token: claimed.Claims[0].Token, Lease: time.Hour}
	if r := drivers[1].Apply(t.Context(), "b", []driver.Op{held})[0]; r.Kind != job.NoKind {
		t.Errorf("the claim from before is extended on the new server: %v, %s", r.Kind, r.Message)
	}
	delete(said, claimed.Claims[0].Job) // judge wants jobs that nobody claimed
	judge(t, drivers[0], said)
}

// TestFailoverLacking promotes a standby that lacks what was acknowledged. That is found
// and told, and tokens from before are worth nothing; also when another host, which was
// told of none of it, has made more changes on the new server than it lacks.
func TestFailoverLacking(t *testing.T) {
	t.Parallel()
	primary := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	line := testserver.NewProxy(t, primary.Addr)
	standby := primary.Standby(t, line)
	told, remembers, other := pair(t, primary, standby), pair(t, primary, standby), pair(t, primary, standby)
	boards := []string{"lower", "passed", "remembered"}
	tokens := map[string]driver.Op{}
	for _, name := range boards {
		for _, d := range []driver.Driver{told, remembers, other} {
			opensAgain(t, d, driver.BoardSpec{Name: name})
		}
		ops := postsOf(1)
		claim := driver.Op{Kind: driver.Claim, Request: [16]byte{1}, Claim: &driver.ClaimSpec{
			Candidates: []driver.Candidate{{Job: ops[0].Job, Nonce: [16]byte{1}}}, Count: 1, Owner: "w", Lease: time.Hour,
		}}
		told.Apply(t.Context(), name, ops)
		r := told.Apply(t.Context(), name, []driver.Op{claim})[0]
		if len(r.Claims) != 1 {
			t.Fatalf("a claim: %+v", r)
		}
		tokens[name] = driver.Op{Kind: driver.Extend, Precondition: driver.HeldByToken, Job: ops[0].Job, Token: r.Claims[0].Token, Lease: time.Hour}
	}
	testserver.Eventually(t, "the standby has all", func() bool {
		return primary.SQL("postgres", `SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication`) == "t\n"
	})
	line.Sever(true)
	seen := map[string]driver.Position{}
	for _, name := range boards {
		d := told
		if name == "remembered" {
			d = remembers
		}
		r := d.Apply(t.Context(), name, postsOf(4))[3]
		if r.Kind != job.NoKind {
			t.Fatalf("a post: %v, %s", r.Kind, r.Message)
		}
		seen[name] = r.Position
	}
	primary.Kill()
	standby.Promote()
	for _, name := range boards[1:] {
		opensAgain(t, other, driver.BoardSpec{Name: name})
		for range 60 { // the sequence of positions skips at most 32
			if r := other.Apply(t.Context(), name, postsOf(1))[0]; r.Kind != job.NoKind {
				t.Fatalf("a post on the new server: %v, %s", r.Kind, r.Message)
			}
		}
	}
	for _, name := range boards {
		d, spec := told, driver.BoardSpec{Name: name, Seen: seen[name]}
		if name == "remembered" { // by the driver alone
			d, spec.Seen = remembers, 0
		}
		if r := d.Apply(t.Context(), name, postsOf(1))[0]; r.Kind != job.Unavailable {
			t.Errorf("%s: a post before the board was opened on the new server: %v, %s", name, r.Kind, r.Message)
		}
		status := opensAgain(t, d, spec)
		if status.Loss == "" || status.Generation != 2 {
			t.Errorf("%s: generation %d, %q; want the loss told of", name, status.Generation, status.Loss)
		}
		if r := d.Apply(t.Context(), name, []driver.Op{tokens[name]})[0]; r.Kind != job.LeaseLost {
			t.Errorf("%s: a token from before the loss: %v, %s; want LEASE_LOST", name, r.Kind, r.Message)
		}
		if status = opensAgain(t, d, driver.BoardSpec{Name: name, Witness: status.Witness, Seen: status.Position}); status.Loss != "" || status.Generation != 2 {
			t.Errorf("%s: opened once more: generation %d, %q", name, status.Generation, status.Loss)
		}
	}
}

// TestNotReplicated: a commit at which the server stopped to wait for its standby may be
// lost with the server, so its outcome is not known. The op can be repeated.
func TestNotReplicated(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := opened(t, p)
	must(t, d, err)
	t.Cleanup(func() { _ = d.Close() })
	if status, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil || status.Durability != driver.Delayed { // fsync is off
		t.Fatalf("%q, %v", status.Durability, err)
	}
	p.SQL("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	p.SQL("postgres", `SELECT pg_reload_conf()`)
	testserver.Eventually(t, "the server knows of it", func() bool { return p.SQL("postgres", `SHOW synchronous_standby_names`) == "nobody\n" })
	ops := postsOf(1)
	apply := func(op *driver.Op) func() driver.Result {
		return func() driver.Result { return d.Apply(t.Context(), "b", []driver.Op{*op})[0] }
	}
	freeze := driver.Move{Step: driver.Freeze, ID: [16]byte{1}}
	for _, tc := range []struct {
		what string
		do   func() driver.Result
	}{
		{"a post", apply(&ops[0])},
		{"a group that is closed", apply(&driver.Op{Kind: driver.Tally, Group: "g", Close: true})},
		{"a group that is forgotten", apply(&driver.Op{Kind: driver.Tally, Group: "h", Forget: true})},
		{"a board that is frozen", func() driver.Result { return driver.Failed(d.(driver.Mover).MoveBoard(t.Context(), "b", freeze)) }}, //nolint:forcetypeassert // it is that of this package
	} {
		for range 2 { // what repeats a change may be lost with it
			done := make(chan driver.Result, 1)
			go func() { done <- tc.do() }()
			testserver.Eventually(t, "a commit waits for a standby: "+tc.what, func() bool {
				return p.SQL("postgres", `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'`) != "0\n"
			})
			p.SQL("postgres", `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
			if r := <-done; r.Kind != job.OutcomeUnknown || !strings.Contains(r.Message, "did not say") {
				t.Errorf("%s whose commit was not replicated: %v, %s", tc.what, r.Kind, r.Message)
			}
		}
	}
	p.SQL("postgres", `ALTER SYSTEM RESET synchronous_standby_names`)
	p.SQL("postgres", `SELECT pg_reload_conf()`)
	if err := d.(driver.Mover).MoveBoard(t.Context(), "b", driver.Move{Step: driver.Thaw, ID: freeze.ID}); err != nil { //nolint:forcetypeassert // likewise
		t.Fatal(err)
	}
	if r := d.Apply(t.Context(), "b", ops)[0]; r.Kind != job.NoKind || !r.Repeated {
		t.Errorf("the same op again: %v, repeated %v", r.Kind, r.Repeated)
	}
}

// TestStandbyAlone: a standby is told apart from a server that is gone, and a recovering
// one is, too.
func TestStandbyAlone(t *testing.T) {
	t.Parallel()
	primary := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	standby := primary.Standby(t, nil)
	_, err := openWith(t.Context(), map[string]any{"url": standby.URL("postgres")})
	if job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("on a standby: %v", err)
	}
	d := pair(t, primary, standby)
	primary.Kill()
	testserver.Eventually(t, "health tells that only a standby answers", func() bool {
		err := d.Health(t.Context())
		return job.KindOf(err) == job.Unavailable && strings.Contains(err.Error(), "is a standby")
	})
	standby.Kill()
	testserver.Eventually(t, "health tells that nobody answers", func() bool {
		err := d.Health(t.Context())
		return job.KindOf(err) == job.Unavailable && strings.Contains(err.Error(), "not reachable")
	})
}
