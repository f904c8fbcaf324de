package board

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFirstNames has the first names be kept of many more than there is room for.
func TestFirstNames(t *testing.T) {
	t.Parallel()
	const all = 20_000
	for _, most := range []int{1, 2, 100} {
		for _, after := range []string{"", "n00500", "n19990"} {
			kept := newFirstNames(after, most)
			for _, i := range rand.Perm(2 * all) {
				kept.add(fmt.Appendf(nil, "n%05d", i%all))
				if len(kept.names) > 2*most+1024 {
					t.Fatalf("%d names are kept for %d", len(kept.names), most)
				}
			}
			var want []string
			for i := range all {
				if name := fmt.Sprintf("n%05d", i); name > after && len(want) < most {
					want = append(want, name)
				}
			}
			if got := kept.sorted(); !slices.Equal(got, want) {
				t.Errorf("the first %d after %q are %q, want %q", most, after, got, want)
			}
		}
	}
}
