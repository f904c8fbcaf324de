package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
)

const (
	kept = 16 // promotions of a policy that a board can be taken back to

	// mostDeployed is how many ways in which a board's promotions may have gone are told
	// apart. Where there are more, everything may be in force.
	mostDeployed = 4096
)

// deployments is what one board was given: between the answer of each call that changes
// that and the begin of the next one, which rules may have been in force.
type deployments struct {
	calls  []history.PolicyCall
	rules  map[int64]history.Rule // by their numbers; 0 is the board's own
	stages []map[int64]bool       // one more than calls; nil: any rule
}

// deployed is one way in which a board's promotions may have gone.
type deployed struct {
	rules   [kept]int64     // the one in force first, 0 behind the last
	waiting [kept * 2]int16 // calls of which nobody was told, and which may still take effect, each plus 1
}

// follow returns the deployments of a board. Its promotions were made by one client, one
// after the other.
func follow(h *history.History, board string) (d *deployments, problems []Problem) {
	d = &deployments{rules: map[int64]history.Rule{0: {}}}
	for _, c := range h.Policies {
		if c.Board == board && (c.Call == history.Promote || c.Call == history.Rollback) {
			d.calls = append(d.calls, c)
			d.rules[c.Rule.Serial] = c.Rule
		}
	}
	d.rules[0] = history.Rule{}
	slices.SortFunc(d.calls, func(a, b history.PolicyCall) int { return int(a.From - b.From) })
	ways := d.unfold(map[deployed]bool{{}: true})
	d.stages = append(d.stages, inForce(ways))
	for n, c := range d.calls {
		next := d.after(ways, n)
		if len(next) == 0 && ways != nil {
			problems = append(problems, Problem{Text: fmt.Sprintf("%s of rule %d by %s was answered at %v with rule %d in force, which cannot be", c.Call, c.Rule.Serial, c.Server, c.End, c.Shown)})
			next = map[deployed]bool{}
		}
		if len(next) == 0 {
			next = nil
		}
		ways = d.unfold(next)
		d.stages = append(d.stages, inForce(ways))
	}
	return d, problems
}

// after returns the ways that the n-th call leaves possible, none if its answer was
// impossible.
func (d *deployments) after(ways map[deployed]bool, n int) map[deployed]bool {
	next := map[deployed]bool{}
	for w := range ways {
		switch d.calls[n].Outcome {
		case history.Refused:
			next[w] = true
		case history.Unknown:
			if !w.wait(n) {
				return nil
			}
			next[w] = true
		case history.Done:
			if w, ok := w.by(d.calls[n]); ok && w.rules[0] == d.calls[n].Shown {
				next[w] = true
			}
		}
	}
	return next
}

// unfold adds the ways in which calls of which nobody was told take effect.
func (d *deployments) unfold(ways map[deployed]bool) map[deployed]bool {
	left := slices.Collect(maps.Keys(ways))
	for len(left) > 0 {
		w := left[len(left)-1]
		left = left[:len(left)-1]
		for i, n := range w.waiting {
			if n == 0 {
				continue
			}
			next, ok := w.by(d.calls[n-1])
			next.waiting[i] = 0
			if ok && !ways[next] {
				ways[next] = true
				left = append(left, next)
			}
		}
		if len(ways) > mostDeployed {
			return nil
		}
	}
	return ways
}

// by is the way after a call was carried out, and whether it can have been.
func (w deployed) by(c history.PolicyCall) (deployed, bool) {
	if c.Call == history.Promote {
		copy(w.rules[1:], w.rules[:kept-1])
		w.rules[0] = c.Rule.Serial
		return w, true
	}
	if w.rules[0] == 0 {
		return w, false
	}
	copy(w.rules[:], w.rules[1:])
	w.rules[kept-1] = 0
	return w, true
}

// wait adds a call that may take effect at any time from now on, and reports whether there
// was room for it.
func (w *deployed) wait(n int) bool {
	i := slices.Index(w.waiting[:], 0)
	if i >= 0 {
		w.waiting[i] = int16(n + 1)
	}
	return i >= 0
}

// inForce returns the numbers of the rules that may be in force, nil if all may.
func inForce(ways map[deployed]bool) map[int64]bool {
	if ways == nil {
		return nil
	}
	rules := map[int64]bool{}
	for w := range ways {
		rules[w.rules[0]] = true
	}
	return rules
}

// during returns the rules that a server may have gone by at some time of a call. Once a
// server has acknowledged a change it goes by that or by a later one; what another server
// has acknowledged may reach it later. Of one that is not known any may be behind.
func (d *deployments) during(server string, from, to int64) (rules []history.Rule, known bool) {
	first, last := 0, 0
	for n, c := range d.calls {
		if c.Outcome == history.Done && c.To < from && server == c.Server {
			first = n + 1
		}
		if c.From < to {
			last = n + 1
		}
	}
	return d.of(first, max(first, last))
}

// final returns the rules that may be in force when everything has come to rest, on every
// server.
func (d *deployments) final() (rules []history.Rule, known bool) {
	return d.of(len(d.calls), len(d.calls))
}

func (d *deployments) of(first, last int) (rules []history.Rule, known bool) {
	all := map[int64]bool{}
	for _, stage := range d.stages[first : last+1] {
		if stage == nil {
			return nil, false
		}
		maps.Copy(all, stage)
	}
	for _, serial := range slices.Sorted(maps.Keys(all)) {
		rules = append(rules, d.rules[serial])
	}
	return rules, true
}
