package driver_test

import (
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestWitness(t *testing.T) {
	t.Parallel()
	now := driver.Witness{Store: [8]byte{1}, Generation: 3, Position: 10}
	other := driver.Witness{Store: [8]byte{2}, Generation: 7, Position: 1}
	for name, test := range map[string]struct {
		before     []byte
		seen       driver.Position
		generation uint64
		lost       bool
	}{
		"never seen":              {nil, 0, 3, false},
		"as it was":               {now.Bytes(), 10, 3, false},
		"gone on since":           {driver.Witness{Store: now.Store, Generation: 3, Position: 4}.Bytes(), 5, 3, false},
		"has not come so far":     {driver.Witness{Store: now.Store, Generation: 3, Position: 11}.Bytes(), 0, 4, true},
		"seen further":            {now.Bytes(), 11, 4, true},
		"seen, without a witness": {nil, 11, 4, true},
		"another store":           {other.Bytes(), 0, 8, true},
		"a later generation":      {driver.Witness{Store: now.Store, Generation: 5, Position: 2}.Bytes(), 0, 6, true},
		"not told of a loss":      {driver.Witness{Store: now.Store, Generation: 2, Position: 99}.Bytes(), 99, 3, true},
	} {
		generation, loss, err := now.Compare(&driver.BoardSpec{Witness: test.before, Seen: test.seen})
		if err != nil || generation != test.generation || (loss != "") != test.lost {
			t.Errorf("%s: generation %d, loss %q, %v; want %d, and a loss: %v", name, generation, loss, err, test.generation, test.lost)
		}
	}
	if _, _, err := now.Compare(&driver.BoardSpec{Witness: []byte("short")}); job.KindOf(err) != job.Invalid {
		t.Errorf("a witness of five bytes: %v, want INVALID", err)
	}
}
