package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/host/fleet"
)

// TestPace is about any second, not only those of a clock.
func TestPace(t *testing.T) {
	t.Parallel()
	var p fleet.Pace
	now := time.Unix(1_000_000, 0)
	take := func(want int) {
		t.Helper()
		got := 0
		for range 2 * fleet.MaxOpens {
			if p.Take(now) {
				got++
			}
		}
		if got != want {
			t.Errorf("after %s %d boards may be opened, want %d", now.Sub(time.Unix(1_000_000, 0)), got, want)
		}
	}
	if !p.Take(now) {
		t.Fatal("the first one may not be opened")
	}
	now = now.Add(900 * time.Millisecond)
	take(fleet.MaxOpens - 1)
	now = now.Add(99 * time.Millisecond)
	take(0)
	now = now.Add(time.Millisecond)
	take(1)
	now = now.Add(899 * time.Millisecond)
	take(0)
	now = now.Add(time.Millisecond)
	take(fleet.MaxOpens - 1)
	now = now.Add(time.Hour)
	take(fleet.MaxOpens)
}

// TestFirst compares it with Order.
func TestFirst(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		servers := make([]fleet.Seen, n)
		for i := range servers {
			servers[i] = fleet.Seen{Live: true, Word: fleet.Word{ID: fmt.Sprint(i), Advertise: fmt.Sprintf("http://s%d", i/2), State: fleet.Serving, Stores: []string{"s"}}}
		}
		p := fleet.Place(servers, "", "", false)
		for b := range 500 {
			board := fmt.Sprint(b)
			order := p.Order("s", "acme", board)
			first, second := p.First("s", "acme", board)
			for i, got := range []*fleet.Seen{first, second} {
				switch {
				case (got == nil) != (i >= len(order)):
					t.Fatalf("of %d servers, number %d is %v", n, i, got)
				case got != nil && got.Advertise != order[i].Advertise:
					t.Fatalf("of %d servers, number %d for %s is %s, want %s", n, i, board, got.Advertise, order[i].Advertise)
				}
			}
		}
		if first, _ := p.First("", "acme", "b"); first != nil {
			t.Error("a board without a store is placed")
		}
	}
}

func TestDuty(t *testing.T) {
	t.Parallel()
	servers := make([]fleet.Seen, 2)
	for i := range servers {
		servers[i] = fleet.Seen{Live: true, Word: fleet.Word{ID: fmt.Sprint(i), Advertise: fmt.Sprint("http://s", i), State: fleet.Serving, Stores: []string{"s"}}}
	}
	p := fleet.Place(servers, "", "", false)
	owner := p.Order("s", "acme", "media")[0].ID
	other := p.Order("s", "acme", "media")[1].ID
	for _, test := range []struct {
		place fleet.Placement
		self  string
		asked bool
		want  fleet.Duty
		who   string
	}{
		{p, owner, false, fleet.Take, other},
		{p, owner, true, fleet.Keep, other},
		{p, other, false, fleet.Nothing, owner},
		{p, other, true, fleet.Hand, owner},
		{fleet.Placement{}, other, false, fleet.Take, ""},
		{fleet.Placement{}, other, true, fleet.Keep, ""},
	} {
		first, second := test.place.First("s", "acme", "media")
		do, who := fleet.DutyOf(test.self, first, second, test.asked)
		if do != test.want || (who == nil) != (test.who == "") || who != nil && who.ID != test.who {
			t.Errorf("server %s, asked %v: duty %d with %v, want %d with %q", test.self, test.asked, do, who, test.want, test.who)
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	server := func(change func(*fleet.Seen)) fleet.Seen {
		s := fleet.Seen{Live: true, Word: fleet.Word{ID: "a", Boot: "b", Advertise: "http://a", State: fleet.Serving, Stores: []string{"s"}}}
		change(&s)
		return s
	}
	place := func(servers ...fleet.Seen) fleet.Placement { return fleet.Place(servers, "", "", false) }
	nothing := func(*fleet.Seen) {}
	if !place(server(nothing)).Same(place(server(func(s *fleet.Seen) { s.Beat, s.Boards, s.Silent = 7, 8, 9 }))) {
		t.Error("the same servers are others")
	}
	for _, change := range []func(*fleet.Seen){
		func(s *fleet.Seen) { s.ID = "x" }, func(s *fleet.Seen) { s.Boot = "x" }, func(s *fleet.Seen) { s.Advertise = "x" },
		func(s *fleet.Seen) { s.Stores = nil }, func(s *fleet.Seen) { s.Live = false },
	} {
		if place(server(nothing)).Same(place(server(change))) {
			t.Errorf("%+v is taken for the same as before", server(change))
		}
	}
}

func TestMayClose(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	long := ago(time.Hour)
	for _, test := range []struct {
		handed, used, warm time.Time
		draining, want     bool
	}{
		{ago(fleet.HandedFor), long, long, false, true},
		{ago(fleet.HandedFor - 1), long, long, false, false},
		{ago(fleet.HandedFor - 1), long, long, true, false},
		{long, ago(fleet.UsedFor - 1), long, false, false},
		{long, ago(fleet.UsedFor), long, false, true},
		{long, ago(0), now.Add(1), true, true},
		{long, long, now.Add(1), false, false},
		{long, long, now, false, true},
	} {
		if got := fleet.MayClose(now, test.handed, test.used, test.warm, test.draining); got != test.want {
			t.Errorf("%+v: closed is %v", test, got)
		}
	}
}
