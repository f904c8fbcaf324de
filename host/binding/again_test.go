package binding_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// A policy that cannot be made for a reason that passes is tried again, after longer and longer
// pauses, until the board ends or is given something else.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memdriver.Open(t.Context(), driver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var tries []time.Duration
		engines, err := binding.Open(t.Context(), binding.Options{
			DataDir: t.TempDir(), Quotas: &quota.Quotas{}, Logger: slog.New(slog.DiscardHandler),
			Catalog: func() *catalog.Catalog {
				tries = append(tries, time.Since(began))
				return nil // it cannot be read
			},
		})
		defer func() {
			if err := engines.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err != nil {
			t.Fatal(err)
		}
		r, err := engines.Board(t.Context(), &config.Config{}, config.Board{Tenant: "t", Name: "b"})
		if err != nil {
			t.Fatal(err)
		}
		var going sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.Serve(binding.Serving{
			Board: board.New(d, board.Spec{Name: "b", Logger: slog.New(slog.DiscardHandler)}), Logger: slog.New(slog.DiscardHandler),
			Running: ctx, Go: func(f func()) { going.Go(f) },
		})
		given := catalog.Deployment{Tenant: "t", Board: "b", Version: 1, Policies: []catalog.Deployed{{
			Name: "p", Eligibility: true, Releases: []catalog.Release{{Name: "p", Digest: "d"}},
		}}}
		r.Deploy(func() catalog.Deployment { return given })
		wantTries := func(want ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for _, at := range tries {
				got = append(got, int(at.Seconds()))
			}
			if !slices.Equal(got, want) {
				t.Errorf("it was tried after %v s, want %v", got, want)
			}
		}
		time.Sleep(20 * time.Second)
		wantTries(0, 1, 3, 7, 15)
		given.Policies = []catalog.Deployed{{Name: "q", Eligibility: true, Releases: []catalog.Release{{Name: "q", Digest: "e"}}}}
		r.Deploy(func() catalog.Deployment { return given }) // something else: from the beginning
		time.Sleep(4 * time.Second)
		wantTries(0, 1, 3, 7, 15, 20, 21, 23)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		going.Wait() // not as long as the next pause
		time.Sleep(time.Hour)
		wantTries(0, 1, 3, 7, 15, 20, 21, 23)
	})
}
