package index

import (
	"math/rand/v2"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

func TestDirectory(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	var rows slab[row]
	var d directory
	d.init(&rows)
	want := map[job.ID]uint32{}
	for round := range 60_000 {
		id := id(rnd.IntN(20_000))
		h, known := d.get(id)
		if h != want[id] || known != (want[id] != 0) || d.len != len(want) {
			t.Fatalf("round %d: row %d of %d, want %d of %d", round, h, d.len, want[id], len(want))
		}
		switch {
		case known && (round > 40_000 || rnd.IntN(3) == 0):
			d.drop(id)
			delete(want, id)
			rows.drop(h)
		case !known && round <= 40_000:
			h := rows.alloc()
			rows.at(h).ID = id
			d.add(id, h)
			want[id] = h
		case !known:
			d.drop(id)
		}
	}
	for id, h := range want {
		if got, _ := d.get(id); got != h {
			t.Fatalf("row %d, want %d", got, h)
		}
	}
	for id := range want {
		d.drop(id)
	}
	if d.len != 0 {
		t.Errorf("%d are left", d.len)
	}
	for i := range d.parts {
		if len(d.parts[i].slots) > 64 {
			t.Errorf("part %d keeps memory for nothing", i)
		}
	}
}
