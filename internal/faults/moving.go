package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

const movingConfiguration = `
catalog { %s }
plugin_dir = %q
token "root" {
  roles  = ["operator"]
  secret = %q
}
tenant %q {
  limits { open_jobs = %d }
  token "all" {
    roles  = ["tenant-admin"]
    secret = %q
  }
}
%s`

const movingBackend = `
backend %q {
  driver  = %q
  tenants = ["*"]
  config  = { %s }
}
`

// moving starts the stores between which boards move. The catalog is where all servers reach it.
func (d *deployment) moving(t testing.TB, s Schedule) func(programs string) []byte {
	t.Helper()
	var backends strings.Builder
	for _, store := range s.Stores {
		config := ""
		switch store {
		case Redis:
			config = d.redis(t)
		case ZooKeeper:
			config = d.zookeeper(t, s)
		case Postgres:
			config = d.postgres(t)
		}
		fmt.Fprintf(&backends, movingBackend, store, store, config)
	}
	catalog := ""
	if s.Servers > 1 {
		catalog = fmt.Sprintf("backend = %q", s.Stores[1])
	}
	return func(programs string) []byte {
		return fmt.Appendf(nil, movingConfiguration, catalog, filepath.Join(programs, "plugins"), secret, otherTenant, otherLimit, otherSecret, backends.String())
	}
}

// movable returns the boards that move in a schedule.
func movable(s Schedule) []*boarddv1.CreateBoardRequest {
	made := func(name string, lease time.Duration) *boarddv1.CreateBoardRequest {
		return &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
			Name: name, Backend: s.Stores[0], Lease: durationpb.New(lease), History: durationpb.New(time.Hour),
		}}
	}
	loaded, deliveries := made(board, time.Minute), made(deliveriesBoard, deliveryLease)
	if s.Limit > 0 {
		loaded.Board.Limits = map[string]int64{"open_jobs": int64(s.Limit)}
	}
	most := int32(deliveryTries)
	deliveries.Board.MaxLease, deliveries.Board.MaxAttempts = deliveries.GetBoard().GetLease(), &most
	deliveries.Board.Backoff, deliveries.Board.MaxBackoff = durationpb.New(deliveryBackoff), durationpb.New(2*deliveryBackoff)
	all := []*boarddv1.CreateBoardRequest{loaded, made(clockBoard, time.Minute), made(toldBoard, time.Minute), deliveries}
	if s.Tenants {
		other := made(otherBoard, time.Minute)
		other.Tenant = otherTenant
		all = append(all, other)
	}
	return all
}

// create makes the boards that move, with their webhooks, and waits until each server has them.
func (d *deployment) create(t testing.TB, s Schedule, told *workload.Receiver) {
	t.Helper()
	each := map[string]map[string]*client.Client{"": d.each(t, secret), otherTenant: d.each(t, otherSecret)}
	admin := each[""][serverName(0)].Admin()
	for _, request := range movable(s) {
		if _, err := admin.CreateBoard(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		name := request.GetBoard().GetName()
		for at, c := range each[request.GetTenant()] {
			testserver.Eventually(t, fmt.Sprintf("%s has the board %s", at, name), func() bool {
				_, err := c.Board(name).Count(t.Context())
				return err == nil
			})
		}
	}
	hook(t, admin, told)
}

// movers are those who move the boards.
func (d *deployment) movers(t testing.TB, s Schedule, recorder *history.Recorder) (all []side) {
	t.Helper()
	for i, request := range movable(s) {
		name := request.GetBoard().GetName()
		m := workload.NewMoves(recorder, workload.Movable{Tenant: request.GetTenant(), Board: name, Backends: s.Stores}, d.doors(t, secret), s.Seed+uint64(i))
		all = append(all, side{"the moves of " + name, m.Run, func(ctx context.Context) error { return m.Rest(ctx, movePatience) }})
	}
	return all
}

// movePatience is how long the last move may take when nothing is broken any more: one that
// cannot go on for a minute is given up.
const movePatience = 90 * time.Second
