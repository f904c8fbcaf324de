package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// TestFleetTicks kills the one of two servers that has the board of a schedule, twice.
// The other one takes it over though nobody calls it, and each tick is posted once. The test
// says by how much the latest one was late.
func TestFleetTicks(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, 2)
	board := fleetClient(t, servers...).Board("b3")
	put, err := board.PutSchedule(t.Context(), &client.Schedule{Name: "often", Every: durationpb.New(time.Second), Job: &client.NewJob{Name: "tick"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := put.GetNextAt().AsTime()
	ticks := func(more int64) {
		t.Helper()
		counts, err := board.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := counts.GetReady() + more
		testserver.Eventually(t, fmt.Sprintf("%d ticks more are posted", more), func() bool {
			counts, err := board.Count(t.Context())
			return err == nil && counts.GetReady() >= want
		})
	}
	for round := range 2 {
		ticks(2)
		owner, other := ownerOf(t, "b3", servers...)
		owner.Kill()
		settled(t, other) // until then nobody calls the board, which would have it opened at once
		ticks(2)
		if round == 0 {
			owner.Restart()
			settled(t, servers...)
		}
	}
	stands, err := board.PauseSchedule(t.Context(), "often")
	if err != nil {
		t.Fatal(err)
	}
	var posted []*client.Job
	for j, err := range board.List(t.Context(), client.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		posted = append(posted, j)
	}
	everyTickOnce(t, first, stands, posted)
}

// everyTickOnce expects a job of each tick from the first one to where the schedule stands.
func everyTickOnce(t *testing.T, first time.Time, stands *client.Schedule, posted []*client.Job) {
	t.Helper()
	slices.SortFunc(posted, func(a, b *client.Job) int { return a.GetCreatedAt().AsTime().Compare(b.GetCreatedAt().AsTime()) })
	last := stands.GetLastAt().AsTime()
	if want := int(last.Sub(first)/time.Second) + 1; len(posted) != want || stands.GetProblem() != "" {
		t.Fatalf("%d ticks were posted from %v to %v, want %d (%s)", len(posted), first, last, want, stands.GetProblem())
	}
	if uuid := posted[len(posted)-1].GetUuid(); uuid != stands.GetLastUuid() {
		t.Errorf("the last job is %s, and the schedule says %s", uuid, stands.GetLastUuid())
	}
	var latest time.Duration
	for i, j := range posted {
		tick := first.Add(time.Duration(i) * time.Second)
		late := j.GetCreatedAt().AsTime().Sub(tick)
		if late < 0 {
			t.Errorf("the tick of %v was posted %v before it", tick, -late)
		}
		latest = max(latest, late)
	}
	t.Logf("%d ticks; the latest was posted %v after it was due", len(posted), latest)
}
