package index

import (
	"hash/maphash"
	"math/bits"

	"github.com/boardd/boardd/sdk/job"
)

// A directory finds rows by id. It is a hash table in parts, each grown by itself and by
// little, so that no pause grows with the board. It takes some 13 bytes a job, where a Go
// map of ids takes 45. Posters choose ids, so the hash is seeded. As long as there are few
// rows it is one part: most boards are small, and there are many of them.
type directory struct {
	rows  *slab[row]
	seed  maphash.Seed
	parts []part // one, or directoryParts
	len   int
}

const (
	directoryParts = 512
	onePart        = 256 // rows
)

// A part is open addressing with linear probing.
type part struct {
	slots []slot
	used  int
}

type slot struct {
	row  uint32 // 0: empty
	hash uint32
}

func (d *directory) init(rows *slab[row]) {
	d.rows, d.seed, d.parts = rows, maphash.MakeSeed(), make([]part, 1)
}

func (d *directory) hash(id job.ID) (*part, uint32) {
	h := maphash.Bytes(d.seed, id[:])
	return &d.parts[h&uint64(len(d.parts)-1)], uint32(h >> 32)
}

// home is where a hash would best be.
func (p *part) home(hash uint32) int {
	at, _ := bits.Mul64(uint64(hash)<<32, uint64(len(p.slots)))
	return int(at)
}

func (p *part) next(i int) int {
	if i++; i == len(p.slots) {
		return 0
	}
	return i
}

// find returns the row with the id, and where it stands in its part.
func (d *directory) find(id job.ID) (p *part, i int, h uint32) {
	p, hash := d.hash(id)
	if p.used == 0 {
		return p, 0, 0
	}
	for i = p.home(hash); p.slots[i].row != 0; i = p.next(i) {
		if s := p.slots[i]; s.hash == hash && d.rows.at(s.row).ID == id {
			return p, i, s.row
		}
	}
	return p, i, 0
}

func (d *directory) get(id job.ID) (uint32, bool) {
	_, _, h := d.find(id)
	return h, h != 0
}

// add enters a row whose id is not there.
func (d *directory) add(id job.ID, h uint32) {
	if len(d.parts) == 1 && d.len == onePart {
		d.divide()
	}
	d.enter(id, h)
	d.len++
}

func (d *directory) enter(id job.ID, h uint32) {
	p, hash := d.hash(id)
	if p.used+p.used/4 >= len(p.slots) {
		p.resize(p.used + p.used/2 + 8)
	}
	p.insert(slot{h, hash})
	p.used++
}

// divide makes the one part many, for good.
func (d *directory) divide() {
	few := d.parts[0].slots
	d.parts = make([]part, directoryParts)
	for _, s := range few {
		if s.row != 0 {
			d.enter(d.rows.at(s.row).ID, s.row)
		}
	}
}

func (p *part) insert(s slot) {
	i := p.home(s.hash)
	for p.slots[i].row != 0 {
		i = p.next(i)
	}
	p.slots[i] = s
}

func (p *part) resize(size int) {
	old := p.slots
	p.slots = make([]slot, size)
	for _, s := range old {
		if s.row != 0 {
			p.insert(s)
		}
	}
}

// drop takes the row with the id out.
func (d *directory) drop(id job.ID) {
	p, hole, h := d.find(id)
	if h == 0 {
		return
	}
	d.len--
	p.used--
	// Those behind move up, but none before its home.
	for i := p.next(hole); p.slots[i].row != 0; i = p.next(i) {
		if p.distance(i) >= p.span(hole, i) {
			p.slots[hole] = p.slots[i]
			hole = i
		}
	}
	p.slots[hole] = slot{}
	if len(p.slots) > 64 && p.used < len(p.slots)/4 {
		p.resize(p.used + p.used/2 + 8)
	}
}

// distance is how far the slot's content stands from its home.
func (p *part) distance(i int) int { return p.span(p.home(p.slots[i].hash), i) }

// span is the way from one slot to another.
func (p *part) span(from, to int) int {
	if to < from {
		return to - from + len(p.slots)
	}
	return to - from
}
