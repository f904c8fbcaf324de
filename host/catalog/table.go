package catalog

import (
	"iter"
	"sync"

	"github.com/tidwall/btree"
)

// Table is records by key, in the order of their keys. A copy of it takes the same time
// whatever it holds: what is changed afterwards is copied then, and the rest is shared. The
// zero value holds nothing, and nothing can be put into it. Any number of goroutines may read
// a table that nobody changes any more. The tree has pointers to the records: its nodes, which
// are half empty, and which a change copies, would be ten times as large with them inside.
type Table[K, T any] struct {
	tree    *btree.BTreeG[row[K, T]]
	copying *sync.Mutex // held while the tree is copied, which readers of it do not notice
}

type row[K, T any] struct {
	key   K
	value *T
}

func newTable[K, T any](compare func(a, b K) int) Table[K, T] {
	less := func(a, b row[K, T]) bool { return compare(a.key, b.key) < 0 }
	return Table[K, T]{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), copying: &sync.Mutex{}}
}

// Get returns the record of a key, and whether there is one.
func (t Table[K, T]) Get(key K) (found T, ok bool) {
	if at := t.Ref(key); at != nil {
		return *at, true
	}
	return found, false
}

// Ref returns the record of a key as the table has it, which is not to be changed; nil: there is
// none.
func (t Table[K, T]) Ref(key K) *T {
	if t.tree == nil {
		return nil
	}
	found, _ := t.tree.Get(row[K, T]{key: key})
	return found.value
}

// Len returns how many records there are.
func (t Table[K, T]) Len() int {
	if t.tree == nil {
		return 0
	}
	return t.tree.Len()
}

// All goes through the records in the order of their keys.
func (t Table[K, T]) All() iter.Seq2[K, T] {
	return func(yield func(K, T) bool) {
		if t.tree != nil {
			t.tree.Scan(func(r row[K, T]) bool { return yield(r.key, *r.value) })
		}
	}
}

// from goes through the records from a key on, in their order. What comes before is not
// looked at.
func (t Table[K, T]) from(key K) iter.Seq2[K, T] {
	return func(yield func(K, T) bool) {
		if t.tree != nil {
			t.tree.Ascend(row[K, T]{key: key}, func(r row[K, T]) bool { return yield(r.key, *r.value) })
		}
	}
}

// After is from without the key itself.
func (t Table[K, T]) After(key K) iter.Seq2[K, T] {
	return func(yield func(K, T) bool) {
		for at, value := range t.from(key) {
			if t.tree.Less(row[K, T]{key: key}, row[K, T]{key: at}) && !yield(at, value) {
				return
			}
		}
	}
}

func (t Table[K, T]) put(key K, value T) { t.tree.Set(row[K, T]{key, &value}) }

func (t Table[K, T]) drop(key K) { t.tree.Delete(row[K, T]{key: key}) }

func (t Table[K, T]) clone() Table[K, T] {
	t.copying.Lock()
	defer t.copying.Unlock()
	return Table[K, T]{tree: t.tree.Copy(), copying: &sync.Mutex{}}
}
