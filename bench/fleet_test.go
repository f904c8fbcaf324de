package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// fleet is servers that share a Redis. Each tells clients that they may go straight to it.
type fleet struct {
	redis   *testserver.Redis
	servers []*testserver.Server
	at      []*client.Client    // all whose calls go to that server
	ways    []*testserver.Proxy // of each server to the Redis; none where there is nothing between them
	boards  []string
	others  int // boards beside those
}

const fleetServer = `
advertise = %q
fleet {
  public = %q
}
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
catalog { backend = "main" }
%s
`

// fleetOptions are what kind of fleet it is.
type fleetOptions struct {
	servers, boards int
	cuttable        bool   // each server reaches the Redis by a way of its own
	more            string // of each server's configuration
	others          int    // boards that are declared there
}

// startFleet starts the servers, and waits until each board is open on one of them.
func startFleet(b *testing.B, program string, o fleetOptions) *fleet {
	b.Helper()
	f := &fleet{redis: testserver.StartRedis(b, testserver.RedisOptions{}), others: o.others}
	var blocks strings.Builder
	blocks.WriteString(o.more)
	for i := range o.boards {
		f.boards = append(f.boards, fmt.Sprint("b", i))
		fmt.Fprintf(&blocks, "board \"b%d\" {\n  backend = \"main\"\n}\n", i)
	}
	for range o.servers {
		config, redis := filepath.Join(b.TempDir(), "boards.hcl"), f.redis.Addr
		if o.cuttable {
			way := testserver.NewProxy(b, redis)
			f.ways, redis = append(f.ways, way), way.Addr()
		}
		s := testserver.New(b, program, "", "--config", config)
		text := fmt.Appendf(nil, fleetServer, s.Addr, s.Addr, testserver.RootSecret, redis, blocks.String())
		if err := os.WriteFile(config, text, 0o600); err != nil {
			b.Fatal(err)
		}
		s.Launch()
		f.servers, f.at = append(f.servers, s), append(f.at, dialWith(b, client.Config{Addr: s.Addr, StayAtAddr: true, RetryFor: -1}))
	}
	f.settle(b)
	return f
}

// settle waits until all servers know each other, and each board is open on one of them.
func (f *fleet) settle(b *testing.B) {
	b.Helper()
	testserver.Eventually(b, "each board is open on one server", func() bool {
		for i, s := range f.servers {
			if !s.Running() {
				b.Fatalf("the server has ended:\n%s", s.Log())
			}
			list, err := f.at[i].Admin().ListServers(b.Context())
			live, open := 0, int64(0)
			for _, o := range list {
				if o.GetLive() {
					live, open = live+1, open+o.GetBoards()
				}
			}
			if err != nil || !s.Ready() || live != len(f.servers) || open != int64(len(f.boards)+f.others) {
				return false
			}
		}
		return true
	})
}

// straight returns a client that goes to the server of each board.
func (f *fleet) straight(b *testing.B) *client.Client {
	b.Helper()
	addrs := make([]string, 0, len(f.servers))
	for _, s := range f.servers {
		addrs = append(addrs, s.Addr)
	}
	return dialWith(b, client.Config{Addr: strings.Join(addrs, ",")})
}

func dialWith(b *testing.B, c client.Config) *client.Client {
	b.Helper()
	c.Token = testserver.RootSecret
	made, err := client.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(made.Close)
	return made
}

// CPU is the processor time of all servers, their drivers and Redis.
func (f *fleet) CPU() time.Duration {
	total := f.redis.CPU()
	for _, s := range f.servers {
		total += s.CPU()
	}
	return total
}

// BenchmarkFleetJob is the processor time of a job, all processes and the clients' included,
// on four servers over that on one, by turns: where clients go straight to the server of a
// board, and where each call goes to a server by chance, as behind a load balancer, whose own
// time is not counted. 64 callers post, claim and consume on a board each, one job at a time
// or 32.
func BenchmarkFleetJob(b *testing.B) {
	boardd := withRedis(b)
	const boards = 64
	one, four := startFleet(b, boardd, fleetOptions{servers: 1, boards: boards}), startFleet(b, boardd, fleetOptions{servers: 4, boards: boards})
	alone, straight := one.straight(b), four.straight(b)
	ways := []struct {
		name string
		of   *fleet
		to   func() *client.Client
	}{
		{"one", one, func() *client.Client { return alone }},
		{"straight", four, func() *client.Client { return straight }},
		{"by-chance", four, func() *client.Client { return four.at[rand.IntN(len(four.at))] }},
	}
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			const rounds = 20
			costs := make([][]float64, len(ways))
			for b.Loop() {
				for i, w := range ways {
					before := w.of.CPU() + ownCPU()
					byMany(boards, rounds, func(n int) {
						if err := anywhere(b.Context(), w.to, w.of.boards[n/rounds], batch); err != nil {
							b.Error(err)
						}
					})
					costs[i] = append(costs[i], float64((w.of.CPU()+ownCPU()-before).Microseconds())/float64(boards*rounds*batch))
				}
			}
			for i, w := range ways {
				b.ReportMetric(middle(costs[i]), "µs/job-"+w.name)
			}
			for i := range ways[1:] {
				ratios := make([]float64, len(costs[0]))
				for turn := range ratios {
					ratios[turn] = costs[i+1][turn] / costs[0][turn]
				}
				b.ReportMetric(middle(ratios), ways[i+1].name+"/one")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// anywhere posts, claims and consumes, each at a client of its own.
func anywhere(ctx context.Context, to func() *client.Client, board string, batch int) error {
	jobs := make([]*client.NewJob, batch)
	for i := range jobs {
		jobs[i] = newJob(i, "all")
	}
	if _, err := to().Board(board).Post(ctx, jobs...); err != nil {
		return err
	}
	claims, err := to().Board(board).Claim(ctx, client.ClaimOptions{Owner: owner, Max: int32(batch)})
	if err != nil {
		return err
	}
	if len(claims) != batch {
		return fmt.Errorf("%d claims of %d", len(claims), batch)
	}
	return to().Board(board).Consume(ctx, claims...)
}
