package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// BenchmarkGroups posts jobs and ends them, 32 at a time on each host: of no group, of one,
// which all change one after the other, and of eight. One op is a job that was posted and ended.
func BenchmarkGroups(b *testing.B) {
	for _, groups := range []int{0, 1, 8} {
		for _, hosts := range []int{1, 2, 3} {
			b.Run(fmt.Sprintf("groups=%d/hosts=%d", groups, hosts), func(b *testing.B) { benchGroups(b, groups, hosts) })
		}
	}
}

func benchGroups(b *testing.B, groups, hosts int) {
	b.Helper()
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{})
	name := "bench"
	drivers := make([]driver.Driver, hosts)
	for i := range drivers {
		drivers[i] = open(b, z.Servers(), store.Options{})
		b.Cleanup(func() { _ = drivers[i].Close() })
		if _, err := drivers[i].OpenBoard(b.Context(), driver.BoardSpec{Name: name}); err != nil {
			b.Fatal(err)
		}
	}
	const atOnce = 32
	b.ResetTimer()
	var group sync.WaitGroup
	for worker := range hosts * atOnce {
		group.Go(func() {
			d := drivers[worker%hosts]
			for i := worker; i < b.N; i += hosts * atOnce {
				id := job.ID(random16())
				p := &driver.Posting{ID: id, Name: "n", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
				post := driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: random16(), Event: job.Posted}
				if groups > 0 {
					post.Group = fmt.Sprint("g", i%groups)
				}
				for _, op := range []driver.Op{post, {Kind: driver.Remove, Job: id, Request: random16(), Event: job.ConsumedEvent}} {
					if r := d.Apply(b.Context(), name, []driver.Op{op})[0]; r.Kind != job.NoKind {
						b.Errorf("op %d: %v (%s)", op.Kind, r.Kind, r.Message)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
