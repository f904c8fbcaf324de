package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// TestLimitsOverAllHosts fills the two boards of a tenant through two hosts at once,
// on a store that counts by itself and on one that does not: of jobs, bytes and
// claims there is never more than a hundredth above the limit, and, where the store
// does not count, what the other host could do at that moment. A board's own limit
// likewise.
func TestLimitsOverAllHosts(t *testing.T) {
	t.Parallel()
	const most, hosts = 1000, 2
	for _, noLimits := range []bool{false, true} {
		drivers := oneStore(t, noLimits)
		ofTenant := config.Limits{OpenJobs: most, Claims: most / 2}
		if !noLimits {
			ofTenant.DetailBytes = most * 15
		}
		c := limited(ofTenant, config.Limits{})
		c.Catalog = "store"
		var boards []*hostboard.Board
		for range hosts {
			h, s := open(t, host.Config{Config: c, Drivers: drivers})
			boards = append(boards, ready(t, s, "a"), ready(t, s, "b"))
			_ = h
		}
		taken := postUntilRefused(t, boards, 80, `{"x":"1234"}`) // 12 bytes
		if taken < most*98/100 || taken > most+most/100+hosts {
			t.Errorf("counted by the store: %v: %d jobs were taken, want %d", !noLimits, taken, most)
		}
		claims := claimUntilRefused(t, boards)
		if claims < most/2*98/100 || claims > most/2+most/2/100+hosts*8 {
			t.Errorf("counted by the store: %v: %d claims were granted, want %d", !noLimits, claims, most/2)
		}
		if taken < most {
			continue // there is room for one more
		}
		if results, err := boards[0].Post(within(t), []job.Posting{{Name: "x"}}); err != nil || !errors.Is(results[0].Err, job.QuotaExceeded) {
			t.Errorf("one more: %v, %v", results, err)
		}
	}
}

// claimUntilRefused claims from all boards at once until nobody gets anything.
func claimUntilRefused(t *testing.T, boards []*hostboard.Board) int64 {
	t.Helper()
	var granted atomic.Int64
	done := make(chan struct{})
	for _, b := range boards {
		go func() {
			defer func() { done <- struct{}{} }()
			for empty := 0; empty < 5; {
				answer, err := b.Claim(context.WithoutCancel(t.Context()), hostboard.ClaimRequest{Owner: "w", Max: 8})
				if err != nil && !errors.Is(err, job.QuotaExceeded) {
					t.Errorf("claim: %v", err)
					return
				}
				if granted.Add(int64(len(answer.Claims))); len(answer.Claims) == 0 {
					empty++
				}
			}
		}()
	}
	for range boards {
		<-done
	}
	return granted.Load()
}

// TestRatesAreDivided: two hosts of one catalog together let through what one would.
func TestRatesAreDivided(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	c := cataloged("")
	c.Limits = map[string]config.Limits{tenant.Default: {RequestsPerSecond: 10}}
	_, first := open(t, host.Config{Config: c, Drivers: drivers})
	if admitted(t, first, 1000) < 10 {
		t.Error("a host that is alone lets through less than the limit")
	}
	_, second := open(t, host.Config{Config: c, Drivers: drivers})
	// Each hears of the other within a few seconds, and then has half of what a still
	// second leaves.
	eventually(t, "the rate is divided", func() bool {
		time.Sleep(1100 * time.Millisecond)
		return admitted(t, first, 40) <= 6 && admitted(t, second, 40) <= 6
	})
}

// admitted asks so often at once, and returns how often it was let.
func admitted(t *testing.T, s *admin.Session, n int) int {
	t.Helper()
	let := 0
	for range n {
		if s.Admit(t.Context()) == nil {
			let++
		}
	}
	return let
}
