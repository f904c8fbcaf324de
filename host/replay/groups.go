package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// groups gather what a report says of all jobs and of each key.
type groups struct {
	report *Report
	sides  [2]*sim
	of     []int32 // group of each job
	names  map[string]int32
	list   []group
	all    group
}

type group struct {
	key   string
	jobs  int
	sides [2]Side
	waits [2][]time.Duration // of claims
}

func newGroups(r *Report, sides [2]*sim, by string, m *policy.Manifest) *groups {
	g := &groups{report: r, sides: sides, of: make([]int32, sides[0].eventLog.jobs), names: map[string]int32{}}
	first := make([]int32, len(g.of)) // description of each job
	for i := range first {
		first[i] = -1
	}
	for i := range sides[0].as {
		if n := sides[0].as[i].number; first[n] < 0 {
			first[n] = int32(i)
		}
	}
	for n, as := range first {
		if as < 0 { // it was over before the replay begins
			g.of[n] = -1
			continue
		}
		r.Jobs++
		key := keyOf(by, m, &sides[0].as[as])
		at, known := g.names[key]
		if !known {
			at = int32(len(g.list))
			g.names[key] = at
			g.list = append(g.list, group{key: key})
		}
		g.of[n] = at
		g.list[at].jobs++
	}
	return g
}

// side counts what one side made of the jobs.
func (g *groups) side(i int) {
	s := g.sides[i]
	g.all.sides[i].Errors = s.errors
	for _, c := range s.served {
		if c.job < 0 {
			g.all.sides[i].Empty++
			continue
		}
		g.wait(i, c.job, time.Duration(c.wait), true)
	}
	for n := range s.jobs {
		if j := &s.jobs[n]; j.place == open {
			g.wait(i, int32(n), time.Duration(max(0, s.to-j.since)), false)
		}
	}
}

// wait counts one wait of a job, which ended with a claim or with the recording.
func (g *groups) wait(i int, n int32, wait time.Duration, claimed bool) {
	of := []*group{&g.all}
	if g.of[n] >= 0 {
		of = append(of, &g.list[g.of[n]])
	}
	starves := wait > g.report.StarvedAfter
	for _, group := range of {
		side := &group.sides[i]
		if claimed {
			side.Claimed++
			group.waits[i] = append(group.waits[i], wait)
		} else {
			side.Left++
		}
		if starves {
			side.Starved++
		}
		side.WaitMost = max(side.WaitMost, wait)
	}
	if starves && i == 1 {
		key := ""
		if g.of[n] >= 0 {
			key = g.list[g.of[n]].key
		}
		s := g.sides[i]
		g.report.Starved = append(g.report.Starved, Starved{ID: s.as[s.jobs[n].as].order.ID, Key: key, Wait: wait, Claimed: claimed})
	}
}

// finish fills the report.
func (g *groups) finish() {
	r := g.report
	slices.SortFunc(g.list, func(a, b group) int { return cmp.Or(cmp.Compare(b.jobs, a.jobs), cmp.Compare(a.key, b.key)) })
	if len(g.list) > MaxKeys {
		rest := group{key: Others}
		for i := range g.list[MaxKeys:] {
			rest.add(&g.list[MaxKeys+i])
		}
		g.list = append(g.list[:MaxKeys], rest)
	}
	g.all.quantiles()
	r.Present, r.Candidate = g.all.sides[0], g.all.sides[1]
	for i := range g.list {
		l := &g.list[i]
		l.quantiles()
		r.Keys = append(r.Keys, Key{Key: l.key, Jobs: l.jobs, Present: l.sides[0], Candidate: l.sides[1]})
	}
	slices.SortFunc(r.Starved, func(a, b Starved) int {
		return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(string(a.ID[:]), string(b.ID[:])))
	})
	r.Starved = r.Starved[:min(len(r.Starved), MaxStarved)]
}

// add adds another group's jobs.
func (g *group) add(other *group) {
	g.jobs += other.jobs
	for i := range g.sides {
		a, b := &g.sides[i], &other.sides[i]
		a.Claimed += b.Claimed
		a.Left += b.Left
		a.Starved += b.Starved
		a.WaitMost = max(a.WaitMost, b.WaitMost)
		g.waits[i] = append(g.waits[i], other.waits[i]...)
	}
}

func (g *group) quantiles() {
	for i := range g.sides {
		slices.Sort(g.waits[i])
		g.sides[i].WaitP50, g.sides[i].WaitP99 = quantile(g.waits[i], 0.5), quantile(g.waits[i], 0.99)
	}
}

// quantile returns the smallest of sorted values that so large a part of them does
// not exceed; 0 of none.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}
