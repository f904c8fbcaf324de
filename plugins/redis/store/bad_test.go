package store_test

import (
	"context"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func (b *bench) counts() driver.Counts {
	b.Helper()
	c, err := b.d.Count(b.Context(), b.board)
	if err != nil {
		b.Fatalf("Count: %v", err)
	}
	return c
}

// TestPoisonWhileWatched has postings that cannot be read come onto a board that
// is followed, and leave it, without anybody listing it.
func TestPoisonWhileWatched(t *testing.T) {
	t.Parallel()
	for name, observe := range map[string]bool{"served": false, "observed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t, testserver.RedisOptions{})
			p := newPython(t, server, "octavia_jobboard")
			p.post("good")
			first := p.poison()
			b := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = observe })
			for _, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{Set: driver.OpenJobs}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if c := b.counts(); c.Bad != 1 || c.Open != 1 {
				t.Errorf("after a scan: %+v", c)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, err := range b.d.Watch(ctx, b.board, b.open.Position) {
					if err != nil && job.KindOf(err) != job.Interrupted {
						t.Errorf("Watch: %v", err)
					}
				}
			}()
			defer func() { stop(); <-ended }()
			second := p.poison()
			p.ok(p.client.HSet(t.Context(), "octavia_jobboard:listings", "no uuid", "\x90"))
			testserver.Eventually(t, "all three are counted", func() bool { c := b.counts(); return c.Bad == 3 && c.Open == 1 })
			for _, field := range []string{first.String(), second.String(), "no uuid"} { // as TaskFlow does when it lists them
				p.ok(p.client.HDel(t.Context(), "octavia_jobboard:listings", field))
			}
			testserver.Eventually(t, "none is", func() bool { c := b.counts(); return c.Bad == 0 && c.Open == 1 })
		})
	}
}
