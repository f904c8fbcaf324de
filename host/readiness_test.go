package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// An ailing driver opens boards and answers for its health as a test wants.
type ailing struct {
	driver.Driver

	opening func(board string) error
	health  atomic.Pointer[error]
}

func (a *ailing) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if a.opening != nil {
		if err := a.opening(spec.Name); err != nil {
			return driver.BoardStatus{}, err
		}
	}
	return a.Driver.OpenBoard(ctx, spec)
}

func (a *ailing) Health(context.Context) error {
	if err := a.health.Load(); err != nil {
		return *err
	}
	return nil
}

// program serves a.
func (a *ailing) program() map[string]driver.Program {
	return map[string]driver.Program{"memory": memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver {
		a.Driver = d
		return a
	})}
}

// serveAiling opens a host and closes it when the test ends.
func serveAiling(t *testing.T, c config.Config, a *ailing) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{Config: c, Drivers: a.program(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var errAway = job.Errorf(job.Unavailable, "nobody listens at 10.1.2.3")

// TestABoardAloneKeepsNoServerAway: what the store says of one board is that board's matter.
func TestABoardAloneKeepsNoServerAway(t *testing.T) {
	t.Parallel()
	for _, kind := range []job.Kind{job.Corrupt, job.Precondition, job.Invalid, job.QuotaExceeded, job.Internal} {
		synctest.Test(t, func(t *testing.T) {
			h := serveAiling(t, oneBackend("", board("good", "store"), board("bad", "store")), &ailing{opening: func(name string) error {
				if strings.HasSuffix(name, "bad") {
					return job.Errorf(kind, "its head cannot be read")
				}
				return nil
			}})
			began := time.Now()
			if err := h.Started(t.Context()); err != nil || time.Since(began) > time.Second {
				t.Errorf("%v: after %v: %v", kind, time.Since(began), err)
			}
			time.Sleep(time.Hour)
			if r := h.Readiness(); r.Err != nil || len(r.Lines) > 0 {
				t.Errorf("%v: an hour later: %v", kind, r)
			}
		})
	}
}

// TestStartIsBounded: a board whose store is away is waited for, and not for ever.
func TestStartIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := serveAiling(t, oneBackend("", board("good", "store"), board("late", "store")), &ailing{opening: func(name string) error {
			if strings.HasSuffix(name, "late") {
				return errAway
			}
			return nil
		}})
		time.Sleep(host.MaxStart - time.Second)
		r := h.Readiness()
		if r.Err == nil || !slices.Equal(r.Lines, []string{"the server starts: 1 of 2 boards are open"}) {
			t.Errorf("a second before: %v", r)
		}
		time.Sleep(time.Second)
		if r := h.Readiness(); r.Err != nil || len(r.Lines) > 0 {
			t.Errorf("at the limit: %v", r)
		}
	})
}

// TestReadyWhileManyBoardsOpen: a server with many boards open before is ready while it opens
// them, and opens first what is called.
func TestReadyWhileManyBoardsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var boards []config.Board
		for i := range 400 {
			boards = append(boards, board(fmt.Sprint("b", i), "store"))
		}
		var opened atomic.Int64
		h := serveAiling(t, oneBackend("", boards...), &ailing{opening: func(string) error {
			time.Sleep(time.Second)
			opened.Add(1)
			return nil
		}})
		time.Sleep(host.OpeningStart - time.Second)
		if r := h.Readiness(); r.Err == nil {
			t.Errorf("a second before: %v", r)
		}
		time.Sleep(2 * time.Second)
		if r := h.Readiness(); r.Err != nil || len(r.Lines) > 0 {
			t.Errorf("a second later: %v", r)
		}
		before, last := opened.Load(), catalog.At{Tenant: tenant.Default, Name: "b399"}
		if before > 100 {
			t.Fatalf("%d boards are open by then, so that this shows nothing", before)
		}
		if b, err := h.Open(t.Context(), h.Hosted(last)); err != nil || b.Ready(t.Context()) != nil {
			t.Errorf("a board that is called: %v", err)
		}
		if more := opened.Load() - before; more > 24 {
			t.Errorf("%d boards were opened before the one that was called", more)
		}
	})
}

// TestABackendFails: a backend is given some time, unless the server can do without it.
func TestABackendFails(t *testing.T) {
	t.Parallel()
	for _, optional := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := oneBackend("", board("a", "store"))
			c.Backends[0].Optional = optional
			a := &ailing{}
			h := serveAiling(t, c, a)
			if err := h.Started(t.Context()); err != nil {
				t.Fatal(err)
			}
			say := func(err error) {
				a.health.Store(&err)
				time.Sleep(2 * time.Second) // by then the store was asked
				synctest.Wait()
			}
			answers := func(when string, want bool) {
				t.Helper()
				if all := h.Backends(); len(all) != 1 || all[0].Answers != want {
					t.Errorf("optional %v: %s: %+v", optional, when, all)
				}
			}
			answers("before", true)
			say(errAway)
			answers("at first", false)
			if r := h.Readiness(); r.Err != nil || len(r.Lines) != 1 || !strings.Contains(r.Lines[0], "store does not answer") {
				t.Errorf("optional %v: at first: %v", optional, r)
			}
			time.Sleep(host.FailedAfter)
			r := h.Readiness()
			if (r.Err == nil) != optional || len(r.Lines) != 1 || !strings.Contains(r.Lines[0], "store does not answer") || strings.Contains(r.Lines[0], "10.1.2.3") {
				t.Errorf("optional %v: later: %v", optional, r)
			}
			say(job.Errorf(job.QuotaExceeded, "the memory is full"))
			answers("full", true)
			if r := h.Readiness(); r.Err != nil || len(r.Lines) != 1 || !strings.Contains(r.Lines[0], "full") {
				t.Errorf("optional %v: full: %v", optional, r)
			}
			say(nil)
			if r := h.Readiness(); r.Err != nil || len(r.Lines) > 0 {
				t.Errorf("optional %v: well: %v", optional, r)
			}
			say(errAway) // it counts anew
			if r := h.Readiness(); r.Err != nil {
				t.Errorf("optional %v: again: %v", optional, r)
			}
		})
	}
}
