package bench

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkBoardsMade makes 3,000 boards through the API, one after the other, and gives the
// rate of the last 300 over that of the first 300.
func BenchmarkBoardsMade(b *testing.B) {
	boardd := program(b)
	for _, plugin := range []string{"redis", "postgres", "zookeeper"} {
		withPlugin(b, boardd, plugin)
	}
	for _, store := range []string{"embedded", "redis", "postgres", "zookeeper"} {
		b.Run(store, func(b *testing.B) {
			for b.Loop() {
				c := newHosting(b, boardd, store).client
				const boards, part = 3000, 300
				var took []time.Duration
				for i := range boards / part {
					began := time.Now()
					makeBoards(b, c, "made", i*part, part)
					took = append(took, time.Since(began))
				}
				last := took[len(took)-1]
				b.ReportMetric(part/last.Seconds(), "boards/s-last")
				b.ReportMetric(took[0].Seconds()/last.Seconds(), "last/first")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCatalog fills the catalog, on a Redis, with 100,000 tenants, a token and a board each, or
// with as many as BOARDD_BENCH_TENANTS says. Once all boards rest it gives the rate at which one
// caller makes 300 more of each over the rate with 100 there, and how long the server takes after
// kill -9 until it is ready, and until it knows the last board.
func BenchmarkCatalog(b *testing.B) {
	boardd := withRedis(b)
	const few, more = 100, 300
	all := wanted(b, "BOARDD_BENCH_TENANTS", 100_000)
	for b.Loop() {
		hosting := newHosting(b, boardd, "redis")
		server := hosting.server
		whole := &holding{b, hosting.client.Admin()}
		rested := func() {
			for metric(b, server, "boardd_boards_open ") > 0 {
				time.Sleep(time.Second)
			}
		}
		whole.fill(0, few, 64)
		rested()
		before := whole.fill(few, more, 1)
		filled := whole.fill(few+more, all-few-more, 64)
		rested()
		after := whole.fill(all, more, 1)
		for what := range before {
			b.ReportMetric(before[what].Seconds()/after[what].Seconds(), what+"-all/few")
			b.ReportMetric(more/after[what].Seconds(), what+"s/s")
			b.ReportMetric(float64(all-few-more)/filled[what].Seconds(), what+"s/s-by-64")
		}
		last := dialWith(b, client.Config{Addr: server.Addr, Tenant: fmt.Sprint("t", all)})
		rested()
		server.Kill()
		began := time.Now()
		server.Restart()
		b.ReportMetric(time.Since(began).Seconds(), "s/ready")
		testserver.Eventually(b, "the last board is known", func() bool {
			_, err := last.Board(fmt.Sprint("b", all)).Info(b.Context())
			return err == nil
		})
		b.ReportMetric(time.Since(began).Seconds(), "s/last-board")
	}
	b.ReportMetric(0, "ns/op")
}

// wanted returns the number that a variable of the environment has, or another one where there is
// no such variable.
func wanted(b *testing.B, name string, otherwise int) int {
	b.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	return n
}

// holding makes tenants.
type holding struct {
	b     *testing.B
	admin *client.Admin
}

// fill makes n tenants with a token and a board each, and returns how long each kind took.
func (h *holding) fill(first, n, callers int) map[string]time.Duration {
	ctx := h.b.Context()
	kinds := map[string]func(i int) error{
		"tenant": func(i int) error {
			_, err := h.admin.CreateTenant(ctx, &boarddv1.CreateTenantRequest{Name: fmt.Sprint("t", i)})
			return err
		},
		"token": func(i int) error {
			_, err := h.admin.CreateToken(ctx, &boarddv1.CreateTokenRequest{Tenant: fmt.Sprint("t", i), Name: "worker", Roles: []string{"worker"}})
			return err
		},
		"board": func(i int) error {
			_, err := h.admin.CreateBoard(ctx, &boarddv1.CreateBoardRequest{Tenant: fmt.Sprint("t", i), Board: &boarddv1.BoardSettings{Name: fmt.Sprint("b", i), Backend: "main"}})
			return err
		},
	}
	took := map[string]time.Duration{}
	for _, kind := range []string{"tenant", "token", "board"} {
		took[kind] = byMany(callers, (n+callers-1)/callers, func(i int) {
			if i >= n {
				return
			}
			if err := kinds[kind](first + i); err != nil {
				h.b.Error(err)
			}
		})
		if h.b.Failed() {
			h.b.FailNow()
		}
	}
	return took
}

// hosting is a server whose catalog and boards are in a store.
type hosting struct {
	server *testserver.Server
	client *client.Client
	store  func() time.Duration // its processor time, where it is a process of its own; ZooKeeper's is not known
}

// newHosting starts one with the embedded store, Redis, PostgreSQL or ZooKeeper.
func newHosting(b *testing.B, program, store string) *hosting {
	b.Helper()
	setting, cpu := startStore(b, store)
	server := testserver.Start(b, program, "", "--config", testserver.CatalogConfig(b, store, setting, "rest_after = \"30s\"\n"))
	return &hosting{server, dialWith(b, client.Config{Addr: server.Addr}), cpu}
}

// startStore starts a store, and returns how a driver reaches it and what gives its processor time.
func startStore(b *testing.B, store string) (setting string, cpu func() time.Duration) {
	b.Helper()
	cpu = func() time.Duration { return 0 }
	switch store {
	case "redis":
		redis := testserver.StartRedis(b, testserver.RedisOptions{})
		setting, cpu = fmt.Sprintf("address = %q", redis.Addr), redis.CPU
	case "postgres":
		postgres := testserver.StartPostgres(b, testserver.PostgresOptions{})
		setting, cpu = fmt.Sprintf("url = %q", postgres.URL("postgres")), postgres.CPU
	case "zookeeper":
		setting = fmt.Sprintf("servers = [%q]", testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true}).Servers()[0])
	}
	return setting, cpu
}

// CPU is the processor time of the server, its driver and the store.
func (h *hosting) CPU() time.Duration { return h.server.CPU() + h.store() }

func makeBoards(b *testing.B, c *client.Client, name string, first, n int) {
	b.Helper()
	for i := range n {
		if _, err := c.Admin().CreateBoard(b.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: fmt.Sprintf("%s-%d", name, first+i), Backend: "main"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestingBoards is what a server of 10,000 boards, of which 500 are at work, takes over
// one of just those 500, by turns: processor time for a job, the store's included and that alone,
// and memory of the server and its driver.
func BenchmarkRestingBoards(b *testing.B) {
	boardd := program(b)
	for _, plugin := range []string{"redis", "postgres"} {
		withPlugin(b, boardd, plugin)
	}
	const atWork, all, callers, rounds = 500, 10_000, 50, 4
	for _, store := range []string{"embedded", "redis", "postgres"} {
		b.Run(store, func(b *testing.B) {
			few, many := newHosting(b, boardd, store), newHosting(b, boardd, store)
			makeBoards(b, few.client, "work", 0, atWork)
			makeBoards(b, many.client, "work", 0, atWork)
			makeBoards(b, many.client, "rest", 0, all-atWork)
			testserver.Eventually(b, "the boards rest that nobody calls", func() bool {
				return metric(b, many.server, "boardd_boards_open ") <= atWork
			})
			cost := func(h *hosting) (whole, store float64) {
				before, stored := h.CPU(), h.store()
				byMany(callers, atWork*rounds/callers, func(n int) {
					if err := cycle(b.Context(), h.client.Board(fmt.Sprint("work-", n%atWork)), 1); err != nil {
						b.Error(err)
					}
				})
				return (h.CPU() - before).Seconds(), (h.store() - stored).Seconds()
			}
			cost(few) // the boards are open then
			cost(many)
			var ratios, stores []float64
			for b.Loop() {
				alone, storeAlone := cost(few)
				beside, storeBeside := cost(many)
				ratios = append(ratios, beside/alone)
				if storeAlone > 0 {
					stores = append(stores, storeBeside/storeAlone)
				}
			}
			b.ReportMetric(middle(ratios), "cpu-many/few")
			if len(stores) > 0 {
				b.ReportMetric(middle(stores), "store-many/few")
			}
			b.ReportMetric(float64(residentOf(b, many.server))/float64(residentOf(b, few.server)), "memory-many/few")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func residentOf(b *testing.B, server *testserver.Server) (bytes int64) {
	b.Helper()
	for _, pid := range append(server.Drivers(), server.PID()) {
		bytes += testserver.MemoryOf(b, pid).Anonymous
	}
	return bytes
}

// metric adds up the metrics of a server that begin with a name, a space or "{" at its end.
func metric(b *testing.B, server *testserver.Server, name string) (sum float64) {
	b.Helper()
	return metricAs(b, server, testserver.RootSecret, name)
}

func metricAs(b *testing.B, server *testserver.Server, token, name string) (sum float64) {
	b.Helper()
	status, text := testserver.Get(b, server.Addr+"/metrics", token)
	if status != http.StatusOK {
		b.Fatalf("%s has no metrics for this token: %d %s", server.Addr, status, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}
