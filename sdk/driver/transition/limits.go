package transition

import (
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
)

// A Move is by how much an op moves the counter of a limit.
type Move struct {
	Key string
	By  int64
}

// Moves are those of one op, in the order of their keys, each key once. A move of 0 is
// not left out: its counter may not be above the limit either.
type Moves []Move

// Add adds to the move of a key.
func (m Moves) Add(key string, by int64) Moves {
	i, there := slices.BinarySearchFunc(m, key, func(one Move, key string) int { return strings.Compare(one.Key, key) })
	if !there {
		m = slices.Insert(m, i, Move{Key: key})
	}
	m[i].By += by
	return m
}

// Limits adds what limits count, times sign.
func (m Moves) Limits(list []driver.Limit, sign int64) Moves {
	for i := range list {
		m = m.Add(list[i].Key, sign*Weight(&list[i]))
	}
	return m
}

// Weight is what a limit counts: a weight of 0 counts as 1.
func Weight(l *driver.Limit) int64 {
	if l.Weight == 0 {
		return 1
	}
	return l.Weight
}

// Moves returns by how much the plan moves which counters. posting is what the job
// counts while it is on the board, claim what its present claim counts.
func (p *Plan) Moves(posting, claim []driver.Limit) Moves {
	var m Moves
	if p.Counts != 0 {
		m = m.Limits(posting, p.Counts)
	}
	if from, to := p.Standings(); from != to {
		m = m.Group(posting, from, to)
	}
	if p.Emptied != "" {
		m = m.Add(GroupKey(p.Emptied, Open), Closed)
	}
	if p.EndsClaim {
		m = m.Limits(claim, -1)
	}
	if p.Do == driver.Claim {
		m = m.Limits(p.Within, 1)
	}
	return m
}

// Room returns the key of the first limit that would be above its Max after the
// moves; "": there is room. sums returns the present count of a key.
func Room(within []driver.Limit, moves Moves, sums func(key string) int64) string {
	for i := range within {
		sum := sums(within[i].Key)
		for _, m := range moves {
			if m.Key == within[i].Key {
				sum += m.By
			}
		}
		if sum > within[i].Max {
			return within[i].Key
		}
	}
	return ""
}
