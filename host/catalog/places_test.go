package catalog_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// TestPlacesTogether occupies many places at once, of which some overlap with one
// another or with those that are there: of each pair one remains.
func TestPlacesTogether(t *testing.T) {
	t.Parallel()
	docs := store(t)
	ctx := t.Context()
	if err := catalog.NewPlaces(docs, "zk").Occupy(ctx, at("path", "/there/Jobs"), use("there"), nil); err != nil {
		t.Fatal(err)
	}
	hosts := []*catalog.Places{catalog.NewPlaces(docs, "zk"), catalog.NewPlaces(docs, "zk")}
	const n = 60
	var mu sync.Mutex
	got := map[string]error{}
	var asking sync.WaitGroup
	ask := func(host int, board, path string) {
		asking.Go(func() {
			err := hosts[host].Occupy(ctx, at("path", path), use(board), nil)
			mu.Lock()
			defer mu.Unlock()
			got[fmt.Sprint(host, " ", board)] = err
		})
	}
	for i := range n {
		ask(i%2, fmt.Sprint("own", i), fmt.Sprintf("/own/%d/Jobs", i))
		ask(0, fmt.Sprint("both", i), fmt.Sprintf("/both/%d/Jobs", i)) // the same board on both hosts
		ask(1, fmt.Sprint("both", i), fmt.Sprintf("/both/%d/Jobs", i))
		ask(i%2, fmt.Sprint("left", i), fmt.Sprintf("/pair/%d/Jobs", i))
		ask(i%2, fmt.Sprint("right", i), fmt.Sprintf("/pair/%d/Jobs/deeper/Jobs", i))
		ask(i%2, fmt.Sprint("late", i), fmt.Sprintf("/there/Jobs/%d", i))
	}
	asking.Wait()
	for i := range n {
		for _, name := range []string{fmt.Sprint(i%2, " own", i), fmt.Sprint("0 both", i), fmt.Sprint("1 both", i)} {
			if got[name] != nil {
				t.Errorf("%s: %v", name, got[name])
			}
		}
		left, right := got[fmt.Sprint(i%2, " left", i)], got[fmt.Sprint(i%2, " right", i)]
		if left == nil && right == nil || job.KindOf(left) != job.Precondition && job.KindOf(right) != job.Precondition {
			t.Errorf("pair %d: %v, %v", i, left, right)
		}
		wantKind(t, "where somebody is already", got[fmt.Sprint(i%2, " late", i)], job.Precondition)
	}
}
