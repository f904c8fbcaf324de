package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const restingOnPostgres = `
advertise  = %q
rest_after = "1s"
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "main" {
  driver = "postgres"
  config = { url = %q }
}
catalog {
  backend = "main"
}
`

// sqlRest is servers whose boards are on one PostgreSQL, and rest.
type sqlRest struct {
	*testing.T
	postgres *testserver.Postgres
	servers  []*testserver.Server
	boards   []string
}

func startSQLRest(t *testing.T, servers, boards int) *sqlRest {
	t.Helper()
	r := &sqlRest{T: t, postgres: testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})}
	program := withDriver(t, "postgres")
	var list strings.Builder
	for i := range boards {
		r.boards = append(r.boards, fmt.Sprint("b", i))
		fmt.Fprintf(&list, "board %q {\n  backend = \"main\"\n}\n", r.boards[i])
	}
	for range servers {
		config := filepath.Join(t.TempDir(), "boards.hcl")
		s := testserver.New(t, program, "", "--config", config)
		if err := os.WriteFile(config, fmt.Appendf(nil, restingOnPostgres+list.String(), s.Addr, fleetToken, r.postgres.URL("postgres")), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Launch()
		r.servers = append(r.servers, s)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range r.servers {
				t.Logf("%s:\n%s", s.Addr, s.Log())
			}
		}
	})
	return r
}

// post posts a job on each board in one transaction of psql, and returns their uuids, in the order
// of the boards.
func (r *sqlRest) post(name string) (ids []string) {
	r.Helper()
	ids = strings.Fields(r.postgres.SQL("postgres", fmt.Sprintf(`SELECT boardd.post(b, '%s') FROM unnest('{%s}'::text[]) b`, name, strings.Join(r.boards, ","))))
	if len(ids) != len(r.boards) {
		r.Fatalf("%d jobs were posted, want one on each of %d boards", len(ids), len(r.boards))
	}
	return ids
}

// rest waits until no board is open on servers.
func (r *sqlRest) rest(what string, servers ...*testserver.Server) {
	r.Helper()
	testserver.Eventually(r, what, func() bool {
		return !slices.ContainsFunc(servers, func(s *testserver.Server) bool { return !s.Ready() || openBoards(r, s) != "0" })
	})
}

// taken waits until what was posted is on its boards, which nobody calls: they have to be open for that.
func (r *sqlRest) taken(what string) {
	r.Helper()
	testserver.Eventually(r, what, func() bool {
		return strings.TrimSpace(r.postgres.SQL("postgres", `SELECT count(*) FROM boardd.inbox`)) == "0"
	})
}

// work claims and consumes the one job that each board has.
func (r *sqlRest) work(ids []string, servers ...*testserver.Server) {
	r.Helper()
	c := fleetClient(r, servers...)
	for i, name := range r.boards {
		claims, err := c.Board(name).Claim(r.Context(), client.ClaimOptions{Owner: "w", Max: 10, Wait: 30 * time.Second})
		if err != nil || len(claims) != 1 || claims[0].Job.GetUuid() != ids[i] {
			r.Fatalf("claims on %s: %v, %v, want job %s", name, claims, err, ids[i])
		}
		if err := c.Board(name).Consume(r.Context(), claims...); err != nil {
			r.Fatal(err)
		}
	}
}

// TestPostBySQLAtRest has the boards of two servers rest on PostgreSQL. What is posted by SQL opens
// them although nobody calls: on the server whose they are, also while its driver or the connections
// are away, on the other one once that one was killed, and on one that was started after it.
func TestPostBySQLAtRest(t *testing.T) {
	t.Parallel()
	r := startSQLRest(t, 2, 4)
	first, second := r.servers[0], r.servers[1]
	testserver.Eventually(t, "each board was opened", func() bool {
		return first.Ready() && second.Ready() && strings.TrimSpace(r.postgres.SQL("postgres", `SELECT count(*) FROM boardd.boards`)) == fmt.Sprint(len(r.boards))
	})
	r.rest("all boards rest", first, second)
	ids := r.post("at rest")
	r.taken("what is posted opens them")
	r.work(ids, first, second)

	r.rest("they rest again", first, second)
	for _, s := range r.servers {
		for _, pid := range s.Drivers() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	ids = r.post("no driver")
	r.taken("drivers that were started again tell of it")
	r.work(ids, first, second)

	r.rest("they rest with new drivers", first, second)
	r.postgres.SQL("postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`)
	ids = r.post("no connection")
	r.taken("drivers whose connections were cut tell of it")
	r.work(ids, first, second)

	r.rest("they rest once more", first, second)
	first.Kill()
	ids = r.post("orphaned")
	r.taken("the other server opens all of them")
	r.work(ids, second)

	r.rest("they rest on the other server", second)
	second.Kill()
	ids = r.post("unheard")
	first.Restart()
	r.taken("a server that comes after it opens them")
	r.work(ids, first)
	for _, name := range r.boards {
		if counts, err := fleetClient(t, first).Board(name).Count(t.Context()); err != nil || counts.GetComplete() != 5 || counts.GetReady()+counts.GetClaimed() != 0 {
			t.Errorf("counts of %s: %v, %v, want five jobs complete and no other", name, counts, err)
		}
	}
}
