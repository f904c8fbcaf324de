package boardtest_test

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board/boardtest"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
	postgres "github.com/boardd/boardd/plugins/postgres/store"
	redis "github.com/boardd/boardd/plugins/redis/store"
	zookeeper "github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	boardtest.Run(t, boardtest.Harness{Open: opener(memdriver.Program(), "{}"), Many: many(t)})
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	boardtest.Run(t, boardtest.Harness{Open: opener(embedded.Program(), "{}"), Many: many(t)})
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	boardtest.Run(t, boardtest.Harness{
		Open:     opener(redis.Program(), `{"address":`+strconv.Quote(server.Addr)+`}`),
		Settings: func(test string) []byte { return []byte(`{"namespace":` + strconv.Quote(place(test)) + `}`) }, Rewritten: true, Many: many(t),
	})
}

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	boardtest.Run(t, boardtest.Harness{
		Open: opener(zookeeper.Program(), `{"servers":[`+strconv.Quote(z.Servers()[0])+`]}`),
		Settings: func(test string) []byte {
			return []byte(`{"max_jobs":100000,"path":` + strconv.Quote("/"+place(test)) + `}`)
		}, Rewritten: true, NoReplace: true, Many: many(t),
	})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	boardtest.Run(t, boardtest.Harness{Many: many(t), Open: func(t *testing.T) driver.Driver {
		t.Helper()
		schema := "b" + strings.ToLower(rand.Text())
		return opener(postgres.Program(), `{"max_connections":4,"schema":`+strconv.Quote(schema)+`,"url":`+strconv.Quote(p.URL("postgres"))+`}`)(t)
	}})
}

// many is how many keys, and jobs of a batch, BOARDD_TEST_KEYS asks for; 0: it does not.
func many(t *testing.T) int {
	t.Helper()
	text := os.Getenv("BOARDD_TEST_KEYS")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("BOARDD_TEST_KEYS is %q: want a number of 2 or more", text)
	}
	return n
}

// place is where the board of a test lies in a store that all tests share.
func place(test string) string { return strings.ReplaceAll(strings.ToLower(test), "/", "-") }

// opener opens a store of its own for each test.
func opener(p driver.Program, settings string) func(t *testing.T) driver.Driver {
	return func(t *testing.T) driver.Driver {
		t.Helper()
		return opened(t, p, settings)
	}
}

// opened opens a store until the test ends.
func opened(t testing.TB, p driver.Program, settings string) driver.Driver {
	t.Helper()
	d, err := p.Open(t.Context(), driver.Config{Settings: []byte(settings), DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
