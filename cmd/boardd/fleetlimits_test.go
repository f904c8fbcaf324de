package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// TestFleetLimits has callers of one tenant go from one server to the next, of which one is
// killed and one comes back: each of them lets through as much as the tenant may, when it is
// called alone, and all together at no time more.
func TestFleetLimits(t *testing.T) {
	t.Parallel()
	const limit = 40
	servers := startFleetWith(t, 3, fmt.Sprintf(`
tenant "acme" {
  token "ci" {
    roles  = ["viewer"]
    secret = "acme-secret-1234567890"
  }
  limits {
    requests_per_second = %d
  }
}
`, limit))
	settled(t, servers...)
	var let float64
	var began time.Time
	call := func(s *testserver.Server) bool {
		if began.IsZero() {
			began = time.Now()
		}
		status, _, text := ask(t, s, "WhoAmI", `{}`, "Authorization", "Bearer acme-secret-1234567890")
		if status != http.StatusOK && status != http.StatusTooManyRequests {
			t.Fatalf("a call at %s: %d %s", s.Addr, status, text)
		}
		if status == http.StatusOK {
			let++
		}
		if most := 1.01*limit*time.Since(began).Seconds() + limit + 4; let > most {
			t.Fatalf("%.0f calls were let through in %v, want at most %.0f", let, time.Since(began), most)
		}
		return status == http.StatusOK
	}
	hasAll := func(s *testserver.Server) {
		t.Helper()
		testserver.Eventually(t, "a server that is called alone lets through what the tenant may", func() bool {
			from, before := time.Now(), let
			often := time.NewTicker(time.Second / (3 * limit)) // than is let through, and not as often as the processors can
			defer often.Stop()
			for time.Since(from) < 2*time.Second {
				<-often.C
				call(s)
			}
			return (let-before)/time.Since(from).Seconds() > 0.8*limit
		})
	}
	hasAll(servers[0])
	hasAll(servers[1])
	servers[1].Kill()
	hasAll(servers[2])
	servers[1].Restart()
	hasAll(servers[1])
}

// keptTenants have each one limit on what lies on their boards, of which the boards are on
// all servers of a fleet. A job has keptDetails bytes of details, and every limit is keptMost,
// of bytes for so many jobs.
const (
	keptMost    = 300
	keptDetails = 50
)

// sharedEvery is how often the test asks for more: shares of a limit move within seconds.
const sharedEvery = 200 * time.Millisecond

var keptTenants = map[string]string{
	"jobs":   fmt.Sprintf("open_jobs = %d", keptMost),
	"bytes":  fmt.Sprintf("detail_bytes = \"%dB\"", keptMost*keptDetails),
	"claims": fmt.Sprintf("claims = %d", keptMost),
}

// TestFleetLimitsOfBoards has three servers of a fleet fill the boards of tenants through all
// of them, of which one is killed and comes back: what lies on the boards of a tenant is at no
// time more than a hundredth above its limit, and when all have asked often enough at most a
// hundredth below it.
func TestFleetLimitsOfBoards(t *testing.T) {
	t.Parallel()
	var more strings.Builder
	for tenant, limit := range keptTenants {
		fmt.Fprintf(&more, "tenant %[1]q {\n  token \"all\" {\n    roles  = [\"tenant-admin\"]\n    secret = \"%[1]s-secret-1234567890\"\n  }\n  limits {\n    %[2]s\n  }\n}\n", tenant, limit)
		for i := range fleetBoards {
			fmt.Fprintf(&more, "board \"%[1]s%[2]d\" {\n  tenant  = %[1]q\n  backend = \"main\"\n}\n", tenant, i)
		}
	}
	servers := startFleetWith(t, 3, more.String())
	all := int64((len(keptTenants) + 1) * fleetBoards)
	settledWith(t, all, servers...)
	var use []*keptUse
	for tenant := range keptTenants {
		use = append(use, newKeptUse(t, tenant, servers))
	}
	fill := func(when string, alive ...*testserver.Server) {
		t.Helper()
		testserver.Eventually(t, when+" all that a tenant may have is there", func() bool {
			_ = sleep.For(t.Context(), sharedEvery) // who asks more often only keeps the processors busy
			full := true
			for _, u := range use {
				u.more(alive)
				full = u.count() >= keptMost*99/100 && full
			}
			return full
		})
	}
	fill("at first", servers...)
	owner, other := ownerOf(t, "b0", servers...)
	third := thirdOf(servers, owner, other)
	owner.Kill()
	for range 5 { // what was on its boards counts on
		for _, u := range use {
			u.more([]*testserver.Server{other, third})
		}
	}
	for _, u := range use {
		u.end(keptMost / 3)
	}
	fill("without the server that was killed", other, third)
	owner.Restart()
	settledWith(t, all, servers...)
	for _, u := range use {
		u.end(keptMost / 3)
	}
	fill("when it has come back", servers...)
}

// keptUse is what a tenant has on its boards, with a client at each server.
type keptUse struct {
	t       *testing.T
	tenant  string
	clients map[*testserver.Server]*client.Client
	whole   *client.Client // of all servers
	claims  map[string][]*client.Claim
	turn    int
}

func newKeptUse(t *testing.T, tenant string, servers []*testserver.Server) *keptUse {
	t.Helper()
	u := &keptUse{t: t, tenant: tenant, clients: map[*testserver.Server]*client.Client{}, claims: map[string][]*client.Claim{}}
	connect := func(addr string, patience time.Duration) *client.Client {
		c, err := client.New(client.Config{Addr: addr, Token: tenant + "-secret-1234567890", RetryFor: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	var addrs []string
	for _, s := range servers {
		u.clients[s] = connect(s.Addr, -1)
		addrs = append(addrs, s.Addr)
	}
	u.whole = connect(strings.Join(addrs, ","), 0)
	return u
}

func (u *keptUse) board(i int) string { return fmt.Sprint(u.tenant, i%fleetBoards) }

// more asks for a few more on each board, through one server after the other.
func (u *keptUse) more(servers []*testserver.Server) {
	u.t.Helper()
	for i := range fleetBoards {
		board := u.clients[servers[u.turn%len(servers)]].Board(u.board(i))
		u.turn++
		var jobs []*client.NewJob
		for range 4 {
			jobs = append(jobs, &client.NewJob{Name: "x", Details: fmt.Appendf(nil, `{"x":"%0*d"}`, keptDetails-len(`{"x":""}`), 0)})
		}
		_, err := board.Post(u.t.Context(), jobs...)
		if u.tenant == "claims" && err == nil {
			var got []*client.Claim
			got, err = board.Claim(u.t.Context(), client.ClaimOptions{Owner: "w", Max: 4, Lease: time.Hour, RequestID: client.NewUUID()})
			u.claims[board.Name()] = append(u.claims[board.Name()], got...)
		}
		if k := job.KindOf(err); k != job.NoKind && k != job.QuotaExceeded && k != job.Unavailable {
			u.t.Fatalf("more on the board %s: %v", board.Name(), err)
		}
	}
	u.count()
}

// count returns how much of its limit the tenant has, in jobs.
func (u *keptUse) count() (n int64) {
	u.t.Helper()
	for i := range fleetBoards {
		counts, err := u.whole.Board(u.board(i)).Count(u.t.Context())
		if err != nil {
			u.t.Fatal(err)
		}
		n += counts.GetClaimed()
		if u.tenant != "claims" {
			n += counts.GetUnclaimed()
		}
	}
	if n > keptMost+keptMost/100 {
		u.t.Fatalf("the tenant %s has %d, want at most %d and a hundredth of that", u.tenant, n, keptMost)
	}
	return n
}

// end ends so many of what the tenant has, on all of its boards alike.
func (u *keptUse) end(n int) {
	u.t.Helper()
	for i := range fleetBoards {
		board := u.whole.Board(u.board(i))
		var err error
		if u.tenant == "claims" {
			claims := u.claims[board.Name()]
			some := min(n/fleetBoards, len(claims))
			u.claims[board.Name()] = claims[some:]
			err = board.Consume(u.t.Context(), claims[:some]...)
		} else {
			var uuids []string
			for j, failed := range board.List(u.t.Context(), client.ListOptions{}) {
				if failed != nil {
					u.t.Fatal(failed)
				}
				if uuids = append(uuids, j.GetUuid()); len(uuids) == n/fleetBoards {
					break
				}
			}
			_, err = board.Cancel(u.t.Context(), false, uuids...)
		}
		if err != nil {
			u.t.Fatalf("ending what is on the board %s: %v", board.Name(), err)
		}
	}
}
