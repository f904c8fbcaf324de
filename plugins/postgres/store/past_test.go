package store

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// ending is the request of a job's ending, which is not that of its post.
func ending(id job.ID) [16]byte {
	id[0]++
	return [16]byte(id)
}

// endings posts jobs and ends them, each with as much data in its final record.
func endings(t *testing.T, d driver.Driver, jobs, size int) {
	t.Helper()
	posts := postsOf(jobs)
	done(t, d, posts)
	ends := make([]driver.Op, jobs)
	for i := range posts {
		ends[i] = driver.Op{
			Kind: driver.Remove, Job: posts[i].Job, Request: ending(posts[i].Job), Event: job.ConsumedEvent,
			Ending: &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: make([]byte, size)},
		}
	}
	done(t, d, ends)
}

// TestFullHistory: what has to go from a history that is full goes with a few statements, where
// its bytes are what is full, and no more goes than has to.
func TestFullHistory(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{
		"session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0",
	}})
	d, err := opened(t, p)
	must(t, d, err)
	t.Cleanup(func() { _ = d.Close() })
	const most, size = 1 << 20, 16 << 10
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", MaxFinalBytes: most}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		endings(t, d, 32, size)
	}
	for _, tc := range []struct {
		what           string
		jobs, size     int
		looks, atLeast int
	}{
		{"as many of the same size", 32, size, 2, 32},
		{"one that is as large as many", 1, most / 2, 3, 24},
	} {
		begun := len(p.Log())
		endings(t, d, tc.jobs, tc.size)
		if n := strings.Count(p.Log()[begun:], "ORDER BY place LIMIT"); n == 0 || n > tc.looks {
			t.Errorf("%s: there were %d looks for what has to go: want 1 to %d", tc.what, n, tc.looks)
		}
		counts, err := d.Count(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		if counts.FinalBytes > most || counts.FinalBytes < most-2*size || counts.Finals < int64(tc.atLeast) {
			t.Errorf("%s: %d final records of %d bytes are left: want nearly %d bytes", tc.what, counts.Finals, counts.FinalBytes, most)
		}
	}
}
