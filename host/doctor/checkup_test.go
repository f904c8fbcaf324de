package doctor

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// ill is a store with whatever a test wants to have found in it.
type ill struct {
	driver.Driver
	counts  driver.Counts
	page    driver.Page
	own     []driver.Finding
	failure error // of Examine
}

func (d *ill) Count(context.Context, string) (driver.Counts, error) { return d.counts, nil }

func (d *ill) Scan(context.Context, string, driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) { yield(d.page, nil) }
}

func (d *ill) Examine(context.Context, string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		for _, f := range d.own {
			if !yield(f, nil) {
				return
			}
		}
		if d.failure != nil {
			yield(driver.Finding{}, d.failure)
		}
	}
}

func held(n int, h driver.Holder) driver.Record {
	return driver.Record{Posting: driver.Posting{ID: job.ID{byte(n), 15: 1}}, State: job.Claimed, Version: 1, Holder: &h}
}

// TestCheckup has each thing that shows on any driver, and what shows none.
func TestCheckup(t *testing.T) {
	t.Parallel()
	crowd := driver.Page{}
	for n := range MaxFindings + 1 {
		crowd.Bad = append(crowd.Bad, driver.BadRecord{Key: fmt.Sprint(n), Problem: "garbage"})
	}
	atLimit := driver.Page{Bad: crowd.Bad[:MaxFindings]}
	for name, test := range map[string]struct {
		status driver.BoardStatus
		store  ill
		want   []string // severity and code; several of one as "CODE xN"
		err    job.Kind
	}{
		"healthy": {store: ill{page: driver.Page{Records: []driver.Record{
			{Posting: driver.Posting{ID: job.ID{1}}, State: job.Unclaimed, Version: 1},
			held(2, driver.Holder{Owner: "w", Remaining: time.Second}),
		}}}},
		"in memory":     {status: driver.BoardStatus{Durability: driver.Volatile}, want: []string{"warning memory-only x1"}},
		"lost":          {status: driver.BoardStatus{Loss: "ten jobs"}, want: []string{"problem lost-changes x1"}},
		"at 90 %":       {status: full(100), store: ill{counts: driver.Counts{Open: 90}}},
		"above 90 %":    {status: full(100), store: ill{counts: driver.Counts{Open: 91}}, want: []string{"warning nearly-full x1"}},
		"no expiry":     {store: ill{page: driver.Page{Records: []driver.Record{held(1, driver.Holder{Owner: "w", Foreign: true, NoExpiry: true})}}}, want: []string{"warning claim-without-expiry x1"}},
		"lapsed":        {store: ill{page: driver.Page{Records: []driver.Record{held(1, driver.Holder{Owner: "w", Remaining: -time.Minute})}}}, want: []string{"note lease-ran-out x1"}},
		"many":          {store: ill{page: atLimit}, want: []string{"problem bad-posting x100"}},
		"too many":      {store: ill{page: crowd}, want: []string{"note bad-posting x1", "problem bad-posting x100"}},
		"driver's own":  {store: ill{own: []driver.Finding{{Code: "leak", Severity: driver.Warning}}}, want: []string{"warning leak x1"}},
		"does not look": {store: ill{failure: job.Errorf(job.Unsupported, "no")}},
		"cannot look":   {store: ill{failure: job.Errorf(job.Unavailable, "away")}, err: job.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			var err error
			if test.store.Driver, err = memdriver.Open(t.Context(), driver.Config{}); err != nil {
				t.Fatal(err)
			}
			x := &checkup{
				driver: &test.store, key: "default/b", name: "b", status: test.status, told: map[string]int{},
				found: func(f driver.Finding) { count[f.Severity.String()+" "+f.Code]++ },
			}
			err = x.run(t.Context())
			var got []string
			for what, n := range count {
				got = append(got, fmt.Sprintf("%s x%d", what, n))
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" || job.KindOf(err) != test.err {
				t.Errorf("found (-want +got):\n%s\nand then %v, want %v", diff, err, test.err)
			}
		})
	}
}

func full(most int64) driver.BoardStatus {
	return driver.BoardStatus{Capabilities: driver.Capabilities{MaxJobs: most}}
}
