package index

import "github.com/tidwall/btree"

// pivot is the handle of a row that is no job: a place in the order to search from. See
// Index.after.
const pivot = 0

// An ordered is a set of rows in claim order. A row's order must not change
// while it is in one.
type ordered struct {
	tree *btree.BTreeG[uint32]
	hint btree.PathHint
}

func orderedBy(less func(a, b uint32) bool) *ordered {
	return &ordered{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

func (o *ordered) add(h uint32)        { o.tree.SetHint(h, &o.hint) }
func (o *ordered) drop(h uint32)       { o.tree.DeleteHint(h, &o.hint) }
func (o *ordered) len() int            { return o.tree.Len() }
func (o *ordered) min() (uint32, bool) { return o.tree.Min() }

// from calls visit for each row that does not come before the given one, until
// it returns false. Nothing is added or dropped meanwhile.
func (o *ordered) from(h uint32, visit func(h uint32) bool) { o.tree.Ascend(h, visit) }

// before returns how many rows of the set come before the given one.
func (o *ordered) before(h uint32) int {
	low, high := 0, o.tree.Len()
	for low < high {
		mid := int(uint(low+high) >> 1)
		if at, _ := o.tree.GetAt(mid); o.tree.Less(at, h) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
