package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// The backends of boards that move.
const (
	disk = "disk"
	red  = "red"
	pg   = "pg"
)

const movingConfiguration = `
%s
plugin_dir = %q
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "disk" {
  driver = "embedded"
}
backend "red" {
  driver = "redis"
  config = { %s }
}
backend "pg" {
  driver = "postgres"
  config = { %s }
}
`

// moving starts the stores between which boards move. An embedded store is one server's: where
// there are several, no board is there, and the catalog is where all reach it.
func (d *deployment) moving(t testing.TB, s Schedule) func(programs string) []byte {
	t.Helper()
	redis, postgres, catalog := d.redis(t), d.postgres(t), ""
	d.backends = []string{red, pg, disk}
	if s.Servers > 1 {
		catalog, d.backends = `catalog { backend = "pg" }`, []string{red, pg}
	}
	return func(programs string) []byte {
		return fmt.Appendf(nil, movingConfiguration, catalog, filepath.Join(programs, "plugins"), secret, redis, postgres)
	}
}

// create makes the boards that move, and waits until each server has them.
func (d *deployment) create(t testing.TB) {
	t.Helper()
	each := d.each(t, secret)
	for _, name := range []string{board, clockBoard} {
		if _, err := each[serverName(0)].Admin().CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
			Name: name, Backend: d.backends[0], Lease: durationpb.New(time.Minute), History: durationpb.New(time.Hour),
		}}); err != nil {
			t.Fatal(err)
		}
		for at, c := range each {
			testserver.Eventually(t, fmt.Sprintf("%s has the board %s", at, name), func() bool {
				_, err := c.Board(name).Count(t.Context())
				return err == nil
			})
		}
	}
}

// movers are those who move the boards.
func (d *deployment) movers(t testing.TB, s Schedule, recorder *history.Recorder) (all []side) {
	t.Helper()
	for i, name := range []string{board, clockBoard} {
		m := workload.NewMoves(recorder, name, d.backends, d.doors(t, secret), s.Seed+uint64(i))
		all = append(all, side{"the moves of " + name, m.Run, func(ctx context.Context) error { return m.Rest(ctx, movePatience) }})
	}
	return all
}

// movePatience is how long the last move may take when nothing is broken any more: one that
// cannot go on for a minute is given up.
const movePatience = 90 * time.Second
