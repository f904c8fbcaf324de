package host_test

import (
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
)

// TestSettingsOfABoardOfSeveralHosts changes the settings of a board that two hosts serve: the
// one that hears of it first is refused the board for as long as the other one serves it as it
// was. Both go on answering meanwhile, and both serve it by the new settings then.
func TestSettingsOfABoardOfSeveralHosts(t *testing.T) {
	t.Parallel()
	drivers, ctx := oneStore(t, false), within(t)
	var sessions []*admin.Session
	for range 2 {
		h, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
		sessions = append(sessions, operator(t, h))
	}
	b := config.NewBoard("changing")
	b.Backend = "store"
	if _, err := sessions[0].CreateBoard(ctx, "", b); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for n, s := range sessions {
		ready(t, s, "changing")
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, err := s.Board(ctx, "changing", "ListJobs")
				if err == nil {
					_, err = b.List(ctx, hostboard.ListRequest{})
				}
				if err != nil {
					t.Errorf("host %d: %v", n, err)
					return
				}
			}
		})
	}
	defer reading.Wait()
	defer close(stop)
	for n := range 6 {
		lease := time.Duration(20+n) * time.Second
		_, _, err := sessions[n%2].UpdateBoard(ctx, "", "changing", 0, func(b *config.Board) error {
			b.Lease = lease
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			eventually(t, "the host serves the board by the new settings", func() bool {
				board, err := s.Describe(ctx, "changing", "GetBoard")
				return err == nil && board.Config.Lease == lease && board.Status.Ready
			})
		}
	}
}
