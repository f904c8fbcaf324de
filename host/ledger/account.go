package ledger

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Kind says what a limit bounds, and so what becomes of a server's share when it ends.
type Kind uint8

// The kinds of limits.
const (
	Rate Kind = iota // so much in a second: with the server ends what it could use
	Held             // so many at once, which end with their server
	Kept             // so many at once, which lie on boards and outlive their server
)

// Wish is what a server uses of one limit of a tenant.
type Wish struct {
	Name  string
	Kind  Kind
	Limit float64
	Use   float64 // what there is now; of a rate what was asked for in a second lately
	More  float64 // what was asked for beyond that and refused
	Still bool    // nothing was asked for lately, so that there is no need of room to grow
	Whole bool    // of a rate: until now the server let through what it was asked for without an account
}

// Part is what a server has of one limit. As JSON it is [kind, has, wants, uses]; servers of an
// earlier version write and read only the first three.
type Part struct {
	Kind       Kind
	Has, Wants float64

	// Uses is what there is on the server's boards, of a limit of the kind Kept. It is more
	// than Has while a board comes from another server, which gives it back when it has
	// closed the board: nobody else may take that then.
	Uses float64
}

// MarshalJSON writes the four numbers.
func (p Part) MarshalJSON() ([]byte, error) {
	return json.Marshal([4]float64{float64(p.Kind), p.Has, p.Wants, p.Uses})
}

// UnmarshalJSON reads three or four numbers.
func (p *Part) UnmarshalJSON(data []byte) error {
	var n [4]float64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	if n[0] != 0 && n[0] != 1 && n[0] != 2 || min(n[1], n[2], n[3]) < 0 {
		return job.Errorf(job.Invalid, "a part of a limit is %v; want its kind, 0 to 2, and three numbers that are not negative", n)
	}
	p.Kind, p.Has, p.Wants, p.Uses = Kind(n[0]), n[1], n[2], n[3]
	return nil
}

// Holder is a server that has a part of some limits of a tenant.
type Holder struct {
	Boot  string          `json:"boot"`           // of the server's run
	Turn  uint64          `json:"turn"`           // how often it has written this
	Left  bool            `json:"left,omitempty"` // it has ended, and only what lies on boards is still counted for it
	Parts map[string]Part `json:"parts"`          // by limit
}

// Account says which server has which part of the limits of one tenant. What all have
// together is never more than a limit: whoever takes more takes it of what nobody has,
// in one compare-and-set.
type Account struct {
	Holders []Holder `json:"holders"`

	// Pool is how much of each rate could be used at once now of what nobody has: whoever
	// takes a share gets no more with it, so that what was used at one server is not used
	// again at the next one.
	Pool map[string]float64 `json:"pool,omitempty"`
}

// Grant is what a server has of a limit after its turn.
type Grant struct {
	Name  string
	Kind  Kind
	Share float64
	Once  float64 // of a rate: how much of what the share grew by may be used at once
}

// others is what one server knows of how long the other ones have been silent.
type others map[string]time.Duration

// gone reports whether what a holder has may be given to others.
func (o others) gone(h *Holder, k Kind) bool {
	if h.Left {
		return k != Kept || o[h.Boot] >= keptFreeAfter
	}
	if k == Kept {
		return o[h.Boot] >= keptFreeAfter
	}
	return o[h.Boot] >= freeAfter
}

// dead reports whether a server that has counted the jobs on its boards may take what a
// holder has for them.
func (o others) dead(h *Holder) bool { return h.Left || o[h.Boot] >= freeAfter }

// situation is what a server knows as it takes its turn.
type situation struct {
	self    string
	silent  others
	servers int           // in the fleet
	since   time.Duration // how long ago the account was read or written: so long its pools have filled

	narrow func(name string, share float64) float64 // see Users.Narrow
}

// turn lets a server take what it needs and give what it does not, and returns the account
// after that and what the server has then.
func (a *Account) turn(s situation, wishes []Wish) (Account, []Grant) {
	self, silent := s.self, s.silent
	next := a.without(self, silent)
	mine := Holder{Boot: self, Turn: 1, Parts: map[string]Part{}}
	if before := a.holder(self); before != nil {
		mine.Turn = before.Turn + 1
	}
	grants := make([]Grant, 0, len(wishes))
	for _, w := range wishes {
		has := 0.0
		if before := a.holder(self); before != nil {
			has = before.Parts[w.Name].Has
		}
		rest := sumOf(next.Holders, w.Name)
		free := w.Limit - rest - has
		if w.Kind == Kept {
			free += next.inherit(w.Name, w.Use-has-max(0, free), silent)
		} else {
			free = max(0, free)
		}
		share := w.share(has, free, s.servers, partsOf(next.Holders, w.Name))
		g := Grant{Name: w.Name, Kind: w.Kind, Share: share}
		back := 0.0
		if share < has {
			back = s.narrow(w.Name, share)
		}
		if w.Kind != Rate { // what was let through a moment ago is not given to others
			share = max(share, min(back, has))
			g.Share = share
		} else {
			g.Once = next.draw(&w, rest+has, share-has, s.since)
			next.Pool[w.Name] = min(next.Pool[w.Name]+back, max(0, w.Limit-rest-share))
		}
		part := Part{Kind: w.Kind, Has: share, Wants: w.Use + w.More}
		if w.Kind == Kept {
			part.Uses = w.Use
		}
		mine.Parts[w.Name] = part
		grants = append(grants, g)
	}
	next.Holders = append(next.Holders, mine)
	return next, grants
}

// without returns a copy of the account without a server and without what those have who
// are gone.
func (a *Account) without(self string, silent others) Account {
	next := Account{Pool: map[string]float64{}}
	for i := range a.Holders {
		h := &a.Holders[i]
		if h.Boot == self {
			continue
		}
		kept := *h
		kept.Parts = maps.Clone(h.Parts)
		maps.DeleteFunc(kept.Parts, func(_ string, p Part) bool { return silent.gone(h, p.Kind) })
		if len(kept.Parts) > 0 {
			next.Holders = append(next.Holders, kept)
		}
	}
	maps.Copy(next.Pool, a.Pool)
	return next
}

func (a *Account) holder(boot string) *Holder {
	if i := slices.IndexFunc(a.Holders, func(h Holder) bool { return h.Boot == boot }); i >= 0 {
		return &a.Holders[i]
	}
	return nil
}

// sumOf is what the holders have of a limit together, or use of it.
func sumOf(holders []Holder, name string) (total float64) {
	for _, h := range holders {
		p := h.Parts[name]
		total += max(p.Has, p.Uses)
	}
	return total
}

// partsOf returns what each of the holders of a limit has of it.
func partsOf(holders []Holder, name string) (parts []Part) {
	for _, h := range holders {
		if p, ok := h.Parts[name]; ok {
			parts = append(parts, p)
		}
	}
	return parts
}

// share is what a server that has so much of a limit has after its turn, where so much is
// free and the others have these parts. Less than nothing is free where boards come to others.
// Room to grow has who does not keep another one short.
func (w *Wish) share(has, free float64, servers int, others []Part) float64 {
	want := w.Use + w.More
	var wants []float64
	spare, short := w.Limit-want, false
	for _, p := range others {
		wants = append(wants, p.Wants)
		spare -= p.Wants
		short = short || p.Wants > p.Has
	}
	target := want
	switch {
	case spare < 0:
		target = level(w.Limit, want, wants)
	case !w.Still && !short:
		target += spare / float64(max(1, servers, len(wants)+1))
	}
	if w.Kind == Rate {
		return max(0, min(target, has+free))
	}
	target = max(target, w.Use) // what is there is not taken away
	return max(0, math.Floor(max(min(target, has+free), min(w.Use, has))))
}

// level is what one of several has of a limit that is less than they want together: those
// that want little get it, and the others get the same.
func level(limit, mine float64, others []float64) float64 {
	all := slices.Sorted(slices.Values(append(slices.Clone(others), mine)))
	for i, want := range all {
		if each := limit / float64(len(all)-i); want > each {
			return min(mine, each)
		}
		limit -= want
	}
	return mine
}

// draw lets the pool of a rate fill, and takes out of it what goes with a share that grows.
// held is what all servers had until now.
func (a *Account) draw(w *Wish, held, growth float64, since time.Duration) float64 {
	pool, ok := a.Pool[w.Name]
	room := max(0, w.Limit-held)
	if !ok && held == 0 && !w.Whole {
		pool = room // nobody had anything of it for longer than it takes to fill
	}
	pool = min(room, pool+room*since.Seconds())
	once := max(0, min(growth, pool))
	a.Pool[w.Name] = pool - once
	return once
}

// inherit takes so much of what servers had that have ended: who asks has the jobs on its
// boards now that it stood for.
func (a *Account) inherit(name string, need float64, silent others) (got float64) {
	for i := range a.Holders {
		h := &a.Holders[i]
		if p := h.Parts[name]; need > got && silent.dead(h) {
			take := min(p.Has, need-got)
			p.Has -= take
			p.Wants, p.Uses = min(p.Wants, p.Has), min(p.Uses, p.Has)
			h.Parts[name] = p
			got += take
		}
	}
	return got
}

// leave returns the account without a server that ends. What lies on its boards is counted
// for it until the servers that have them then have counted it.
func (a *Account) leave(self string, silent others) Account {
	next := a.without(self, silent)
	before := a.holder(self)
	if before == nil {
		return next
	}
	left := Holder{Boot: self, Turn: before.Turn + 1, Left: true, Parts: maps.Clone(before.Parts)}
	maps.DeleteFunc(left.Parts, func(_ string, p Part) bool { return p.Kind != Kept || p.Has == 0 })
	if len(left.Parts) > 0 {
		next.Holders = append(next.Holders, left)
	}
	return next
}
