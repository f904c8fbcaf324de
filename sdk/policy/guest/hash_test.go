package guest_test

import (
	"hash/fnv"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/policy/guest"
)

func TestHash(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a job\x00\x7f\x80\xff of a board", 3)
	for n := range len(text) {
		want := fnv.New32a()
		_, _ = want.Write([]byte(text[:n]))
		if got := guest.Hash(text[:n]); got != want.Sum32() {
			t.Errorf("%q: %d, want %d", text[:n], got, want.Sum32())
		}
	}
}
