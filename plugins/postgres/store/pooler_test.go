package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
)

// TestPgBouncer runs a good part of the conformance suite through a PgBouncer in transaction mode that
// has fewer sessions than the drivers have connections.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b := testserver.StartPgBouncer(t, p, "transaction", 6)
	through := func(t drivertest.T) (driver.Driver, error) {
		d, err := openWith(t.Context(), map[string]any{"url": b.URL("postgres")})
		if err == nil && !d.(*store).pooler.found.Load() { //nolint:forcetypeassert // open returns no other
			t.Errorf("the driver did not see PgBouncer")
		}
		return d, err
	}
	drivertest.Run(t, drivertest.Harness{
		Programs: 2,
		Only:     []string{"board", "post", "claim", "remove", "documents", "keys", "watch", "hosts", "inbox", "random"},
		Open:     func(t drivertest.T) driver.Driver { d, err := through(t); return must(t, d, err) },
		Store: func(t drivertest.T) func() driver.Driver {
			return func() driver.Driver { d, err := through(t); return must(t, d, err) }
		},
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return through(t) }
		},
		Leave: func(_ drivertest.T, board string, ids []job.ID) { leave(p, board, ids) },
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
	if got := p.SQL("postgres", `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`); got != "0\n" {
		t.Errorf("%s sessions of PgBouncer were told to listen", strings.TrimSpace(got))
	}
}

// TestStatementPool: a pool that does not keep a transaction together is refused, and
// nothing is done by halves.
func TestStatementPool(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b := testserver.StartPgBouncer(t, p, "statement", 6)
	d, err := openWith(t.Context(), map[string]any{"url": b.URL("postgres")})
	if err == nil {
		_ = d.Close()
	}
	if job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "pool_mode") {
		t.Errorf("through a pool of statements: %v; want what pool_mode has to be", err)
	}
	if got := p.SQL("postgres", `SELECT count(*) FROM pg_namespace WHERE nspname = 'boardd'`); got != "0\n" {
		t.Error("the schema is there, though the driver was refused")
	}
}

// TestPoolerAppears: connections that lead to a PgBouncer from now on are found out.
func TestPoolerAppears(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b := testserver.StartPgBouncer(t, p, "transaction", 6)
	found := &pooler{}
	for _, want := range []struct {
		at  string
		err error
	}{{p.Addr, nil}, {b.Addr, errPooler}, {b.Addr, nil}} {
		c, err := pgx.ParseConfig("postgres://postgres@" + want.at + "/postgres?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		found.suit(c)
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := found.meet(t.Context(), conn); !errors.Is(err, want.err) {
			t.Errorf("a connection to %s: %v, want %v", want.at, err, want.err)
		}
		_ = conn.Close(t.Context())
	}
}
