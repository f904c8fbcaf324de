package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Bounds of a report.
const (
	MaxKeys    = 100 // groups of jobs with most jobs; those of all others are one
	MaxStarved = 20  // jobs that waited longest
	MaxLost    = 20  // spans of time in which claims were not recorded; later ones lengthen the last
)

// Others is the key that stands for all groups beyond MaxKeys.
const Others = "(others)"

// Options say what a report is to show. The zero value is fine.
type Options struct {
	From         time.Time     // nothing before it counts; zero: all of the recording
	By           string        // label:KEY, priority or name; empty: what an order by counts goes by, or else name
	StarvedAfter time.Duration // a job that waits longer starves; 0: a quarter of the recording's time
}

// Report is how two sides differ: what the board asks now, and what it might.
type Report struct {
	From, Until  time.Time
	Gaps         int // places at which the recording does not go on where it was
	Jobs         int
	Claims       int // that were gone through
	Unasked      int // of those: by somebody of whom nothing is known, or of a chosen job: both sides give that job
	AsRecorded   int // of those: what the board asks now gives the job that it gave then
	Differ       int // the sides give different jobs
	Earlier      int // jobs that the candidate serves before others that went first
	Later        int
	LargestShift int // how many claims earlier or later at most
	By           string
	StarvedAfter time.Duration
	Present      Side
	Candidate    Side
	Keys         []Key
	Starved      []Starved // by the candidate, the longest wait first
	Missing      []string  // facts that a policy reads and that were not recorded of some job
	Lost         []Lost    // claims that were not recorded, and when they were
	Inexact      []string  // what is not known, so that the present side may not be what happened
}

// Lost is claims that were made on the board and that the recording lacks.
type Lost struct {
	From, Until time.Time
	Claims      int64
}

// NotRecorded says in sentences what the recording lacks: claims, facts, and what it
// would take to say exactly what happened.
func (r *Report) NotRecorded() []string {
	list := slices.Clone(r.Missing)
	for _, l := range r.Lost {
		list = append(list, fmt.Sprintf("%d claims from %s to %s", l.Claims, l.From.Format(time.RFC3339), l.Until.Format(time.RFC3339)))
	}
	return append(list, r.Inexact...)
}

// Side is what one set of policies made of the recording, or of one group of its
// jobs.
type Side struct {
	Claimed  int // claims that were given a job
	Empty    int // claims for which there was none; 0 in a group
	Left     int // jobs that could be claimed when the recording ended, and were not
	Starved  int // claimed or not
	Errors   int64
	WaitP50  time.Duration // of those that were claimed
	WaitP99  time.Duration
	WaitMost time.Duration // of all
}

// Key is a group of jobs.
type Key struct {
	Key       string
	Jobs      int
	Present   Side
	Candidate Side
}

// Starved is a job that waited too long.
type Starved struct {
	ID      job.ID
	Key     string
	Wait    time.Duration
	Claimed bool // in the end
}

// Run goes through a recording with both sets of policies.
func Run(ctx context.Context, lines iter.Seq2[recording.Line, error], present, candidate board.Rules, o Options) (*Report, error) {
	t, err := read(lines, o.From)
	if err != nil {
		return nil, err
	}
	described := len(t.as)
	var sides [2]*sim
	for i, rules := range []board.Rules{present, candidate} {
		t.as = t.as[:described:described]
		sides[i] = newSim(t.clone(), rules)
		if err := sides[i].run(ctx); err != nil {
			return nil, err
		}
	}
	r := &Report{
		From: time.Unix(0, t.from).UTC(), Until: time.Unix(0, t.to).UTC(), Gaps: t.gaps, Claims: t.slots, Unasked: t.skipped,
		StarvedAfter: cmp.Or(o.StarvedAfter, max(time.Duration(t.to-t.from)/4, 1)),
	}
	by, m, err := groupBy(o.By, sides)
	if err != nil {
		return nil, err
	}
	r.By = by
	r.compare(sides)
	g := newGroups(r, sides, by, m)
	for i := range sides {
		g.side(i)
	}
	g.finish()
	r.Missing = missing(sides)
	r.Lost = t.lost
	r.Inexact = sides[0].inexact()
	return r, nil
}

// clone is the tape for one more side: a side may add descriptions.
func (t *eventLog) clone() *eventLog {
	c := *t
	return &c
}

// groupBy returns what the jobs are grouped by.
func groupBy(by string, sides [2]*sim) (string, *policy.Manifest, error) {
	kind, name, named := strings.Cut(by, ":")
	switch {
	case by == "name", by == "priority", kind == "label" && name != "" && named:
		return by, nil, nil
	case by != "":
		return "", nil, job.Errorf(job.Invalid, "by: %.80q: want label:KEY, priority or name", by)
	}
	for _, s := range []*sim{sides[1], sides[0]} {
		if s.counts != nil {
			return s.ordering.manifest.Counts, &s.ordering.manifest, nil
		}
	}
	return "name", nil, nil
}

// compare counts the claims that got different jobs, and how far jobs moved.
func (r *Report) compare(sides [2]*sim) {
	recorded := make([]int32, len(sides[0].served))
	for i := range sides[0].events {
		if e := &sides[0].events[i]; e.kind == claims {
			recorded[e.slot] = e.job
		}
	}
	first := [2]map[int32]int{{}, {}}
	for slot := range recorded {
		a, b := sides[0].served[slot].job, sides[1].served[slot].job
		if a == recorded[slot] {
			r.AsRecorded++
		}
		if a != b {
			r.Differ++
		}
		for i, n := range []int32{a, b} {
			if _, known := first[i][n]; !known && n >= 0 {
				first[i][n] = slot
			}
		}
	}
	for n, before := range first[0] {
		after, ok := first[1][n]
		switch {
		case !ok:
		case after < before:
			r.Earlier++
			r.LargestShift = max(r.LargestShift, before-after)
		case after > before:
			r.Later++
			r.LargestShift = max(r.LargestShift, after-before)
		}
	}
}

// inexact says what is not known, apart from gaps and from what is missing, of how the
// board decided.
func (s *sim) inexact() (list []string) {
	byTime := slices.ContainsFunc(s.all(), func(r *rule) bool { return r.manifest.ByTime })
	if n := s.timeless; n > 0 && (byTime || s.counts != nil) {
		list = append(list, fmt.Sprintf("%d claims were recorded by an earlier version, which did not say when they were decided: they count as decided when they were granted", n))
	}
	if s.swapped > 0 {
		list = append(list, fmt.Sprintf("%d claims were decided at the same time as others: they are gone through in the order in which the store granted them", s.swapped))
	}
	if s.counts != nil && s.claimed > 0 {
		list = append(list, fmt.Sprintf("%d jobs were claimed before: how many of each key were, and what keys had been served by then, is not known", s.claimed))
	}
	if s.counts != nil && s.counts.crowded > 0 {
		list = append(list, fmt.Sprintf("%d claims had jobs of more than %d keys to choose from, of which the board does not rank all anew before each claim", s.counts.crowded, rankedKeys))
	}
	if s.coarse {
		list = append(list, fmt.Sprintf("policies by time see it in coarser steps: about %d times they would be asked about a job on account of the time alone", maxSpent))
	}
	return list
}

// missing names the facts that were not recorded.
func missing(sides [2]*sim) (list []string) {
	for _, s := range sides {
		for _, r := range s.all() {
			for i, is := range r.missing {
				if f := r.manifest.Facts[i]; is {
					list = append(list, fmt.Sprintf("%s (%s, %s of %s)", f.Name, f.Type, f.Path, r.manifest.Name))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
