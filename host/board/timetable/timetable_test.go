package timetable_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board/timetable"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// TestCron says when ticks are, across changes of clocks too.
func TestCron(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"daily", "0 3 * * *", "", "2026-06-01T03:00:00Z", []string{"2026-06-02T03:00:00Z", "2026-06-03T03:00:00Z"}},
		{"seconds", "*/20 * * * * *", "", "2026-06-01T03:00:10Z", []string{"2026-06-01T03:00:20Z", "2026-06-01T03:00:40Z", "2026-06-01T03:01:00Z"}},
		{"a name", "@weekly", "", "2026-06-01T03:00:00Z", []string{"2026-06-07T00:00:00Z", "2026-06-14T00:00:00Z"}},
		{"in a zone", "0 3 * * *", "Europe/Berlin", "2026-06-01T00:00:00Z", []string{"2026-06-01T01:00:00Z"}},
		{"weekdays", "30 9 * * mon-fri", "America/New_York", "2026-06-05T14:00:00Z", []string{"2026-06-08T13:30:00Z"}},
		// 2026-03-29: 02:00 CET is 03:00 CEST.
		{"left out", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"beside what is left out", "0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		// 2026-10-25: 03:00 CEST is 02:00 CET.
		{"twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"behind what comes twice", "30 3 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-25T02:30:00Z"}},
		{"in every hour", "30 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", []string{"2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"in every hour, over one left out", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		// The clocks of Lord Howe change by half an hour, at 02:00 to 02:30 on 2026-10-04.
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table, err := timetable.Cron(tt.cron, tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			after := at(t, tt.after)
			for _, want := range tt.want {
				if after = table.Next(after); !after.Equal(at(t, want)) {
					t.Fatalf("the next tick is %v, want %s", after, want)
				}
			}
		})
	}
}

// TestOnceADay counts the ticks of an expression that names an hour: one on each day of ten
// years, whatever the clocks do, and each after the one before.
func TestOnceADay(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Auckland"} {
		at, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, cron := range []string{"30 2 * * *", "0 0 * * *", "59 23 * * *", "15 3 * * *"} {
			table, err := timetable.Cron(cron, zone)
			if err != nil {
				t.Fatal(err)
			}
			tick := table.Next(time.Date(2020, 1, 1, 23, 59, 59, 0, at))
			for day := time.Date(2020, 1, 2, 12, 0, 0, 0, at); day.Year() < 2030; day = time.Date(day.Year(), day.Month(), day.Day()+1, 12, 0, 0, 0, at) {
				if !tick.Before(day.Add(12*time.Hour)) || tick.Before(day.Add(-13*time.Hour)) {
					t.Fatalf("%s in %s: on %v the tick is at %v", cron, zone, day, tick.In(at))
				}
				next := table.Next(tick)
				if between := tick.Add(time.Duration(rand.Int64N(int64(next.Sub(tick))))); !table.Next(between).Equal(next) {
					t.Fatalf("%s in %s: after %v comes %v, but after %v in between %v", cron, zone, tick.In(at), next.In(at), between.In(at), table.Next(between).In(at))
				}
				tick = next
			}
		}
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	anchor := at(t, "2026-06-01T00:00:00Z")
	table, err := timetable.Every(90*time.Second, anchor)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{
		"2025-06-01T00:00:00Z": "2026-06-01T00:01:30Z", "2026-06-01T00:00:00Z": "2026-06-01T00:01:30Z",
		"2026-06-01T00:01:29Z": "2026-06-01T00:01:30Z", "2026-06-01T00:01:30Z": "2026-06-01T00:03:00Z",
	} {
		if got := table.Next(at(t, after)); !got.Equal(at(t, want)) {
			t.Errorf("after %s comes %v, want %s", after, got, want)
		}
	}
}

// TestRefused says for what is no timetable why not.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cron, zone, want string }{
		{"* * *", "", "want five fields"},
		{"0 25 * * *", "", "want five fields"},
		{"", "", "want five fields"},
		{"0 0 30 2 *", "", "no such time"},
		{"@every 1h", "", "stands in every"},
		{"TZ=Asia/Tokyo 0 3 * * *", "", "time zone in timezone"},
		{"0 3 * * *", "Mars/Olympus", "Europe/Berlin"},
		{"0 3 * * *", "Local", "Europe/Berlin"},
		{strings.Repeat("0", timetable.MaxCron+1), "", "want at most"},
	} {
		if _, err := timetable.Cron(tt.cron, tt.zone); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q in %q: got %v, want %q", tt.cron, tt.zone, err, tt.want)
		}
	}
	for every, ok := range map[time.Duration]bool{
		timetable.MinEvery: true, timetable.MinEvery - time.Millisecond: false, timetable.MaxEvery: true, timetable.MaxEvery + time.Second: false,
		time.Minute + time.Microsecond: false,
	} {
		if _, err := timetable.Every(every, time.Now()); (err == nil) != ok {
			t.Errorf("every %v: %v", every, err)
		}
	}
}

// FuzzCron: no expression hangs, and ticks go forward.
func FuzzCron(f *testing.F) {
	for _, cron := range []string{"0 3 * * *", "*/7 * 1-5 2 * mon", "@daily", "0 0 29 2 *", "? ? ? ? ?", "1-0 * * * *"} {
		f.Add(cron, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, cron, zone string) {
		table, err := timetable.Cron(cron, zone)
		if err != nil {
			return
		}
		tick := time.Unix(1_780_000_000, 0)
		for range 3 {
			next := table.Next(tick)
			if next.IsZero() {
				return
			}
			if !next.After(tick) {
				t.Fatalf("%q in %q: after %v comes %v", cron, zone, tick, next)
			}
			tick = next
		}
	})
}
