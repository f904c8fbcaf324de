package boardtest_test

import (
	"crypto/rand"
	"log/slog"
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
	boardtest.Run(t, boardtest.Harness{Open: opener(memdriver.Program(), "{}")})
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	boardtest.Run(t, boardtest.Harness{Open: opener(embedded.Program(), "{}")})
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	boardtest.Run(t, boardtest.Harness{
		Open:     opener(redis.Program(), `{"address":`+strconv.Quote(server.Addr)+`}`),
		Settings: func(test string) []byte { return []byte(`{"namespace":` + strconv.Quote(place(test)) + `}`) }, Rewritten: true,
	})
}

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	boardtest.Run(t, boardtest.Harness{
		Open:     opener(zookeeper.Program(), `{"servers":[`+strconv.Quote(z.Servers()[0])+`]}`),
		Settings: func(test string) []byte { return []byte(`{"path":` + strconv.Quote("/"+place(test)) + `}`) }, Rewritten: true, NoReplace: true,
	})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	boardtest.Run(t, boardtest.Harness{Open: func(t *testing.T) driver.Driver {
		t.Helper()
		schema := "b" + strings.ToLower(rand.Text())
		return opener(postgres.Program(), `{"max_connections":4,"schema":`+strconv.Quote(schema)+`,"url":`+strconv.Quote(p.URL("postgres"))+`}`)(t)
	}})
}

// place is where the board of a test lies in a store that all tests share.
func place(test string) string { return strings.ReplaceAll(strings.ToLower(test), "/", "-") }

// opener opens a store of its own for each test.
func opener(p driver.Program, settings string) func(t *testing.T) driver.Driver {
	return func(t *testing.T) driver.Driver {
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
}
