package board

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// selector is what a claim call wants: which jobs, by whom.
type selector struct {
	board  *Board
	rules  *ruleset
	names  []string // sorted; none: any
	filter filter.Filter
	told   []job.Label // all labels of the worker, sorted by key
	worker []job.Label // only those that the policies name
	own    bool        // the jobs are in another order for this worker than for others
}

// selectorOf checks the parts of a request that select jobs.
func (b *Board) selectorOf(names []string, filterText string, worker []job.Label) (*selector, error) {
	if len(names) > MaxClaimNames {
		return nil, job.Errorf(job.Invalid, "names: %d are too many: want at most %d", len(names), MaxClaimNames)
	}
	for _, n := range names {
		if err := checkText("names", n, job.MaxName); err != nil {
			return nil, err
		}
	}
	f, err := filter.Parse(filterText)
	if err != nil {
		return nil, err
	}
	worker, err = checkLabels("workerLabels", worker)
	if err != nil {
		return nil, err
	}
	w := &selector{board: b, filter: f, told: worker}
	if len(names) > 0 {
		w.names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	return w.by(b.rules.Load()), nil
}

// by returns a selector that judges by these rules. One that was given to the index stays as
// it is: the index asks it from another goroutine, as long as its class lives.
func (w *selector) by(rules *ruleset) *selector {
	next := *w
	w = &next
	w.rules, w.worker, w.own = rules, nil, false
	for _, l := range w.told {
		own := rules.ownOrder() && policy.Sees(rules.ordering.manifest.WorkerLabels, l.Key)
		if own || rules.labelCounts(l.Key) {
			w.worker = append(w.worker, l)
		}
		w.own = w.own || own
	}
	return w
}

// labelCounts reports whether a policy looks at this label of a worker.
func (s *ruleset) labelCounts(key string) bool {
	counts := func(a *boundPolicy) bool { return a.manifest.ByWorker && policy.Sees(a.manifest.WorkerLabels, key) }
	return slices.ContainsFunc(s.eligibility, counts) || s.shadow != nil && counts(s.shadow.boundPolicy)
}

// any reports whether every job suits.
func (w *selector) any() bool {
	s := w.rules.shadow
	return !w.own && len(w.names) == 0 && w.filter.Empty() && len(w.rules.eligibility) == 0 && (s == nil || !s.manifest.Eligibility)
}

// class returns the key of the worker class: empty if every job suits.
func (w *selector) class() index.Key {
	if w.any() {
		return index.Key{}
	}
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(w.names)))
	for _, n := range w.names {
		text(n)
	}
	text(w.filter.Text)
	for _, l := range w.worker {
		text(l.Key)
		text(l.Value)
	}
	b = binary.AppendUvarint(b, w.rules.serial)
	series, now := sha256.Sum256(b), time.Now()
	key := index.Key{Series: string(series[:16])}
	for _, a := range w.byTick() { // a verdict stands for as long as the policy sees the same time
		at := a.clock.At(now).UnixNano()
		key.At = max(key.At, at)
		b = binary.AppendVarint(b, at)
	}
	if w.own {
		b = binary.AppendUvarint(b, w.board.order.tries.Load()) // or a class would keep what a policy that failed did not say
	}
	sum := sha256.Sum256(b)
	key.Name = string(sum[:16])
	return key
}

// byTick returns the policies whose answers on a class stand for a tick.
func (w *selector) byTick() (list []*boundPolicy) {
	for _, a := range w.rules.eligibility {
		if a.manifest.ByTime {
			list = append(list, a)
		}
	}
	if w.own && w.rules.ordering.manifest.ByTime {
		list = append(list, w.rules.ordering)
	}
	return list
}

// byTime reports whether a policy looks at the time.
func (s *ruleset) byTime() bool {
	return slices.ContainsFunc(s.eligibility, func(a *boundPolicy) bool { return a.manifest.ByTime })
}

// fresh returns a channel that fires when the class's key has to be made anew (nil:
// never), and what stops its timer.
func (w *selector) fresh() (<-chan time.Time, func() bool) {
	now := time.Now()
	var next time.Duration
	for _, a := range w.byTick() {
		left := a.clock.Next(now).Sub(now)
		if next == 0 || left < next {
			next = left
		}
	}
	if next == 0 {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(next)
	return timer.C, timer.Stop
}

func (w *selector) named(name string) bool {
	if len(w.names) == 0 {
		return true
	}
	_, found := slices.BinarySearch(w.names, name)
	return found
}

// classOf returns the worker class, judged.
func (w *selector) classOf(ctx context.Context) (*index.Class, error) {
	return w.classBy(ctx, w.class())
}

func (w *selector) classBy(ctx context.Context, key index.Key) (*index.Class, error) {
	return w.board.index.ClassOf(ctx, key, w.judge, w.own)
}

// scoreOwn writes the scores that jobs have for this worker. Where the policy
// fails they keep those of the board's order until it is tried again.
func (w *selector) scoreOwn(ctx context.Context, entries []*index.Entry, left []int) {
	if !w.own || len(left) == 0 || !w.rules.current() {
		return
	}
	mine := make([]*index.Entry, len(left))
	for i, at := range left {
		mine[i] = entries[at]
	}
	for from := 0; from < len(mine); from += policy.MaxBatch {
		part := mine[from:min(from+policy.MaxBatch, len(mine))]
		if err := w.board.scoreWith(ctx, w.rules, w.rules.ordering, w.worker, part); err != nil && ctx.Err() == nil {
			w.board.order.failed(w.rules, "jobs", len(part), err)
		}
	}
}
