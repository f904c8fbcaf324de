package boardtest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
	postgres "github.com/boardd/boardd/plugins/postgres/store"
	redis "github.com/boardd/boardd/plugins/redis/store"
	zookeeper "github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// A counting is one of the orders that BenchmarkCounted compares, on a board of its own.
type counting struct {
	policy string // empty: none
	params map[string]any
}

var countings = []counting{
	{"", nil},
	{"limit", map[string]any{"by": "label:customer", "max": 1_000_000}},
	{"rate", map[string]any{"by": "label:customer", "max": 1_000_000_000, "per": "1h"}},
}

// countingStores are those that BenchmarkCounted measures.
var countingStores = []string{"memory", "embedded", "redis", "postgres", "zookeeper"}

// openCounting opens one of them.
func openCounting(b *testing.B, store string) driver.Driver {
	b.Helper()
	switch store {
	case "embedded":
		return opened(b, embedded.Program(), "{}")
	case "redis":
		server := testserver.StartRedis(b, testserver.RedisOptions{AppendOnly: true})
		return opened(b, redis.Program(), `{"address":`+strconv.Quote(server.Addr)+`}`)
	case "postgres":
		p := testserver.StartPostgres(b, testserver.PostgresOptions{})
		return opened(b, postgres.Program(), `{"url":`+strconv.Quote(p.URL("postgres"))+`}`)
	case "zookeeper":
		z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{})
		return opened(b, zookeeper.Program(), `{"servers":[`+strconv.Quote(z.Servers()[0])+`]}`)
	default:
		return opened(b, memdriver.Program(), "{}")
	}
}

// BenchmarkCounted is what it costs a claim that the store counts for its key, while limit or
// rate has room: calls that claim 32 jobs, all of one key or each of another one, on boards
// without a policy and with one of the two. They take turns; the ratios are the medians of the
// turns', the rate with the policy over that without.
func BenchmarkCounted(b *testing.B) {
	for _, store := range countingStores {
		for _, keys := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/keys=%d", store, keys), func(b *testing.B) {
				d := openCounting(b, store)
				var boards []*board.Board
				for _, c := range countings {
					boards = append(boards, c.run(b, d))
				}
				times, ratios := make([][]float64, len(boards)), make([][]float64, len(boards))
				for n := 0; b.Loop(); n++ {
					took := make([]float64, len(boards))
					for turn := range boards {
						i := (turn + n) % len(boards)
						took[i] = claimCounted(b, boards[i], keys)
						times[i] = append(times[i], took[i])
					}
					for i := range boards {
						ratios[i] = append(ratios[i], took[0]/took[i])
					}
				}
				b.ReportMetric(middle(times[0]), "ns/claim")
				for i, c := range countings[1:] {
					b.ReportMetric(middle(ratios[i+1]), "ratio-"+c.policy)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// run runs a board with the policy.
func (c counting) run(b *testing.B, d driver.Driver) *board.Board {
	b.Helper()
	spec := board.Spec{Name: "counted-" + c.policy, Key: "counted/" + c.policy}
	if c.policy != "" {
		p, err := policies.New(c.policy, c.params)
		if err != nil {
			b.Fatal(err)
		}
		spec.Rules.Ordering = &board.Rule{Policy: p}
	}
	return run(b, d, spec)
}

// claimCounted posts jobs and returns how long a claim of one takes, in nanoseconds.
func claimCounted(b *testing.B, on *board.Board, keys int) float64 {
	b.Helper()
	const batch, calls = 32, 16
	postings := make([]job.Posting, batch)
	for i := range postings {
		postings[i] = job.Posting{Name: "work", Labels: []job.Label{{Key: "customer", Value: fmt.Sprint("c", i%keys)}}}
	}
	for range calls {
		if _, err := on.Post(b.Context(), postings); err != nil {
			b.Fatal(err)
		}
	}
	refs := make([]board.Ref, 0, batch*calls)
	began := time.Now()
	for range calls {
		r, err := on.Claim(b.Context(), board.ClaimRequest{Owner: "worker", Max: batch, Lease: time.Hour})
		if err != nil || len(r.Claims) != batch {
			b.Fatal(len(r.Claims), err)
		}
		for i := range r.Claims {
			refs = append(refs, board.Ref{ID: r.Claims[i].ID, Token: on.FormatToken(r.Claims[i].ID, r.Claims[i].Token)})
		}
	}
	took := time.Since(began)
	if _, err := on.Consume(b.Context(), refs); err != nil {
		b.Fatal(err)
	}
	return float64(took.Nanoseconds()) / (batch * calls)
}
