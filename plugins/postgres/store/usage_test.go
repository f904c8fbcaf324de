package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestMeasure: the database tells how large it is, and no limit.
func TestMeasure(t *testing.T) {
	t.Parallel()
	d, err := opened(t, testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true}))
	must(t, d, err)
	t.Cleanup(func() { _ = d.Close() })
	testserver.Eventually(t, "the size of the database is known", func() bool {
		u, err := d.(driver.Measurer).Measure(t.Context())
		if err != nil || u.Limit != 0 {
			t.Fatalf("the store holds %+v, %v; want no limit", u, err)
		}
		return u.Used > 1<<20
	})
}
