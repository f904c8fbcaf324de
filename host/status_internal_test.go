package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/boardd/boardd/host/config"
)

// A tenant with many boards does not hide those of others.
func TestBoardsInTurns(t *testing.T) {
	t.Parallel()
	boards := func(counts map[string]int) (all []*Hosted) {
		for tenant, n := range counts {
			for i := range n {
				all = append(all, &Hosted{config: &config.Board{Tenant: tenant, Name: fmt.Sprint("b", i)}})
			}
		}
		return all
	}
	for _, test := range []struct {
		counts map[string]int
		most   int
		want   []string
	}{
		{map[string]int{"a": 2, "b": 1}, 3, []string{"a/b0", "a/b1", "b/b0"}},
		{map[string]int{"a": 5, "b": 1, "c": 2}, 5, []string{"a/b0", "a/b1", "b/b0", "c/b0", "c/b1"}},
		{map[string]int{"a": 5, "b": 5}, 3, []string{"a/b0", "a/b1", "b/b0"}},
		{map[string]int{"a": 1}, 0, nil},
	} {
		var got []string
		for _, s := range inTurns(boards(test.counts), test.most) {
			got = append(got, s.config.Tenant+"/"+s.config.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d of %v: %v, want %v", test.most, test.counts, got, test.want)
		}
	}
}
