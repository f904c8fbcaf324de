package catalog

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestTable changes copies of tables at random, beside maps, while others read the ones that
// they were copied from.
func TestTable(t *testing.T) {
	t.Parallel()
	type moment struct {
		table Table[At, int]
		want  map[At]int
	}
	names := []string{"", "a", "aa", "b", "z"}
	random := rand.New(rand.NewPCG(1, 2))
	agrees := func(m moment) {
		if m.table.Len() != len(m.want) || !maps.Equal(maps.Collect(m.table.All()), m.want) {
			t.Errorf("the table has %v, want %v", maps.Collect(m.table.All()), m.want)
		}
		for at, want := range m.want {
			if got, ok := m.table.Get(at); !ok || got != want {
				t.Errorf("%v is %d, %v; want %d", at, got, ok, want)
			}
		}
		for _, of := range names {
			var want []int
			for _, name := range names {
				if v, ok := m.want[At{of, name}]; ok {
					want = append(want, v)
				}
			}
			if got := Of(m.table, of); !slices.Equal(got, want) {
				t.Errorf("of %q there is %v, want %v", of, got, want)
			}
		}
	}
	all := []moment{{newTable[At, int](At.compare), map[At]int{}}}
	var reading sync.WaitGroup
	for range 300 {
		from := all[random.IntN(len(all))]
		reading.Go(func() { agrees(from) })
		next := moment{from.table.clone(), maps.Clone(from.want)}
		for range random.IntN(12) {
			at := At{names[random.IntN(len(names))], names[random.IntN(len(names))]}
			if random.IntN(3) == 0 {
				next.table.drop(at)
				delete(next.want, at)
			} else {
				v := random.Int()
				next.table.put(at, v)
				next.want[at] = v
			}
		}
		all = append(all, next)
	}
	reading.Wait()
	for _, m := range all {
		agrees(m)
	}
	var zero Table[At, int]
	agrees(moment{zero, nil})
}
