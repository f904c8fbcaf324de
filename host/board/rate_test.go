package board

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// perPeriod has so many of a key claimed in each period.
func perPeriod(n int64, per time.Duration) *ranker {
	return &ranker{period: per, rank: func(k policy.Key, _ time.Time) policy.Rank {
		return policy.Rank{Full: k.Key != "" && k.Running >= n, Most: n * int64(len(k.Key))}
	}}
}

func rated(n int64, per time.Duration) Spec {
	return Spec{Rules: Rules{Ordering: &Rule{Policy: perPeriod(n, per)}}}
}

// stores are one that counts, and one that leaves it to the board.
func stores(t *testing.T, test func(t *testing.T, d driver.Driver)) {
	t.Helper()
	for _, counts := range []bool{true, false} {
		t.Run(map[bool]string{true: "counted", false: "uncounted"}[counts], func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				d := openStore(t)
				if !counts {
					d = uncounting{d}
				}
				test(t, d)
			})
		})
	}
}

// Claims count for the rest of their period, whatever becomes of them. A bubble's clock
// begins with a minute.
func TestRate(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, d driver.Driver) {
		spec := rated(2, time.Minute)
		b := start(t, d, spec)
		jobs := post(t, b, teams("aaaaab")...)
		post(t, b, job.Posting{Name: "free"}, job.Posting{Name: "free"}, job.Posting{Name: "free"})
		refs := wantNames(t, b, 9, "aabfreefreefree") // those without the label are not limited
		consume(t, b, append(refs[2:], refs[0])...)
		errs, err := b.Abandon(t.Context(), []Ref{refs[1]}, AbandonOptions{RefundAttempt: true})
		if err := one(errs, err); err != nil {
			t.Fatal(err)
		}
		wantNames(t, b, 9, "") // an abandoned claim counts, too
		time.Sleep(48 * time.Second)
		x, err := b.Explain(t.Context(), jobs[2].ID, "w", nil)
		if err != nil || x.Verdict != "NOT_ELIGIBLE" {
			t.Fatal(x, err)
		}
		for _, want := range []string{`2 of the key "a" were claimed in the present 1m0s, of at most 2`, "the next of a may run in 12s"} {
			if !strings.Contains(x.Reason, want) {
				t.Errorf("%q does not say %q", x.Reason, want)
			}
		}
		chosen, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[2].ID}})
		if err != nil || len(chosen.Failures) != 1 || !strings.Contains(chosen.Failures[0].Err.Error(), "the next of a may run in 12s") {
			t.Errorf("a chosen job of a key that is used up: %+v, %v", chosen, err)
		}
		// Who waits is told when the next period begins, and nobody is asked until then.
		asked := spec.Rules.Ordering.Policy.(*ranker).asked.Load()
		go func() {
			time.Sleep(11 * time.Second)
			if now := spec.Rules.Ordering.Policy.(*ranker).asked.Load(); now > asked+1 {
				t.Errorf("the policy was asked %d times while a key waited for its period", now-asked)
			}
		}()
		began := time.Now()
		if got := claim(t, b, ClaimRequest{Max: 1, Wait: time.Minute}); len(got) != 1 || time.Since(began) != 12*time.Second {
			t.Fatalf("a waiter was given %d claims after %v, want 1 after 12s", len(got), time.Since(began))
		}
		// Periods are fixed: up to twice as many may come around the end of one.
		time.Sleep(time.Minute - time.Nanosecond - time.Since(began.Add(12*time.Second)))
		wantNames(t, b, 9, "a")
		wantNames(t, b, 9, "")
		time.Sleep(time.Nanosecond)
		wantNames(t, b, 9, "aa")
		wantNames(t, b, 9, "")
	})
}

// What a period has had is known after a restart where the store counts. Elsewhere there
// may be as much again.
func TestRateRestart(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, d driver.Driver) {
		_, uncounted := d.(uncounting)
		b := start(t, d, rated(2, time.Hour))
		post(t, b, teams("aaaaaa")...)
		consume(t, b, wantNames(t, b, 9, "aa")...)
		again := start(t, d, rated(2, time.Hour))
		wantNames(t, again, 9, map[bool]string{true: "aa"}[uncounted])
		wantNames(t, again, 9, "")
		time.Sleep(time.Hour)
		wantNames(t, again, 1, "a")
	})
}

// Hosts on one store grant together what a period may have: no more, and all of it.
func TestRateOnHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const most, periods, per = 4, 5, 10 * time.Second
		d := openStore(t)
		hosts := []*Board{start(t, d, rated(most, per)), start(t, d, rated(most, per))}
		post(t, hosts[0], teams(strings.Repeat("a", most*periods))...)
		var mu sync.Mutex
		granted := map[int64]int{}
		var group sync.WaitGroup
		for n := range 6 {
			b := hosts[n%2]
			group.Go(func() {
				for range 3 * periods {
					r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", Max: 1 + n/2, Wait: per / 2})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					granted[time.Now().UnixNano()/int64(per)] += len(r.Claims)
					mu.Unlock()
					for _, c := range r.Claims {
						if errs, err := b.Consume(t.Context(), []Ref{refOf(b, c)}); one(errs, err) != nil {
							t.Error(errs, err)
						}
					}
				}
			})
		}
		group.Wait()
		maps.DeleteFunc(granted, func(_ int64, n int) bool { return n == 0 })
		if got := slices.Collect(maps.Values(granted)); !slices.Equal(got, slices.Repeat([]int{most}, periods)) {
			t.Errorf("periods had %v claims, want %d each of %d", got, most, periods)
		}
	})
}

// A shadow that goes by periods knows what they have had.
func TestRateInTheShadow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		spec := Spec{Rules: Rules{Shadow: &Rule{Policy: perPeriod(2, time.Hour)}}}
		b := start(t, openStore(t), spec)
		post(t, b, teams("aaaaab")...)
		consume(t, b, wantNames(t, b, 2, "aa")...)
		if r := shadowed(t, b); r.Denies == 0 {
			t.Errorf("a shadow whose key is used up: %+v, want it to deny what the board gives", r)
		}
	})
}

// The longest period is the same for policies and for stores.
func TestLongestPeriod(t *testing.T) {
	t.Parallel()
	if policy.MaxPeriod != driver.MaxPeriod {
		t.Errorf("a policy's period is at most %v, and a rate's %v", policy.MaxPeriod, driver.MaxPeriod)
	}
}

// A claim of a chosen job counts for its key's period, also where nobody has claimed of the key
// before.
func TestRateOfChosenJobs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b := start(t, d, rated(1, time.Hour))
		jobs := post(t, b, teams("aa")...)
		consume(t, b, refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[0].ID}})))
		wantNames(t, start(t, d, rated(1, time.Hour)), 9, "")
	})
}
