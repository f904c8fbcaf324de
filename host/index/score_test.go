package index

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestScores puts, claims, returns and scores anew from several sides, while
// classes are built: in the end every job is in its place, in each class.
func TestScores(t *testing.T) {
	t.Parallel()
	ix := New()
	const jobs = 900
	id := func(i int) job.ID { return job.ID{byte(i), byte(i >> 8), 1} }
	score := func(sign int64) Scorer {
		return func(entries []*Entry) {
			for _, e := range entries {
				e.Score = sign * int64(e.ID[0])
			}
		}
	}
	entry := func(i int, position uint64) *Entry {
		return &Entry{ID: id(i), Name: "n", CreatedAt: time.Unix(int64(i), 0), Version: position, Position: driver.Position(position)}
	}
	var putting, others sync.WaitGroup
	stop := make(chan struct{})
	for part := range 3 {
		putting.Go(func() {
			for position := uint64(1); position <= 3; position++ {
				for i := part; i < jobs; i += 3 {
					ix.Put(entry(i, position))
				}
			}
		})
	}
	until := func(do func(i int)) {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
				}
			}
		})
	}
	until(func(i int) {
		ix.SetScorer(score(int64(i%3-1)), nil)
		if err := ix.Rescore(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Millisecond) // whoever puts jobs scores them again each time
	})
	judge := func(_ context.Context, entries []*Entry, allowed []bool) error {
		for i, e := range entries {
			allowed[i] = e.ID[0]%2 == 0
		}
		return nil
	}
	until(func(i int) {
		c, err := ix.Class(t.Context(), string(rune('a'+i%6)), judge)
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range ix.Take(context.Background(), c, 1+rand.IntN(3)) { //nolint:gosec // any will do
			ix.Return(e.ID)
		}
	})
	putting.Wait()
	close(stop)
	others.Wait()

	ix.SetScorer(score(1), nil)
	if err := ix.Rescore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "a", "new"} {
		c, err := ix.Class(t.Context(), key, judge)
		if err != nil {
			t.Fatal(err)
		}
		want := jobs
		if key != "" {
			want = 0
			for i := range jobs {
				if id(i)[0]%2 == 0 {
					want++
				}
			}
		}
		taken := ix.Take(context.Background(), c, jobs)
		if len(taken) != want {
			t.Fatalf("class %q: %d jobs, want %d", key, len(taken), want)
		}
		var ids []job.ID
		for i, e := range taken {
			if e.Score != int64(e.ID[0]) || i > 0 && e.Order().Less(taken[i-1].Order()) {
				t.Fatalf("class %q: the job %d is %+v after %+v", key, i, e.Order(), taken[max(i-1, 0)].Order())
			}
			ids = append(ids, e.ID)
		}
		ix.Return(ids...)
	}
}
