package seeded_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/driver/drivertest/seeded"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

func harness(open func(t drivertest.T) driver.Driver) drivertest.Harness {
	return drivertest.Harness{
		PerCheck: true,
		Open:     open,
		Store:    func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return open(t) } },
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	}
}

// problems runs checks and returns what they found, by check.
func problems(t *testing.T, h drivertest.Harness) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	drivertest.Check(t.Context(), h, func(f drivertest.Finding) { found[f.Check] = f.Problems })
	return found
}

// TestFound checks that each wrong driver is found by the check that is there
// to find it, and that the right driver passes that check.
func TestFound(t *testing.T) {
	t.Parallel()
	for _, bug := range seeded.All() {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bug, _ := seeded.Find(bug.Name) // made in the bubble
				h := harness(func(t drivertest.T) driver.Driver {
					d, err := bug.Open(t.Context(), driver.Config{})
					if err != nil {
						t.Fatalf("Open: %v", err)
					}
					return d
				})
				h.Only = []string{bug.Check}
				if bug.Hosts {
					h.Hosts = several(bug.Open)
				}
				found, ran := problems(t, h)[bug.Check]
				if !ran {
					t.Fatalf("there is no check %q", bug.Check)
				}
				if len(found) == 0 {
					t.Fatalf("%s did not find that the driver %s", bug.Check, bug.Doc)
				}
				if strings.Contains(found[0], "panic") {
					t.Errorf("found by a panic: %s", found[0])
				}
				t.Logf("%s", found[0])
			})
			synctest.Test(t, func(t *testing.T) {
				store, err := memdriver.Open(t.Context(), driver.Config{})
				if err != nil {
					t.Fatal(err)
				}
				h := harness(func(drivertest.T) driver.Driver { return lasting{store} })
				h.Only = []string{bug.Check}
				h.Hosts = several(func(context.Context, driver.Config) (driver.Driver, error) { return lasting{store}, nil })
				if found := problems(t, h)[bug.Check]; len(found) > 0 {
					t.Errorf("%s finds fault with the right driver: %s", bug.Check, found[0])
				}
			})
		})
	}
}

// several opens drivers on one store.
func several(open func(context.Context, driver.Config) (driver.Driver, error)) func(drivertest.T) func() (driver.Driver, error) {
	return func(t drivertest.T) func() (driver.Driver, error) {
		return func() (driver.Driver, error) { return open(t.Context(), driver.Config{}) }
	}
}

// TestFoundBySeveral checks that a driver which is wrong only beside others passes
// all checks of one driver: without those of several it would be taken for right.
func TestFoundBySeveral(t *testing.T) {
	t.Parallel()
	for _, bug := range seeded.All() {
		if !bug.Hosts {
			continue
		}
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range drivertest.Names() {
				if strings.HasPrefix(name, "hosts/") {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					bug, _ := seeded.Find(bug.Name) // made in the bubble
					h := harness(func(t drivertest.T) driver.Driver {
						d, err := bug.Open(t.Context(), driver.Config{})
						if err != nil {
							t.Fatalf("Open: %v", err)
						}
						return d
					})
					h.Only, h.Programs = []string{name}, 4
					for _, problem := range problems(t, h)[name] {
						t.Errorf("%s finds that the driver %s: %s", name, bug.Doc, problem)
					}
				})
			}
		})
	}
}

type lasting struct{ driver.Driver }

func (lasting) Close() error { return nil }

func (l lasting) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	return l.Driver.(driver.Mover).MoveBoard(ctx, board, m) //nolint:forcetypeassert // memdriver is one
}

func (l lasting) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := l.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Delayed
	return status, err
}

func TestBugsAreNamed(t *testing.T) {
	t.Parallel()
	all := seeded.All()
	if len(all) < 14 {
		t.Errorf("there are %d wrong drivers, want at least 14", len(all))
	}
	seen := map[string]bool{}
	for _, bug := range all {
		if bug.Name == "" || bug.Doc == "" || bug.Open == nil || seen[bug.Name] {
			t.Errorf("bug %+v has no name, no doc, no Open, or another's name", bug)
		}
		seen[bug.Name] = true
		if p := bug.Program(); p.Info.Name != "seeded-"+bug.Name || p.Open == nil {
			t.Errorf("the program of %s is %+v", bug.Name, p.Info)
		}
	}
	if _, ok := seeded.Find("no such bug"); ok {
		t.Errorf("a bug that is not there was found")
	}
}

// TestRandomPrograms checks that random programs find bugs by themselves, and
// find them again with their seed.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	step := regexp.MustCompile(`step \d+`)
	for _, name := range []string{
		"stale-token", "same-owner", "extends-unchecked", "claim-loses-status", "ignores-version", "claims-held", "forgets-order",
		"forgets-answers", "ignores-digest", "post-not-idempotent", "no-tombstone", "forgets-release", "refused-but-done", "purge-forbids",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(seed uint64, programs int) (found []string) {
				synctest.Test(t, func(t *testing.T) {
					bug, ok := seeded.Find(name)
					if !ok {
						t.Fatalf("there is no bug %q", name)
					}
					h := harness(func(t drivertest.T) driver.Driver {
						d, err := bug.Open(t.Context(), driver.Config{})
						if err != nil {
							t.Fatalf("Open: %v", err)
						}
						return d
					})
					h.Only, h.Seed, h.Programs = []string{"random/programs"}, seed, programs
					found = problems(t, h)["random/programs"]
				})
				return found
			}
			first := run(1, 200)
			if len(first) != 1 {
				t.Fatalf("200 random programs found nothing")
			}
			var seed uint64
			if _, err := fmt.Sscanf(first[0][strings.Index(first[0], "Seed:"):], "Seed: %d", &seed); err != nil {
				t.Fatalf("what was found has no seed: %v: %s", err, first[0])
			}
			again := run(seed, 1)
			if len(again) != 1 || step.FindString(again[0]) != step.FindString(first[0]) {
				t.Errorf("with its seed %d it was not found again in the same place: first %s, then %s", seed, first[0], again)
			}
		})
	}
}
