package board

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of what is told of jobs by their names. What ended is told of the present half of a
// day and the one before, and as one for all names that come when there are MaxNames.
const (
	MaxNames   = 100
	namePeriod = 12 * time.Hour

	namesTrash = 1000             // newest jobs of the trash that are looked at
	namesPace  = 10 * time.Second // between two countings at least
	namesShare = 50               // and so many times as long as a counting took
)

// NameStats is how the jobs of one name stand, and what became of those that this host
// worked with.
type NameStats struct {
	Name                       string // "": all names that are not told apart
	Waiting, Claimed, Trashed  int64
	Consumed, Failed, Canceled int64         // Failed: attempts that were lost, given back or ended in the trash
	Waits, Runs                NameDurations // until a claim; from there to the end
}

// NameDurations are how long something took, to within a fifth.
type NameDurations struct {
	Count    int64
	P50, P95 time.Duration
}

// FailureShare is which part of the attempts that ended have failed, and whether there were any.
func (s *NameStats) FailureShare() (share float64, ended bool) {
	attempts := s.Consumed + s.Failed
	return float64(s.Failed) / float64(max(attempts, 1)), attempts > 0
}

// NameReport is how a board stands by the names of its jobs.
type NameReport struct {
	Names    []NameStats // with most to do first
	Others   *NameStats  // all other names as one; nil: there are none
	Since    time.Time   // from when on what ended is counted
	TrashCut bool        // the trash has more jobs than were looked at
}

// nameFlow counts what became of the jobs of a name.
type nameFlow struct {
	consumed, failed, canceled int64
	waits, runs                durations
}

func (f *nameFlow) add(o *nameFlow) {
	f.consumed, f.failed, f.canceled = f.consumed+o.consumed, f.failed+o.failed, f.canceled+o.canceled
	f.waits.add(&o.waits)
	f.runs.add(&o.runs)
}

// durations counts how long something took in buckets that grow by the square root of two,
// from a millisecond to a month.
type durations [64]uint32

func (d *durations) observe(took time.Duration) {
	at := 0
	if took > time.Millisecond {
		at = min(1+int(2*math.Log2(float64(took)/float64(time.Millisecond))), len(d)-1)
	}
	d[at]++
}

func (d *durations) add(o *durations) {
	for i, n := range o {
		d[i] += n
	}
}

// show returns the middle of the buckets in which the median and the 95th percentile are.
func (d *durations) show() (n NameDurations) {
	for _, k := range d {
		n.Count += int64(k)
	}
	n.P50, n.P95 = d.quantile(n.Count, 0.5), d.quantile(n.Count, 0.95)
	return n
}

func (d *durations) quantile(count int64, share float64) time.Duration {
	rank := int64(math.Ceil(share * float64(count)))
	for i, k := range d {
		if rank -= int64(k); rank <= 0 && count > 0 {
			if i == 0 {
				return time.Millisecond
			}
			return time.Duration(float64(time.Millisecond) * math.Exp2((float64(i)-0.5)/2))
		}
	}
	return 0
}

// nameBook counts by names.
type nameBook struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows; held while memory is read or written
	periods [2]namePeriodBook

	counting sync.Mutex // held while the jobs are counted, before mu
	standing map[string]*NameStats
	others   NameStats
	trashCut bool
	next     time.Time // when they are counted again
}

// namePeriodBook is what was counted in one period.
type namePeriodBook struct {
	begun  time.Time
	names  map[string]*nameFlow
	others *nameFlow
}

// of returns where a name is counted. The caller holds mu.
func (n *nameBook) of(name string) *nameFlow {
	now := n.now()
	if p := &n.periods[0]; p.names == nil || now.Sub(p.begun) >= namePeriod {
		if n.periods[1] = *p; now.Sub(p.begun) >= 2*namePeriod {
			n.periods[1] = namePeriodBook{}
		}
		*p = namePeriodBook{begun: now, names: map[string]*nameFlow{}}
	}
	p := &n.periods[0]
	if f := p.names[name]; f != nil {
		return f
	}
	if len(p.names) < MaxNames {
		f := &nameFlow{}
		p.names[name] = f
		return f
	}
	if p.others == nil {
		p.others = &nameFlow{}
	}
	return p.others
}

// waited counts how long a job waited for its claim.
func (n *nameBook) waited(name string, took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of(name).waits.observe(took)
}

// ended counts what an op did to a job.
func (n *nameBook) ended(s *currentJob, op *driver.Op) {
	if s == nil || s.entry == nil {
		return
	}
	claimed := s.entry.Claim != nil
	failed := claimed && !s.unbegun && (op.Event == job.Abandoned || op.Event == job.Expired || op.Event == job.TrashedEvent)
	consumed, canceled := op.Event == job.ConsumedEvent, op.Event == job.CanceledEvent
	if !failed && !consumed && !canceled {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.of(s.entry.Name)
	switch {
	case consumed:
		f.consumed++
	case canceled:
		f.canceled++
	default:
		f.failed++
	}
	if begun := s.status.Present.Begun; claimed && !begun.IsZero() {
		f.runs.observe(time.Since(begun))
	}
}

// flows returns what was counted in both periods, and since when.
func (n *nameBook) flows() (names map[string]*nameFlow, others *nameFlow, since time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	names, now := map[string]*nameFlow{}, n.now()
	for i := range n.periods {
		p := &n.periods[i]
		if p.names == nil || now.Sub(p.begun) >= 2*namePeriod {
			continue
		}
		since = p.begun
		for name, f := range p.names {
			if names[name] == nil {
				names[name] = &nameFlow{}
			}
			names[name].add(f)
		}
		if p.others != nil {
			if others == nil {
				others = &nameFlow{}
			}
			others.add(p.others)
		}
	}
	return names, others, since
}

// ByNames tells how the board stands by the names of its jobs. Its jobs are counted now and
// then only, however often it is called.
func (b *Board) ByNames(ctx context.Context) (NameReport, error) {
	if _, err := b.serving(ctx); err != nil {
		return NameReport{}, err
	}
	n := &b.names
	n.counting.Lock()
	defer n.counting.Unlock()
	if begun := time.Now(); !begun.Before(n.next) {
		if err := b.countNames(ctx); err != nil {
			return NameReport{}, err
		}
		n.next = time.Now().Add(max(namesPace, namesShare*time.Since(begun)))
	}
	return n.report(), nil
}

// countNames counts the open jobs, and the newest of the trash. The caller holds counting.
func (b *Board) countNames(ctx context.Context) error {
	n := &b.names
	n.standing, n.others, n.trashCut = map[string]*NameStats{}, NameStats{}, false
	const room = 16 * MaxNames // so that the names with most jobs are found among many
	of := func(name string) *NameStats {
		s := n.standing[name]
		if s == nil && len(n.standing) >= room {
			return &n.others
		}
		if s == nil {
			s = &NameStats{Name: name}
			n.standing[name] = s
		}
		return s
	}
	b.index.EachName(func(name string, claimed bool) {
		if s := of(name); claimed {
			s.Claimed++
		} else {
			s.Waiting++
		}
	}, func() bool { return ctx.Err() == nil })
	for page, err := range b.driver.Scan(ctx, b.spec.Key, driver.ScanRequest{Set: driver.TrashedJobs, NewestFirst: true, Limit: namesTrash}) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			of(page.Records[i].Posting.Name).Trashed++
		}
		n.trashCut = page.Next != ""
	}
	return context.Cause(ctx)
}

// report joins what stands and what ended. The caller holds counting.
func (n *nameBook) report() NameReport {
	flows, others, since := n.flows()
	all := map[string]*NameStats{}
	for name, s := range n.standing {
		one := *s
		all[name] = &one
	}
	rest, restFlow, more := n.others, &nameFlow{}, n.others != NameStats{}
	for name, f := range flows {
		if all[name] == nil {
			all[name] = &NameStats{Name: name}
		}
		all[name].Consumed, all[name].Failed, all[name].Canceled = f.consumed, f.failed, f.canceled
	}
	list := make([]*NameStats, 0, len(all))
	for _, s := range all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *NameStats) int { return cmp.Or(cmp.Compare(b.work(), a.work()), cmp.Compare(a.Name, b.Name)) })
	r := NameReport{Since: since, TrashCut: n.trashCut}
	for i, s := range list {
		f := flows[s.Name]
		switch {
		case i < MaxNames && f != nil:
			s.Waits, s.Runs = f.waits.show(), f.runs.show()
			fallthrough
		case i < MaxNames:
			r.Names = append(r.Names, *s)
		default:
			more = true
			rest.Waiting, rest.Claimed, rest.Trashed = rest.Waiting+s.Waiting, rest.Claimed+s.Claimed, rest.Trashed+s.Trashed
			if f != nil {
				restFlow.add(f)
			}
		}
	}
	if others != nil {
		restFlow.add(others)
		more = true
	}
	if more {
		rest.Consumed, rest.Failed, rest.Canceled = restFlow.consumed, restFlow.failed, restFlow.canceled
		rest.Waits, rest.Runs = restFlow.waits.show(), restFlow.runs.show()
		r.Others = &rest
	}
	return r
}

// work is how much there is to do, and was done.
func (s *NameStats) work() int64 {
	return s.Waiting + s.Claimed + s.Trashed + s.Consumed + s.Failed + s.Canceled
}

// waitedFor returns how long a job could have been claimed, if that is known.
func waitedFor(before *index.Entry) (took time.Duration, known bool) {
	if before == nil || before.Claim != nil {
		return 0, false
	}
	ready := before.ModifiedAt
	if before.NotBefore.After(ready) {
		ready = before.NotBefore
	}
	return max(0, time.Since(ready)), !ready.IsZero()
}
