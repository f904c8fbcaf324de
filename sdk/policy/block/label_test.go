package block_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

// reader is a machine that reads the jobs' labels, and scores each with 1.
type reader struct {
	idle

	tables [][]job.Label
}

func (r *reader) Borrow(context.Context) (block.Seat, error) { return r, nil }

func (r *reader) Call(_ context.Context, _ abi.Call, total int) error {
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(r.room[at:])) }
	for i := range u32(abi.HCount) {
		record := u32(abi.HRecords) + i*abi.JobSize
		table := r.room[:total][u32(record+abi.JLabels):][:u32(record+abi.JLabels+4)]
		var labels []job.Label
		for len(table) > 0 {
			k, v := int(binary.LittleEndian.Uint16(table)), int(binary.LittleEndian.Uint16(table[2:]))
			labels = append(labels, job.Label{Key: string(table[4 : 4+k]), Value: string(table[4+k : 4+k+v])})
			table = table[4+k+v:]
		}
		r.tables = append(r.tables, labels)
	}
	return nil
}

// Keys and values of all lengths arrive, also where many keys share one place, and
// whatever room there is.
func TestLabels(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0123456789abcdef", 5)
	text := func(n int) string { return whole[:n] } // different texts that begin at the same place
	batch := &policy.Batch{Jobs: []policy.Job{{Labels: []job.Label{{}}}}}
	want := [][]job.Label{{{}}}
	for key := range 20 {
		for value := range 70 {
			var labels, shown []job.Label
			for i := range 12 {
				l := job.Label{Key: fmt.Sprint("abc"[i%3:i%3+1], i, text(key)), Value: text((value + i) % 70)}
				if labels = append(labels, l); l.Key[0] != 'b' {
					shown = append(shown, l)
				}
			}
			labels = append(labels, job.Label{Key: text(key), Value: text(value)})
			if key <= 1 { // "" and "0"
				shown = append(shown, labels[12])
			}
			batch.Jobs, want = append(batch.Jobs, policy.Job{Labels: labels}), append(want, shown)
		}
	}
	m := policy.Manifest{Ordering: true, Labels: []string{"a*", "c*", "", "0"}}
	for _, room := range []int{abi.MaxBlock, 30_000, 3_001, 3_010, 3_013} {
		machine := &reader{idle: idle{slices.Repeat([]byte{0xff}, room)}}
		r, err := block.New(m, nil, machine)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Score(t.Context(), batch, make([]int64, len(batch.Jobs))); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, machine.tables) {
			t.Fatalf("a room of %d bytes: %s", room, cmp.Diff(want, machine.tables))
		}
	}
}
