package store

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// inside opens a board and returns it as the driver has it.
func inside(t *testing.T, z *testserver.ZooKeeperEnsemble, o Options) (*Store, *board) {
	t.Helper()
	return insideAt(t, z.Servers(), o)
}

func insideAt(t *testing.T, servers []string, o Options) (*Store, *board) {
	t.Helper()
	return insideLogged(t, servers, slog.DiscardHandler, o)
}

func insideLogged(t *testing.T, servers []string, log slog.Handler, o Options) (*Store, *board) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), driver.Config{Settings: raw, Logger: slog.New(log)}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // the test has seen what there was to see
	s := d.(*Store)                     //nolint:forcetypeassert // Open's
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	b, err := s.board("b")
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

func (s *Store) one(t *testing.T, op driver.Op) driver.Result {
	t.Helper()
	r := s.Apply(t.Context(), "b", []driver.Op{op})[0]
	if r.Kind != job.NoKind {
		t.Fatalf("op %d: %v (%s)", op.Kind, r.Kind, r.Message)
	}
	return r
}

func (s *Store) post(t *testing.T, limits ...driver.Limit) job.ID {
	t.Helper()
	var id job.ID
	copy(id[:], time.Now().AppendFormat(nil, "05.000000000000"))
	p := &driver.Posting{ID: id, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`)}
	s.one(t, driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Limits: limits})
	return id
}

// TestRememberedHalf has a driver stop between the claims of one op: the retry
// finds all that were made, and if the driver goes on after all, it claims no more.
func TestRememberedHalf(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	for more, request := range map[bool][16]byte{false: {1}, true: {2}} {
		op := driver.Op{Kind: driver.Claim, Request: request, Claim: &driver.ClaimSpec{
			Count: 3, Owner: "worker", Lease: time.Minute, Remember: true,
		}}
		for i := range 4 {
			op.Claim.Candidates = append(op.Claim.Candidates, driver.Candidate{Job: s.post(t), Nonce: [16]byte{request[0], byte(i + 1)}})
		}
		c := &claiming{board: b, op: &op, begin: func() bool { return true }, answer: &answer{request: request}}
		if more { // an op that adds to the answer of one before
			first := op
			spec := *op.Claim
			spec.Count, spec.Candidates = 1, spec.Candidates[:1]
			first.Claim = &spec
			s.one(t, first)
			if err := c.answer.prepare(t.Context(), b, op.Claim.Candidates); err != nil {
				t.Fatal(err)
			}
		} else {
			c.answer.plan(op.Claim.Candidates[1:])
			c.some(t.Context(), op.Claim.Candidates[:1])
		}
		c.some(t.Context(), op.Claim.Candidates[1:3]) // and here it ends
		next, _ := inside(t, z, Options{})
		r := next.one(t, op)
		if !r.Repeated || len(r.Claims) != 3 {
			t.Errorf("more=%v: the retry tells of %d claims, repeated %v, want the three that were made", more, len(r.Claims), r.Repeated)
		}
		if late := c.some(t.Context(), op.Claim.Candidates[3:])[0]; late.failed == nil || !late.failed.Repeated || len(late.failed.Claims) != 3 {
			t.Errorf("more=%v: a claim after the answer was given again: got %+v, want the answer", more, late)
		}
		for _, claimed := range r.Claims {
			next.one(t, driver.Op{Kind: driver.Remove, Job: claimed.Job, Precondition: driver.HeldByToken, Token: claimed.Token})
		}
	}
}

// TestLogBeginsAnew has the log run out of numbers again and again, while two
// hosts work: each still learns what the other does.
func TestLogBeginsAnew(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	o := Options{LogNumbers: 20}
	first, a := inside(t, z, o)
	second, b := inside(t, z, o)
	for deadline := time.Now().Add(time.Minute); a.series() < 3 || b.series() < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the logs are at %d and %d", a.series(), b.series())
		}
		id := first.post(t)
		r := second.one(t, driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
			Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{1}}},
		}})
		if len(r.Claims) != 1 {
			t.Fatalf("the other host's job is passed over: %+v", r.Skipped)
		}
		second.one(t, driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: r.Claims[0].Token})
	}
	last := first.post(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if v := b.known(last); v != nil && b.series() == a.series() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the logs are at %d and %d, and the last job is known as %+v", a.series(), b.series(), b.known(last))
		}
	}
	if folder, err := first.client.List(t.Context(), a.at.own); err != nil || len(folder.Names) > 7 {
		t.Errorf("old logs are left: %v, %v", folder.Names, err)
	}
}

// TestIdleCounters takes away what stands at 0, and nothing else.
func TestIdleCounters(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	s.post(t, driver.Limit{Key: "stays", Max: 5})
	id := s.post(t, driver.Limit{Key: "goes/away", Weight: 3, Max: 5})
	s.one(t, driver.Op{Kind: driver.Remove, Job: id})
	for _, group := range []string{"stays", "goes/away"} {
		s.one(t, driver.Op{Kind: driver.Tally, Group: group, Close: true})
	}
	s.one(t, driver.Op{Kind: driver.Tally, Group: "goes/away", Forget: true})
	for _, tc := range []struct {
		idle time.Duration
		want int
	}{{time.Hour, 2}, {-time.Hour, 1}} {
		if err := b.trimCounters(t.Context(), tc.idle); err != nil {
			t.Fatal(err)
		}
		if folder, err := s.client.List(t.Context(), b.at.limits()); err != nil || len(folder.Names) != tc.want {
			t.Errorf("idle for %v: there are %v (%v), want %d", tc.idle, folder.Names, err, tc.want)
		}
		if folder, err := s.client.List(t.Context(), b.at.groups()); err != nil || len(folder.Names) != tc.want {
			t.Errorf("idle for %v: there are the groups %v (%v), want %d", tc.idle, folder.Names, err, tc.want)
		}
	}
	s.post(t, driver.Limit{Key: "goes/away", Weight: 3, Max: 5}) // though it is believed to be there
	s.one(t, driver.Op{Kind: driver.Tally, Group: "goes/away", Close: true})
}

// TestIdleKeys takes away keys that no job has, and no other.
func TestIdleKeys(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	post := func(key driver.Key) job.ID {
		id := job.ID{1}
		_, _ = rand.Read(id[1:]) // never fails
		p := &driver.Posting{ID: id, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`)}
		s.one(t, driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Keys: []driver.Key{key}})
		return id
	}
	for n := range 5 {
		s.one(t, driver.Op{Kind: driver.Remove, Job: post(driver.Key{Name: fmt.Sprint("goes/", n), Open: true})})
	}
	s.one(t, driver.Op{Kind: driver.Remove, Job: post(driver.Key{Name: "numbered", Number: 7})})
	s.one(t, driver.Op{Kind: driver.Remove, Job: post(driver.Key{Name: "for an hour", For: time.Hour})})
	post(driver.Key{Name: "open", Open: true})
	stay := []string{escape("for an hour"), "numbered", "open"}
	for _, tc := range []struct {
		idle time.Duration
		want int
	}{{time.Hour, len(stay) + 5}, {-time.Hour, len(stay)}} {
		if err := b.trimCounters(t.Context(), tc.idle); err != nil {
			t.Fatal(err)
		}
		folder, err := s.client.List(t.Context(), b.at.keys())
		if slices.Sort(folder.Names); err != nil || len(folder.Names) != tc.want || tc.want == len(stay) && !slices.Equal(folder.Names, stay) {
			t.Errorf("idle for %v: there are the keys %v (%v), want %d", tc.idle, folder.Names, err, tc.want)
		}
	}
	post(driver.Key{Name: "goes/0", Open: true}) // is free to be taken again
}

// TestClaimStandsWhileBoardIsReadAnew has the root be unreadable while the board is
// read anew: an op that is under way sees the claim that stands as one that stands.
func TestClaimStandsWhileBoardIsReadAnew(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	id := s.post(t)
	claim := func(nonce byte) *driver.Op {
		return &driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
			Count: 1, Owner: "worker", Lease: time.Hour, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{nonce}}},
		}}
	}
	s.one(t, *claim(1))
	m := b.client().Multi(nil)
	m.Set(b.at.own, []byte("not a root"), -1)
	if _, err := m.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.prepare(t.Context()); job.KindOf(err) != job.Corrupt {
		t.Fatalf("the root was read: %v", err)
	}
	r := b.claim(t.Context(), claim(2), func() bool { return true })
	if len(r.Skipped) != 1 || r.Skipped[0].Kind != job.AlreadyClaimed {
		t.Errorf("a claim on a claimed job: %+v, want that it is claimed already", r)
	}
}

// TestSurely loses the answer to a change that may be made twice.
func TestSurely(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := testserver.NewProxy(t, z.Servers()[0])
	_, b := insideAt(t, []string{p.Addr()}, Options{})
	_, other := inside(t, z, Options{})
	path := b.at.own + "/surely"
	for _, change := range []func(*session.Multi) int{
		func(m *session.Multi) int { return m.Create(path, []byte("made"), session.Persistent) },
		func(m *session.Multi) int { return m.Set(path, []byte("set"), -1) },
	} {
		m := b.client().Multi(session.World())
		change(m)
		before, err := other.client().Exists(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		p.SetMute(true)
		done := make(chan error)
		go func() { done <- b.surely(t.Context(), m) }()
		testserver.Eventually(t, "the change is made", func() bool {
			now, err := other.client().Exists(t.Context(), path)
			return err == nil && now != nil && (before == nil || now.Mzxid > before.Mzxid)
		})
		p.Sever(true)
		p.SetMute(false)
		p.Sever(false)
		if err := <-done; err != nil {
			t.Errorf("a change whose answer was lost: %v", err)
		}
	}
}

// TestFinalReadByMany has many read one ended job at once: each gets its final record.
func TestFinalReadByMany(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, _ := inside(t, z, Options{})
	id := s.post(t)
	s.one(t, driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.Whatever, Ending: &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("final")}})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 20 {
				list, err := s.Read(t.Context(), "b", []job.ID{id}, driver.FinalData)
				if err != nil || string(list[0].Final) != "final" {
					t.Errorf("the final record is %+v (%v)", list, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// TestClaimOfNewsWhileReadAnew has a host claim what another one has just posted, while
// it reads its board anew.
func TestClaimOfNewsWhileReadAnew(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, b := inside(t, z, Options{})
	for n := range 60 {
		id := first.post(t)
		var group sync.WaitGroup
		group.Go(func() {
			time.Sleep(time.Duration(n%12) * time.Millisecond)
			b.reload(errAgain)
		})
		r := second.one(t, driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
			Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{1}}},
		}})
		group.Wait()
		if len(r.Claims) != 1 {
			t.Fatalf("job %d is passed over: %+v", n, r.Skipped)
		}
	}
}

// TestClock: how long ago the store made a change is told by the clock of the leader
// that made it, as long as nobody sets that, and by no other clock.
func TestClock(t *testing.T) {
	t.Parallel()
	const term = uint64(7) << 32
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var c clock
	check := func(zxid uint64, millis int64, now, least, most float64) {
		t.Helper()
		age := c.age(zxid, millis, at(now)).Seconds()
		if age < least || age > most {
			t.Errorf("change %x of %d is %.3f s old, want %.3f to %.3f", zxid, millis, age, least, most)
		}
	}
	check(term+1, 0, 5, 0, 0) // no clock is known
	c.heard(term+10, 1_000_000, at(0), at(0.1))
	check(term+1, 990_000, 0.05, 9.9, 10)
	check(term+1, 990_000, 20.05, 29.9, 30)
	check(term+1, 1_100_000, 20, 0, 0)          // it is not of the future
	check(term-1, 990_000, 20, 0, 0)            // another leader's
	check(2*term+1, 990_000, 20, 0, 0)          // likewise
	c.heard(term+20, 1_030_000, at(20), at(40)) // a slow answer tells less than what is known
	check(term+1, 990_000, 40, 49.8, 50)
	c.heard(term+30, 1_150_000, at(50), at(50.1)) // somebody has set the clock by 100 s
	check(term+1, 990_000, 60, 0, 0)
	check(term+30, 1_150_000, 60, 9.8, 10)
	c.heard(term<<1, 500_000, at(70), at(70.1)) // the next leader
	check(term+30, 1_150_000, 80, 0, 0)
	check(term<<1+1, 501_000, 80, 8.8, 9)
	c.heard(term+40, 1_180_000, at(80), at(80.1)) // an answer of before
	check(term<<1+1, 501_000, 80, 8.8, 9)
}

// TestDocumentsNow: how far the leader's clock is off is measured again and again, and a
// little less exactly than before; what has expired must not be there again for that.
func TestDocumentsNow(t *testing.T) {
	t.Parallel()
	s := &Store{}
	d := &documents{store: s}
	first := d.now()
	s.clock.offset.Store(-maxHearing.Milliseconds() / 2)
	if now := d.now(); now.Before(first) {
		t.Errorf("it was %v, and is %v", first, now)
	}
	const hour = int64(time.Hour / time.Millisecond)
	s.clock.offset.Store(-hour)
	if now := d.now(); now.After(first.Add(-time.Minute)) {
		t.Errorf("the clock was set back by an hour, and it is %v, after %v", now, first)
	}
	s.clock.offset.Store(hour)
	if now := d.now(); now.Before(first.Add(time.Minute)) {
		t.Errorf("the clock was set on by an hour, and it is %v, after %v", now, first)
	}
}
