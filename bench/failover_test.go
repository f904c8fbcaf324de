package bench

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkFailover is how long the boards of a server are not served that is killed, stopped
// with SIGSTOP or cut off from the store. "called" is until the first call is served, at one of
// the others, of a board that is called all the time from then on; "moved" until each of its
// boards is open on a server that lives, so that its schedules and leases go on. Four fleets of
// three servers fail at once: -benchtime 50x is 200 failures.
func BenchmarkFailover(b *testing.B) {
	b.Run("killed", func(b *testing.B) {
		failover(b, func(f *fleet, i int) { f.servers[i].Kill() }, func(f *fleet, i int) { f.servers[i].Launch() })
	})
	b.Run("stopped", func(b *testing.B) {
		failover(b, func(f *fleet, i int) { testserver.Freeze(b, f.servers[i].PID()) }, func(f *fleet, i int) {
			if err := syscall.Kill(f.servers[i].PID(), syscall.SIGCONT); err != nil {
				b.Error(err)
			}
		})
	})
	b.Run("cut", func(b *testing.B) {
		failover(b, func(f *fleet, i int) { f.ways[i].Sever(true) }, func(f *fleet, i int) { f.ways[i].Sever(false) })
	})
}

func failover(b *testing.B, fail, mend func(f *fleet, server int)) {
	b.Helper()
	const fleets, boards = 4, 12
	boardd := withRedis(b)
	all := make([]*fleet, fleets)
	for i := range all {
		all[i] = startFleet(b, boardd, fleetOptions{servers: 3, boards: boards, cuttable: true})
	}
	var mu sync.Mutex
	var called, moved []time.Duration
	for n := 0; b.Loop(); n++ {
		var group sync.WaitGroup
		for _, f := range all {
			group.Go(func() {
				failed := n % len(f.servers)
				c, m := f.without(b, f.servers[failed], func() { fail(f, failed) })
				mu.Lock()
				called, moved = append(called, c), append(moved, m...)
				mu.Unlock()
				mend(f, failed)
				f.settle(b)
			})
		}
		group.Wait()
	}
	for name, list := range map[string][]time.Duration{"called": called, "moved": moved} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2].Seconds(), "s/"+name+"-median")
		b.ReportMetric(list[len(list)*99/100].Seconds(), "s/"+name+"-p99")
		b.ReportMetric(list[len(list)-1].Seconds(), "s/"+name+"-most")
	}
	b.ReportMetric(float64(len(called)), "failures")
	b.ReportMetric(0, "ns/op")
}

// without has a server fail, and returns how long it took until a board of its that
// is called was served by another one, and until each of its boards had another server.
func (f *fleet) without(b *testing.B, failed *testserver.Server, fail func()) (called time.Duration, moved []time.Duration) {
	b.Helper()
	i := slices.IndexFunc(f.servers, func(s *testserver.Server) bool { return s != failed })
	c := dialWith(b, client.Config{Addr: f.servers[i].Addr, StayAtAddr: true, RetryFor: -1, CallTimeout: 3 * time.Second})
	defer c.Close()
	owners, err := f.owners(b.Context(), c)
	if err != nil {
		b.Error(err)
	}
	var its []string
	for board, of := range owners {
		if of == failed.Addr {
			its = append(its, board)
		}
	}
	if len(its) == 0 {
		b.Errorf("%s has no board", failed.Addr)
		return 0, nil
	}
	busy := c.Board(its[0])
	fail()
	began := time.Now()
	var calling sync.WaitGroup
	calling.Go(func() {
		for b.Context().Err() == nil {
			if _, err := busy.Post(b.Context(), newJob(0, "all")); err == nil {
				called = time.Since(began)
				return
			}
			time.Sleep(10 * time.Millisecond) // as a client does that tries again
		}
	})
	for len(its) > 0 && b.Context().Err() == nil {
		owners, err := f.owners(b.Context(), c)
		if err != nil {
			continue
		}
		its = slices.DeleteFunc(its, func(board string) bool {
			if owners[board] == failed.Addr || owners[board] == "" {
				return false
			}
			moved = append(moved, time.Since(began))
			return true
		})
		time.Sleep(20 * time.Millisecond) // nobody announces it
	}
	calling.Wait()
	return called, moved
}

// owners returns on which server each board is open, as far as that is known.
func (f *fleet) owners(ctx context.Context, c *client.Client) (map[string]string, error) {
	boards, err := c.BoardsCounted(ctx)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, board := range boards {
		if board.GetCounts() != nil { // it is open there
			owners[board.GetName()] = board.GetServer()
		}
	}
	return owners, nil
}
