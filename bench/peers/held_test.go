package peers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
)

// besideHeld measures peers that keep their jobs in databases of one PostgreSQL before and
// while a transaction is held open for so long, as a report or a forgotten session does it:
// no row that dies meanwhile is removed. All do the same jobs by turns.
func besideHeld(t *testing.T, p *plan, peers []*peer, postgres *testserver.Postgres, open time.Duration) []string {
	t.Helper()
	const handlers = 64
	byTurns(t, peers, handlers, p.round, func(turn int) bool { return turn < 1 }) // everything is warm then
	before := byTurns(t, peers, handlers, p.round, func(turn int) bool { return turn < 3 })

	// Rows stay for a transaction of their own database, so that each has one.
	ended := make([]func(), len(peers))
	for i, one := range peers {
		ended[i] = hold(t, postgres, strings.ToLower(one.name))
	}
	began := time.Now()
	during := byTurns(t, peers, handlers, p.round, func(turn int) bool { return turn == 0 || time.Since(began) < open })
	lines := make([]string, 0, len(peers)+1)
	last := make([]float64, len(peers))
	for i, one := range peers {
		dead := deadRows(t, postgres, strings.ToLower(one.name))
		ended[i]()
		at, n := median(before[i]), len(during[i])
		last[i] = median(during[i][n*4/5:])
		lines = append(lines, fmt.Sprintf("%s on %s beside a transaction that is held open for %s: %s jobs worked in a second before it, and %s in the last fifth of %d turns of %s jobs, a ratio of %.2f. %s rows are dead then.",
			one.name, one.what, open, rate(at), rate(last[i]), n, rate(float64(p.round)), last[i]/at, rate(float64(dead))))
	}
	return append(lines, fmt.Sprintf("%s's over %s's in that last fifth: %.2f.", peers[0].name, peers[1].name, last[0]/last[1]))
}

// deadRows is how many rows of a database are dead and not removed, by what its sessions
// have told. Some told nothing yet where they have worked for a second.
func deadRows(t *testing.T, postgres *testserver.Postgres, database string) (n int) {
	t.Helper()
	testserver.Eventually(t, "there are dead rows, of which none can be removed", func() bool {
		text := postgres.SQL(database, "SELECT sum(n_dead_tup) FROM pg_stat_user_tables")
		n, _ = strconv.Atoi(strings.TrimSpace(text))
		return n > 0
	})
	return n
}

// hold opens a transaction on a database that keeps whatever dies from now on. What it
// returns ends it, and sees that it was there until then.
func hold(t *testing.T, postgres *testserver.Postgres, database string) (end func()) {
	t.Helper()
	session, err := pgx.Connect(t.Context(), postgres.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"} {
		if _, err := session.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() string {
		return strings.TrimSpace(postgres.SQL(database,
			fmt.Sprintf("SELECT backend_xmin FROM pg_stat_activity WHERE pid = %d AND state = 'idle in transaction'", session.PgConn().PID())))
	}
	first := holds()
	if first == "" {
		t.Fatalf("the transaction on %s holds nothing back", database)
	}
	return func() {
		t.Helper()
		if now := holds(); now != first {
			t.Fatalf("the transaction on %s held back what died since %s, and now since %q", database, first, now)
		}
		if _, err := session.Exec(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
	}
}
