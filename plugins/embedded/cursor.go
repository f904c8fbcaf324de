package embedded

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// A cursor goes through a table: through the file and the memtables over it, of
// which the newest that knows a key is right. It is moved by first, seek and
// then next, or by last, before and then prev. What changes in the table while
// it stands is seen after the next first, seek, last or before.
type cursor struct {
	table *table
	over  [2]layerSide
	below *bbolt.Cursor // nil where the file has no such table

	key, value []byte // the next of the file; a nil key: there is none
	back       bool
}

// layerSide is one memtable as the cursor sees it.
type layerSide struct {
	memtable *memtable // nil: there is none
	next     cell      // without a key: there is no further one
}

func (t *table) cursor() *cursor {
	c := &cursor{table: t}
	c.over[0].memtable, c.over[1].memtable = t.in.over.recent, t.in.over.frozen
	if b := t.below(); b != nil {
		c.below = b.Cursor()
	}
	return c
}

func (c *cursor) first() (key, value []byte) { return c.seek(nil) }

// seek moves to the first key that is not before the given one.
func (c *cursor) seek(from []byte) (key, value []byte) {
	c.back = false
	for i := range c.over {
		c.over[i].ascend(c.table.place, from, false)
	}
	c.key, c.value = nil, nil
	if c.below != nil {
		if len(from) == 0 {
			c.key, c.value = c.below.First()
		} else {
			c.key, c.value = c.below.Seek(from)
		}
	}
	return c.next()
}

// seekAfter moves to the first key behind the given one; nil is before all.
func (c *cursor) seekAfter(after []byte) (key, value []byte) {
	key, value = c.seek(after)
	if key != nil && bytes.Equal(key, after) {
		return c.next()
	}
	return key, value
}

// last moves to the last key.
func (c *cursor) last() (key, value []byte) { return c.before(nil) }

// before moves to the last key before the given one; nil is behind all.
func (c *cursor) before(end []byte) (key, value []byte) {
	c.back = true
	for i := range c.over {
		c.over[i].descend(c.table.place, end)
	}
	c.key, c.value = nil, nil
	if c.below != nil {
		behind := end == nil
		if !behind {
			k, _ := c.below.Seek(end)
			behind = k == nil
		}
		if behind {
			c.key, c.value = c.below.Last()
		} else {
			c.key, c.value = c.below.Prev()
		}
	}
	return c.prev()
}

func (c *cursor) next() (key, value []byte) { return c.step() }

func (c *cursor) prev() (key, value []byte) { return c.step() }

// step takes the nearest key of all sides, and passes over those that were taken
// away.
func (c *cursor) step() (key, value []byte) {
	for {
		key, value = c.key, c.value
		gone := false
		for i := len(c.over) - 1; i >= 0; i-- { // the newest comes last, and has the last word
			side := &c.over[i]
			if side.next.key == nil {
				continue
			}
			name := side.next.name()
			if order := bytes.Compare(name, key); key == nil || order == 0 || (order < 0) != c.back {
				key, value, gone = name, side.next.value, side.next.gone
			}
		}
		if key == nil {
			return nil, nil
		}
		c.pass(key)
		if !gone {
			return key, value
		}
	}
}

// pass moves every side that stands at key.
func (c *cursor) pass(key []byte) {
	for i := range c.over {
		side := &c.over[i]
		if side.next.key == nil || !bytes.Equal(side.next.name(), key) {
			continue
		}
		if c.back {
			side.descend(c.table.place, key)
		} else {
			side.ascend(c.table.place, key, true)
		}
	}
	switch {
	case c.key == nil || !bytes.Equal(c.key, key):
	case c.back:
		c.key, c.value = c.below.Prev()
	default:
		c.key, c.value = c.below.Next()
	}
}

// ascend finds the first cell of the place whose key is not before from, or, with
// after, behind it.
func (s *layerSide) ascend(p tableID, from []byte, after bool) {
	s.next = cell{}
	if s.memtable == nil {
		return
	}
	pivot := append(append(make([]byte, 0, len(p)+len(from)), p[:]...), from...)
	s.memtable.Ascend(cell{key: pivot}, func(c cell) bool {
		if after && bytes.Equal(c.key, pivot) {
			return true
		}
		if c.place() == p {
			s.next = c
		}
		return false
	})
}

// descend finds the last cell of the place whose key is before end; nil is
// behind all.
func (s *layerSide) descend(p tableID, end []byte) {
	s.next = cell{}
	if s.memtable == nil {
		return
	}
	pivot := append(append(make([]byte, 0, len(p)+len(end)), p[:]...), end...)
	if end == nil {
		pivot = keyAfter(p)
	}
	s.memtable.Descend(cell{key: pivot}, func(c cell) bool {
		if bytes.Equal(c.key, pivot) {
			return true
		}
		if c.place() == p {
			s.next = c
		}
		return false
	})
}

// keyAfter returns a key behind all of a place.
func keyAfter(p tableID) []byte {
	next := newTableID(p.board(), p.bucket()+1)
	return next[:]
}
