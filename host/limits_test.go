package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// shared makes every host of a test open the same store.
type shared struct {
	driver.Driver

	noLimits bool // hide that the store counts by itself
}

func (s *shared) Close() error { return nil }

func (s *shared) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Limits = status.Capabilities.Limits && !s.noLimits
	return status, err
}

func oneStore(t *testing.T, noLimits bool) map[string]driver.Program {
	t.Helper()
	program := memdriver.Program()
	d, err := program.Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return &shared{d, noLimits}, nil }
	return map[string]driver.Program{"memory": program}
}

func ready(t *testing.T, s *admin.Session, name string) *hostboard.Board {
	t.Helper()
	b, err := s.Board(within(t), name, "PostJobs")
	if err == nil {
		err = b.Ready(within(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// limited is a configuration with limits of the tenant and of the board "a".
func limited(ofTenant, ofBoard config.Limits) config.Config {
	a := board("a", "store")
	a.Limits = ofBoard
	c := oneBackend("", a, board("b", "store"))
	c.Limits = map[string]config.Limits{tenant.Default: ofTenant}
	return c
}

// postUntilRefused posts jobs from all boards at once, and returns how many were
// taken.
func postUntilRefused(t *testing.T, boards []*hostboard.Board, each int, details string) int64 {
	t.Helper()
	var taken atomic.Int64
	var wg sync.WaitGroup
	for _, b := range boards {
		for range 4 {
			wg.Go(func() {
				for range each {
					results, err := b.Post(context.WithoutCancel(t.Context()), []job.Posting{{Name: "x", Details: []byte(details)}})
					switch {
					case err != nil:
						t.Errorf("post: %v", err)
						return
					case results[0].Err == nil:
						taken.Add(1)
					case !errors.Is(results[0].Err, job.QuotaExceeded):
						t.Errorf("post: %v", results[0].Err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return taken.Load()
}

// TestNeverMoreThanTheLimit posts and claims through two hosts of one store that
// counts by itself: there are as many as the limit says, and not one more.
func TestNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	const most = 100
	drivers := oneStore(t, false)
	var boards []*hostboard.Board
	for range 2 {
		_, s := open(t, host.Config{Config: limited(config.Limits{}, config.Limits{OpenJobs: most, Claims: 30}), Drivers: drivers})
		boards = append(boards, ready(t, s, "a"))
	}
	if got := postUntilRefused(t, boards, 40, `{}`); got != most {
		t.Errorf("%d jobs were taken, want %d", got, most)
	}
	claims := 0
	for _, b := range boards {
		for range 5 {
			answer, err := b.Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: 8})
			if err != nil && !errors.Is(err, job.QuotaExceeded) {
				t.Fatal(err)
			}
			claims += len(answer.Claims)
			if err != nil && !strings.Contains(err.Error(), "the limit claims of the board is reached: 30") {
				t.Errorf("the refusal says %v", err)
			}
		}
	}
	if claims != 30 {
		t.Errorf("%d claims were granted, want 30", claims)
	}
	answer, err := boards[0].List(within(t), hostboard.ListRequest{States: []job.State{job.Claimed}, PageSize: 1})
	if err != nil || len(answer.Jobs) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if errs, err := boards[0].Release(within(t), []job.ID{answer.Jobs[0].ID}, "", "test"); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if again, err := boards[0].Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: 8}); err != nil || len(again.Claims) != 1 {
		t.Errorf("after one claim ended, %d were granted (%v), want 1", len(again.Claims), err)
	}
}

// TestATenantsBoardsShareItsLimit fills one board, and then the other.
func TestATenantsBoardsShareItsLimit(t *testing.T) {
	t.Parallel()
	_, s := open(t, host.Config{Config: limited(config.Limits{OpenJobs: 50}, config.Limits{OpenJobs: 30}), Drivers: oneStore(t, false)})
	a, b := ready(t, s, "a"), ready(t, s, "b")
	if got := postUntilRefused(t, []*hostboard.Board{a}, 20, `{}`); got != 30 {
		t.Errorf("the board took %d jobs, want its limit of 30", got)
	}
	if got := postUntilRefused(t, []*hostboard.Board{b}, 20, `{}`); got > 50 || got < 20 {
		t.Errorf("the other board took %d jobs, want the 20 that were left", got)
	}
	total := int64(0)
	for _, on := range []*hostboard.Board{a, b} {
		counts, err := on.Count(within(t))
		if err != nil {
			t.Fatal(err)
		}
		total += counts.Ready
	}
	if total != 50 {
		t.Errorf("the tenant has %d jobs, want its limit of 50", total)
	}
	_, use := s.Limits(within(t))
	if use["boards"] != 2 {
		t.Errorf("the use is %v", use)
	}
}

func TestDetailBytes(t *testing.T) {
	t.Parallel()
	details := `{"x":"` + strings.Repeat("y", 92) + `"}` // 100 bytes
	_, s := open(t, host.Config{Config: limited(config.Limits{}, config.Limits{DetailBytes: 1000}), Drivers: oneStore(t, false)})
	if got := postUntilRefused(t, []*hostboard.Board{ready(t, s, "a")}, 5, details); got != 10 {
		t.Errorf("%d jobs of 100 bytes were taken, want 10", got)
	}
}

// TestStoreThatDoesNotCount is bounded by the host's own counting.
func TestStoreThatDoesNotCount(t *testing.T) {
	t.Parallel()
	_, s := open(t, host.Config{Config: limited(config.Limits{}, config.Limits{OpenJobs: 100, Claims: 10}), Drivers: oneStore(t, true)})
	b := ready(t, s, "a")
	if got := postUntilRefused(t, []*hostboard.Board{b}, 50, `{}`); got < 99 || got > 101 {
		t.Errorf("%d jobs were taken, want 100 and at most one more or less", got)
	}
	claims := 0
	for range 20 {
		answer, err := b.Claim(within(t), hostboard.ClaimRequest{Owner: "w"})
		if err != nil && !errors.Is(err, job.QuotaExceeded) {
			t.Fatal(err)
		}
		claims += len(answer.Claims)
	}
	if claims != 10 {
		t.Errorf("%d claims were granted, want 10", claims)
	}
}

// TestExplainedLimit: why a job is not to be had is said where a limit of claims keeps it, by
// stores that count and by hosts.
func TestExplainedLimit(t *testing.T) {
	t.Parallel()
	for name, uncounted := range map[string]bool{"the store counts": false, "the host counts": true} {
		for whose, limits := range map[string][2]config.Limits{"board": {{}, {Claims: 2}}, "tenant": {{Claims: 2}, {Claims: 5}}} {
			t.Run(name+", "+whose, func(t *testing.T) {
				t.Parallel()
				_, s := open(t, host.Config{Config: limited(limits[0], limits[1]), Drivers: oneStore(t, uncounted)})
				b := ready(t, s, "a")
				posted, err := b.Post(within(t), []job.Posting{{Name: "first"}, {Name: "second"}, {Name: "third"}})
				if err != nil {
					t.Fatal(err)
				}
				last := posted[2].Job.ID
				if x, err := b.Explain(within(t), last, "", nil); err != nil || x.Verdict != "CLAIMABLE" {
					t.Errorf("before any claim: %+v, %v", x, err)
				}
				if got, err := b.Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: 2}); err != nil || len(got.Claims) != 2 {
					t.Fatalf("claimed %+v, %v; want two", got, err)
				}
				if x, err := b.Explain(within(t), last, "", nil); err != nil || x.Verdict != "QUOTA_EXCEEDED" || !strings.Contains(x.Reason, whose) {
					t.Errorf("where as many are claimed as the %s may: %+v, %v", whose, x, err)
				}
			})
		}
	}
}

// TestJobsFromBeforeTheLimit count as well.
func TestJobsFromBeforeTheLimit(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	_, s := open(t, host.Config{Config: limited(config.Limits{}, config.Limits{}), Drivers: drivers})
	if got := postUntilRefused(t, []*hostboard.Board{ready(t, s, "a")}, 10, `{}`); got != 40 {
		t.Fatalf("%d jobs were taken without a limit, want 40", got)
	}
	_, s = open(t, host.Config{Config: limited(config.Limits{}, config.Limits{OpenJobs: 50}), Drivers: drivers})
	if got := postUntilRefused(t, []*hostboard.Board{ready(t, s, "a")}, 10, `{}`); got != 10 {
		t.Errorf("%d more jobs were taken, want 10", got)
	}
}

// TestFullBeforeTheLimit: a board that had just as many jobs before there was a limit takes no other
// one, whatever its tenant may have.
func TestFullBeforeTheLimit(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	_, s := open(t, host.Config{Config: limited(config.Limits{}, config.Limits{}), Drivers: drivers})
	if got := postUntilRefused(t, []*hostboard.Board{ready(t, s, "a")}, 1, `{}`); got != 4 {
		t.Fatalf("%d jobs were taken without a limit, want 4", got)
	}
	_, s = open(t, host.Config{Config: limited(config.Limits{OpenJobs: 1000}, config.Limits{OpenJobs: 4}), Drivers: drivers})
	if got := postUntilRefused(t, []*hostboard.Board{ready(t, s, "a")}, 1, `{}`); got != 0 {
		t.Errorf("%d more jobs were taken", got)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	_, s := open(t, host.Config{
		Config:  limited(config.Limits{RequestsPerSecond: 5}, config.Limits{PostsPerSecond: 7, RequestsPerSecond: 1000}),
		Drivers: oneStore(t, false),
	})
	refused := 0
	for range 50 {
		if err := s.Admit(t.Context()); err != nil {
			if !errors.Is(err, job.QuotaExceeded) {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused < 40 { // a second or two may pass on a busy machine
		t.Errorf("of 50 calls %d were refused, at 5 a second", refused)
	}
	postings := make([]job.Posting, 100)
	for i := range postings {
		postings[i].Name = fmt.Sprint(i)
	}
	results, err := ready(t, s, "a").Post(within(t), postings)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, r := range results {
		if r.Err == nil {
			taken++
		}
	}
	if taken < 7 || taken > 30 {
		t.Errorf("of 100 posts %d were taken, at 7 a second", taken)
	}
}

func TestWatchers(t *testing.T) {
	t.Parallel()
	server, _ := open(t, host.Config{Config: limited(config.Limits{Watchers: 2}, config.Limits{Watchers: 1}), Drivers: oneStore(t, false)})
	watch := func(name string) (func(), error) {
		h, err := login(t.Context(), server, secret)
		if err != nil {
			t.Fatal(err)
		}
		_, release := h.Begin(t.Context())
		_, err = h.Board(within(t), name, "WatchBoard")
		return release, err
	}
	first, err := watch("a")
	if err != nil {
		t.Fatal(err)
	}
	if release, err := watch("a"); !errors.Is(err, job.QuotaExceeded) {
		t.Errorf("a second watcher of the board: %v", err)
	} else {
		release()
	}
	second, err := watch("b")
	if err != nil {
		t.Error(err)
	}
	if release, err := watch("b"); !errors.Is(err, job.QuotaExceeded) {
		t.Errorf("a third watcher of the tenant: %v", err)
	} else {
		release()
	}
	first()
	if third, err := watch("b"); err != nil {
		t.Errorf("after one has left: %v", err)
	} else {
		third()
	}
	second()
}
