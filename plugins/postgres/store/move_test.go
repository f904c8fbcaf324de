package store

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestReceiveForgetsChanges: of what a board has forgotten, as it receives another one, no row
// is left.
func TestReceiveForgetsChanges(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := opened(t, p)
	must(t, d, err)
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	s := d.(*store) //nolint:forcetypeassert // it is that of this package
	rows := func() string {
		return strings.TrimSpace(p.SQL("postgres", `SELECT count(*) FROM boardd.changes`))
	}
	for range 3 {
		done(t, d, postsOf(2))
	}
	if n := rows(); n != "3" {
		t.Fatalf("there are %s rows of changes: want 3", n)
	}
	if err := s.MoveBoard(t.Context(), "b", driver.Move{Step: driver.Receive, ID: [16]byte{1}, Generation: 1, Position: 1}); err != nil {
		t.Fatal(err)
	}
	if n := rows(); n != "0" {
		t.Errorf("there are %s rows of changes that are forgotten: want none", n)
	}
}
