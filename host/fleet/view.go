package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// View is what one server knows of the others. Silence counts only as far as this server
// could have heard: Observe is called for looks into the store that succeeded, after this
// server's own word went through, and a pause between two looks counts for MostSilence at
// most. So a server that was stopped, or whose store was silent, takes nobody for gone.
//
// Where several servers that are half of them or more fall silent together without having
// said that they leave, it is rather something between them and the store: then nobody is
// taken for gone, and callers find out by themselves whom they reach. One alone is taken for
// gone also where there are but two. The zero value knows nobody.
type View struct {
	last    time.Time // of the last look
	looked  bool
	members map[string]*member
}

// member is what is known of one server.
type member struct {
	word   Word
	silent time.Duration // that counts, since its last word
	live   bool
	beats  int           // words that were heard since it was not live
	was    bool          // it was live before
	flaps  int           // how often it was gone
	back   time.Duration // how long it has been heard again since it was gone
	steady time.Duration // how long it has been live
}

// Observe takes the words that were read at a moment of this server's own clock. left are
// the runs of servers that somebody else has said to be drained, by their Boot.
func (v *View) Observe(now time.Time, words []Word, drained map[string]bool) {
	var step time.Duration
	if v.looked {
		step = min(max(now.Sub(v.last), 0), MostSilence)
	}
	v.last, v.looked = now, true
	if v.members == nil {
		v.members = map[string]*member{}
	}
	heard := map[string]bool{}
	for _, w := range words {
		if drained[w.Boot] && w.State != Left {
			w.State = Draining
		}
		m := v.members[w.ID]
		if m == nil {
			v.members[w.ID] = &member{word: w, beats: 1}
			heard[w.ID] = true
			continue
		}
		if w.Boot != m.word.Boot || w.Beat != m.word.Beat {
			heard[w.ID] = true
			m.silent = 0
			m.beats++
		}
		m.word = w
	}
	for id, m := range v.members {
		if !heard[id] {
			m.silent += step
		}
		v.advance(m, heard[id], step)
		if !m.live && m.silent >= forgetAfter {
			delete(v.members, id)
		}
	}
	v.bury()
}

// advance lets time pass for one server, and counts it as live when it is time.
func (v *View) advance(m *member, heard bool, step time.Duration) {
	switch {
	case m.live:
		if m.steady += step; m.flaps > 0 && m.steady >= 10*m.wait() {
			m.flaps = 0
		}
	case m.word.State == Left || m.silent >= GoneAfter:
		m.beats, m.back = 0, 0
	case !m.was || m.flaps == 0: // two words, so that what a dead one left behind is none
		m.live = heard && m.beats >= 2
	default:
		if m.back += step; heard && m.back >= m.wait() {
			m.live = true
		}
	}
	if m.live {
		m.was = true
	}
}

// wait is how long a server that was gone is to be heard before it counts.
func (m *member) wait() time.Duration {
	wait := FirstWait
	for range m.flaps - 1 {
		if wait *= 2; wait >= MostWait {
			return MostWait
		}
	}
	return wait
}

// bury takes those for gone that are silent, unless they are too many at once. Who said
// that it leaves, is gone when it has.
func (v *View) bury() {
	live, vanishing := 0, 0
	var silent []*member
	for _, m := range v.members {
		switch {
		case !m.live:
		case m.word.State == Left || m.word.State == Draining && m.silent >= GoneAfter:
			m.rest()
		default:
			live++
			if m.silent >= GoneAfter-MostSilence { // those that fell silent with others spoke last at different moments
				vanishing++
			}
			if m.silent >= GoneAfter {
				silent = append(silent, m)
			}
		}
	}
	if vanishing > 1 && 2*vanishing >= live {
		return
	}
	for _, m := range silent {
		m.rest()
		m.flaps++
	}
}

// rest makes a server one that is not live.
func (m *member) rest() { m.live, m.beats, m.back, m.steady = false, 0, 0, 0 }

// Seen is what is known of a server.
type Seen struct {
	Word
	Silent time.Duration // that counts, since its last word
	Live   bool
}

// Known reports whether the fleet was looked at often enough to know who lives: a server
// that does not know yet has heard of nobody twice.
func (v *View) Known(self string) bool { m := v.members[self]; return m != nil && m.was }

// Servers returns all servers that are known, by Advertise, and of those with the same one
// only that whose run began last.
func (v *View) Servers() []Seen {
	by := map[string]Seen{}
	for _, m := range v.members {
		s := Seen{Word: m.word, Silent: m.silent, Live: m.live}
		before, twice := by[s.Advertise]
		if !twice || s.Live && !before.Live || s.Live == before.Live && s.Since.After(before.Since) {
			by[s.Advertise] = s
		}
	}
	return slices.SortedFunc(maps.Values(by), func(a, b Seen) int { return cmp.Compare(a.Advertise, b.Advertise) })
}
