package board

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func namesAt(now *time.Time) *nameBook { return &nameBook{now: func() time.Time { return *now }} }

// TestNamesAreBounded counts so many names apart and the others as one, and forgets what is
// older than two periods.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := namesAt(&now)
	end := func(name string) {
		n.ended(&currentJob{entry: &index.Entry{Name: name, Claim: &index.Claim{}}}, &driver.Op{Kind: driver.Remove, Event: job.ConsumedEvent})
	}
	total := func(r NameReport) (sum int64) {
		for i := range r.Names {
			sum += r.Names[i].Consumed
		}
		if r.Others != nil {
			sum += r.Others.Consumed
		}
		return sum
	}
	for i := range MaxNames {
		end(fmt.Sprint("name-", i))
	}
	if r := n.report(); len(r.Names) != MaxNames || r.Others != nil || total(r) != MaxNames {
		t.Errorf("at the limit %d names, others %+v", len(r.Names), r.Others)
	}
	end("one-more")
	end("one-more")
	end("name-7")
	if r := n.report(); len(r.Names) != MaxNames || r.Others == nil || r.Others.Consumed != 2 || r.Names[0].Name != "name-7" || r.Names[0].Consumed != 2 || !r.Since.Equal(now) {
		t.Errorf("over the limit %d names, the first %+v, others %+v, since %v", len(r.Names), r.Names[0], r.Others, r.Since)
	}
	begun := now
	now = now.Add(namePeriod)
	end("one-more") // there is room for it now
	if r := n.report(); total(r) != MaxNames+4 || !r.Since.Equal(begun) {
		t.Errorf("in the next period %d have ended since %v", total(r), r.Since)
	}
	now = now.Add(namePeriod)
	end("late")
	if r := n.report(); total(r) != 2 || r.Others != nil {
		t.Errorf("two periods later %d have ended", total(r))
	}
	now = now.Add(5 * namePeriod)
	if r := n.report(); total(r) != 0 || !r.Since.IsZero() {
		t.Errorf("days later %d have ended since %v", total(r), r.Since)
	}
}

// TestFailureShare counts attempts: what was given back before it had begun is none.
func TestFailureShare(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := namesAt(&now)
	claimed, free := &index.Entry{Name: "x", Claim: &index.Claim{}}, &index.Entry{Name: "x"}
	for _, did := range []struct {
		s  *currentJob
		op driver.Op
	}{
		{&currentJob{entry: claimed}, driver.Op{Event: job.ConsumedEvent}},
		{&currentJob{entry: claimed}, driver.Op{Event: job.Abandoned}},
		{&currentJob{entry: claimed}, driver.Op{Event: job.Expired}},
		{&currentJob{entry: claimed}, driver.Op{Event: job.TrashedEvent}},
		{&currentJob{entry: claimed, unbegun: true}, driver.Op{Event: job.Abandoned}},
		{&currentJob{entry: claimed}, driver.Op{Event: job.Extended}},
		{&currentJob{entry: free}, driver.Op{Event: job.TrashedEvent}}, // by a person
		{&currentJob{entry: free}, driver.Op{Event: job.CanceledEvent}},
		{nil, driver.Op{Event: job.ConsumedEvent}},
		{&currentJob{}, driver.Op{Event: job.ConsumedEvent}},
	} {
		n.ended(did.s, &did.op)
	}
	r := n.report()
	if len(r.Names) != 1 || r.Names[0].Consumed != 1 || r.Names[0].Failed != 3 || r.Names[0].Canceled != 1 {
		t.Fatalf("%+v", r)
	}
	if share, ended := r.Names[0].FailureShare(); share != 0.75 || !ended {
		t.Errorf("%v, %v", share, ended)
	}
	if _, ended := (&NameStats{Waiting: 1}).FailureShare(); ended {
		t.Error("there is a share of nothing")
	}
}

// TestNameDurations tells percentiles to within a fifth, from a millisecond to a month.
func TestNameDurations(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, 90 * time.Second, time.Hour, 48 * time.Hour, 10 * 24 * time.Hour} {
		var one durations
		for range 19 {
			one.observe(d)
		}
		one.observe(50 * d)
		if n := one.show(); n.Count != 20 || n.P50 < d*4/5 || n.P50 > d*6/5 || n.P95 != n.P50 {
			t.Errorf("%v: %+v", d, n)
		}
		one.observe(50 * d)
		if n := one.show(); n.P95 <= n.P50 {
			t.Errorf("%v: %+v", d, n)
		}
	}
	var none durations
	if n := none.show(); n != (NameDurations{}) {
		t.Errorf("of none: %+v", n)
	}
	none.observe(-time.Second)
	none.observe(1000 * time.Hour * 24)
	if n := none.show(); n.Count != 2 {
		t.Errorf("out of range: %+v", n)
	}
}

// TestByNamesOfKnownTimes has jobs of two names live for known times: their counts, the share of
// the attempts that failed, and how long they waited and ran come out by name.
func TestByNamesOfKnownTimes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		consume := func(ref Ref) ([]error, error) { return b.Consume(t.Context(), []Ref{ref}) }
		fail := func(ref Ref) ([]error, error) {
			return b.Abandon(t.Context(), []Ref{ref}, AbandonOptions{Reason: "broke"})
		}
		live := func(name string, wait, run time.Duration, end func(ref Ref) ([]error, error)) {
			t.Helper()
			id := post(t, b, job.Posting{Name: name, MaxAttempts: 1})[0].ID
			time.Sleep(wait)
			c := claimOne(t, b, ClaimRequest{IDs: []job.ID{id}, Lease: time.Hour})
			time.Sleep(run)
			if errs, err := end(refOf(b, c)); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		for i := range 20 {
			wait, run, end := time.Second, 10*time.Second, consume
			if i < 2 { // two of twenty: the 95th percentile is one of theirs
				wait, run = 100*time.Second, 20*time.Minute
			}
			if i%4 == 3 {
				end = fail
			}
			live("resize", wait, run, end)
		}
		live("mail", 5*time.Minute, 30*time.Millisecond, consume)
		ids := postNamed(t, b, "mail", 4)
		claimOne(t, b, ClaimRequest{IDs: ids[:1], Lease: time.Hour})
		if errs, err := b.Trash(t.Context(), nil, ids[1:2], ""); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if _, err := b.Cancel(t.Context(), ids[2:3], false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r, err := b.ByNames(t.Context())
		if err != nil || len(r.Names) != 2 || r.Others != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		near := func(what string, got, want time.Duration) {
			t.Helper()
			if got < want*4/5 || got > want*6/5 {
				t.Errorf("%s: %v, want %v to within a fifth", what, got, want)
			}
		}
		resize, mail := r.Names[0], r.Names[1]
		if share, ended := resize.FailureShare(); resize.Name != "resize" || resize.Waiting+resize.Claimed != 0 || resize.Trashed != 5 ||
			resize.Consumed != 15 || resize.Failed != 5 || share != 0.25 || !ended || resize.Waits.Count != 20 || resize.Runs.Count != 20 {
			t.Errorf("resize: %+v, of which %v failed", resize, share)
		}
		near("the median of the waits", resize.Waits.P50, time.Second)
		near("the 95th percentile of the waits", resize.Waits.P95, 100*time.Second)
		near("the median of the runs", resize.Runs.P50, 10*time.Second)
		near("the 95th percentile of the runs", resize.Runs.P95, 20*time.Minute)
		if share, ended := mail.FailureShare(); mail.Name != "mail" || mail.Waiting != 1 || mail.Claimed != 1 || mail.Trashed != 1 ||
			mail.Consumed != 1 || mail.Canceled != 1 || mail.Failed != 0 || share != 0 || !ended || mail.Waits.Count != 2 || mail.Runs.Count != 1 {
			t.Errorf("mail: %+v, of which %v failed", mail, share)
		}
		near("the only run", mail.Runs.P50, 30*time.Millisecond)
		near("the longer of two waits", mail.Waits.P95, 5*time.Minute)
	})
}

// postNamed posts jobs of one name.
func postNamed(t *testing.T, b *Board, name string, n int) (ids []job.ID) {
	t.Helper()
	for range n {
		ids = append(ids, post(t, b, job.Posting{Name: name})[0].ID)
	}
	return ids
}
