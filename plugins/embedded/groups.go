package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// What groups count stands in the board's memory beside what limits count. Limits are
// counted anew at open, from the jobs; of a group most jobs are gone by then, so that its
// counters have a table, which a transaction writes once for each that it has moved.

// tally answers with what a group counts.
func (v *boardTx) tally(op *driver.Op) driver.Result {
	moves, r := transition.Count(op, v.limit)
	v.move(moves)
	return r
}

// stand counts where a group's job stands after a plan.
func (v *boardTx) stand(plan *transition.Plan, j *jobRecord) {
	_ = eachLimit(j.limits, func(key []byte, _ int64) { // checked when it was decoded
		if transition.OfGroup(string(key)) {
			from, to := plan.Standings()
			v.move(transition.Moves(nil).Group([]driver.Limit{{Key: string(key)}}, from, to))
		}
	})
}

func (v *boardTx) move(moves transition.Moves) {
	if len(moves) > 0 && v.limits == nil {
		v.limits = map[string]int64{}
	}
	for _, m := range moves {
		v.limits[m.Key] += m.By
		v.touched = true
	}
}

// writeGroups writes the counters of groups that were moved.
func (v *boardTx) writeGroups() {
	for key, by := range v.limits {
		switch {
		case by == 0 || !transition.OfGroup(key):
		case v.limit(key) == 0:
			v.delete(inGroups, []byte(key))
		default:
			v.put(inGroups, kindGroup, []byte(key), binary.MaxVarintLen64, func(b []byte) []byte {
				return binary.AppendVarint(b, v.limit(key))
			})
		}
	}
}

func (b *board) loadGroup(key, value []byte) error {
	body, err := unseal(kindGroup, key, value)
	if err != nil {
		return err
	}
	n, size := binary.Varint(body)
	if size != len(body) || !transition.OfGroup(string(key)) {
		return fmt.Errorf("it is no count of a group")
	}
	b.limits[string(key)] = n
	return nil
}
