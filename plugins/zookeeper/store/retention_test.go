package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// keeper returns a board on no store, for what it remembers.
func keeper(t testing.TB, spec driver.BoardSpec) *board {
	t.Helper()
	life, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	b := newBoard(&Store{life: life}, "b", layout{})
	b.configure(spec, boardSettings{})
	return b
}

// remembered goes through all jobs, which the board itself has not to.
func remembered(b *board, at instant) (over []job.ID, marks, finals []*view, bytes int64) {
	for id, v := range b.jobs {
		k, ok := v.retained(at)
		switch {
		case !ok:
			continue
		case !k.mark && !k.final:
			over = append(over, id)
		}
		if k.mark {
			marks = append(marks, v)
		}
		if k.final {
			finals = append(finals, v)
			bytes += k.size
		}
	}
	slices.SortFunc(marks, byEnd)
	slices.SortFunc(finals, byEnd)
	return over, marks, finals, bytes
}

// TestRetention compares what a board remembers, and which jobs have to go, with what
// is found by going through all of them.
func TestRetention(t *testing.T) {
	t.Parallel()
	const most, window = 20, time.Hour
	b := keeper(t, driver.BoardSpec{Window: window, MaxTombstones: most, MaxFinals: 8, MaxFinalBytes: 700})
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]job.ID, 60)
	for i := range ids {
		ids[i] = job.ID{byte(i + 1)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for step := uint64(1); step < 3000; step++ {
		at := b.instant()
		when := at.millis() - random.Int64N(2*window.Milliseconds())
		v := &view{id: ids[random.IntN(len(ids))], recZxid: step, rec: &record{version: step, position: step, changedAt: when}}
		switch random.IntN(5) {
		case 0:
			v.node = "job"
		case 1:
			v.rec.place = purged
		case 2:
			v.rec = nil
		default:
			v.rec.place = ended
			v.rec.end = &ending{at: when, stamped: random.IntN(3) > 0, data: make([]byte, random.IntN(200))}
			if random.IntN(2) == 0 {
				v.rec.end.until = at.millis() + random.Int64N(window.Milliseconds()) - window.Milliseconds()/2
			}
		}
		b.put(v)
		forget, strip := b.tooMuch(at)
		over, marks, finals, bytes := remembered(b, at)
		r := &b.past.retention
		if int(r.marked+r.purged) != len(marks) || int(r.records) != len(finals) || r.bytes != bytes {
			t.Fatalf("step %d: %d tombstones, %d finals of %d bytes: want %d, %d, %d",
				step, r.marked+r.purged, r.records, r.bytes, len(marks), len(finals), bytes)
		}
		gone, room := map[job.ID]bool{}, map[job.ID]stripping{}
		for _, v := range forget {
			gone[v.id] = true
		}
		for _, s := range strip {
			room[s.view.id] = s
		}
		for _, id := range over {
			if !gone[id] {
				t.Fatalf("step %d: nothing of job %v is remembered, and it stays", step, id)
			}
		}
		for i, v := range marks {
			old, goes := i < len(marks)-most, room[v.id].mark || gone[v.id]
			whole := gone[v.id] && room[v.id].view == nil // with its final record
			if old != goes && !whole {
				t.Fatalf("step %d: tombstone %d of %d goes: %v", step, i, len(marks), goes)
			}
		}
		left := 0
		for _, v := range finals {
			if !room[v.id].final && !gone[v.id] {
				left++
			} else {
				bytes -= v.size
			}
		}
		if left > 8 || bytes > 700 {
			t.Fatalf("step %d: %d final records of %d bytes are left", step, left, bytes)
		}
	}
}

// BenchmarkTooMuch asks a board of many jobs, most of them open, what has to go.
func BenchmarkTooMuch(b *testing.B) {
	k := keeper(b, driver.BoardSpec{Window: time.Hour, MaxTombstones: 50_000})
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.instant().millis()
	for i := range 150_000 {
		v := &view{id: job.ID{byte(i), byte(i >> 8), byte(i >> 16)}, recZxid: 1, rec: &record{position: uint64(i + 1), changedAt: now}, node: "job"}
		if i%3 == 0 {
			v.node, v.rec.place, v.rec.end = "", ended, &ending{at: now, stamped: true}
		}
		k.put(v)
	}
	for b.Loop() {
		k.tooMuch(k.instant())
	}
}
