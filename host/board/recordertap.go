package board

import (
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Recorder is told what happens on a board, so that it can be gone through again
// with other policies. Its methods are called one at a time, in the order of what
// happened, and do not block.
type Recorder interface {
	// Restart says that what is told from now on does not follow on what was told
	// before: the board was read anew.
	Restart()

	// Tell tells what happened. The list is only lent.
	Tell(list []Happening)
}

// Happened says what became of a job.
type Happened uint8

// What can become of a job.
const (
	Stands Happened = iota // it stands open: it was posted, given back, or changed
	Taken                  // it was claimed
	Gone                   // it cannot be claimed now: it ended, was set aside, or is held back
	Lost                   // it was claimed, and nothing is known of it any more
)

// Happening is a change of one job.
type Happening struct {
	What  Happened
	At    time.Time // by the store's clock
	Job   policy.Job
	Specs []policy.FactSpec // what the job's facts are, of all policies that the board asks; shared
	By    *Taker            // of Taken; nil: somebody whom this host does not know

	// Decided is when this host chose the job for the claim, by its own clock. Of Taken;
	// zero: another host chose it.
	Decided time.Time
}

// Taker is a claim call, as far as it counts for which jobs the call may have.
type Taker struct {
	Worker []job.Label // sorted by key
	Names  []string    // the job names that it asked for, sorted; none: any
	Filter string
	Chosen bool // it named the job's uuid
}

// recorderTap tells a recorder what the store reports to the board, and which call made
// each claim of this host, since the store does not know that.
type recorderTap struct {
	recorder Recorder // nil: nobody wants to know

	mu     sync.Mutex
	asking map[job.ID]asker
}

// asker is whose claim of a job is under way, or was just made, and the job as it is
// under that claim: by the time the store reports the claim, the job may be gone.
type asker struct {
	owner   string
	by      *Taker
	decided time.Time
	job     policy.Job
	granted driver.Position // of the claim; 0: it is under way
}

// asks notes that jobs are about to be claimed.
func (w *recorderTap) asks(c *claimer, entries []*index.Entry, chosen bool) {
	if w.recorder == nil {
		return
	}
	if c.taker == nil {
		c.taker = &Taker{Worker: c.told, Names: c.names, Filter: c.filter.Text, Chosen: chosen}
	}
	jobs := make([]policy.Job, len(entries))
	for i, e := range entries {
		jobs[i] = c.board.recorded(c.rules, e) // its status is that of the claim already
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asking == nil {
		w.asking = map[job.ID]asker{}
	}
	for i, e := range entries {
		if len(w.asking) >= maxLeaving {
			return // the store is silent; what it reports of these later is by nobody that is known
		}
		w.asking[e.ID] = asker{owner: c.owner, by: c.taker, decided: c.decided, job: jobs[i]}
	}
}

// answered notes which jobs were claimed and which were not.
func (w *recorderTap) answered(ids []job.ID, r *driver.Result) {
	if w.recorder == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		at := slices.IndexFunc(r.Claims, func(c driver.Claimed) bool { return c.Job == id })
		if at < 0 {
			delete(w.asking, id)
		} else if a, ok := w.asking[id]; ok {
			a.granted = r.Claims[at].Position
			w.asking[id] = a
		}
	}
}

// took returns who claimed a job, and the job under that claim; false if that was not
// through this host.
func (w *recorderTap) took(id job.ID, owner string) (a asker, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok = w.asking[id]; !ok || a.owner != owner {
		return asker{}, false
	}
	delete(w.asking, id)
	return a, true
}

// restartRecording tells the recorder that the board is read anew as of a position. The
// store will not report the claims before it any more; those of this host that were not
// told yet are told as Lost.
func (b *Board) restartRecording(position driver.Position) {
	w := &b.tap
	if w.recorder == nil {
		return
	}
	w.recorder.Restart()
	var list []Happening
	w.mu.Lock()
	for id, a := range w.asking {
		if a.granted != 0 && a.granted <= position {
			delete(w.asking, id)
			list = append(list, Happening{What: Lost, At: a.decided, Job: policy.Job{ID: id}})
		}
	}
	w.mu.Unlock()
	slices.SortFunc(list, func(x, y Happening) int { return x.At.Compare(y.At) })
	b.metrics.Unrecorded.Add(int64(len(list)))
	if len(list) > 0 {
		w.recorder.Tell(list)
	}
}

// tell tells what the store reported.
func (b *Board) tell(items []item) {
	if b.tap.recorder == nil || len(items) == 0 {
		return
	}
	set := b.rules.Load()
	list := make([]Happening, 0, len(items))
	for i := range items {
		if h, ok := b.happening(set, &items[i]); ok {
			list = append(list, h)
		}
	}
	b.tap.recorder.Tell(list)
}

// happening says what one change means for the order of claims; false: nothing.
func (b *Board) happening(set *ruleset, it *item) (Happening, bool) {
	h := Happening{At: it.at, Specs: set.facts.specs}
	if it.event == job.Extended {
		return h, false
	}
	if r := it.record; r != nil && !isOpen(r.State) {
		h.What, h.Job.ID = Gone, it.id
		return h, true
	}
	e := it.entry
	if e == nil {
		if it.record == nil || it.record.Posting.Name == "" {
			return b.vanished(h, it)
		}
		e = b.entryOf(it.record, it.at)
	}
	if it.event == job.OperationEvent && e.Claim != nil {
		return h, false // what it does with the job is told when it gives it back
	}
	h.Job = b.recorded(set, e)
	switch {
	case e.Claim != nil:
		h.What = Taken
		if a, ok := b.tap.took(e.ID, e.Claim.Owner); ok {
			h.By, h.Decided = a.by, a.decided
		}
	case e.Held:
		h.What = Gone
	}
	return h, true
}

// vanished tells of a change of a job of which nothing is known any more. Only a claim
// matters: if this host made it, the tap has the job; else it is told as Lost.
func (b *Board) vanished(h Happening, it *item) (Happening, bool) {
	if it.event != job.ClaimedEvent || it.record == nil || it.record.Holder == nil {
		return h, false
	}
	h.What, h.Job.ID = Taken, it.id
	a, ok := b.tap.took(it.id, it.record.Holder.Owner)
	if !ok {
		b.metrics.Unrecorded.Add(1)
		h.What = Lost
		return h, true
	}
	h.By, h.Decided, h.Job = a.by, a.decided, a.job
	return h, true
}

// anyLabel lets a recording have all labels of a job: the policies of tomorrow
// are not known.
var anyLabel = policy.Manifest{Labels: []string{"*"}}

// recorded is what a recording keeps of a job: of its details, only the facts that
// policies name.
func (b *Board) recorded(set *ruleset, e *index.Entry) policy.Job {
	j := policyJob(&anyLabel, e)
	if set.facts.wanted() {
		j.Facts, _ = set.facts.get(e.ID, e.Sequence)
	}
	return j
}

// Standing returns the first jobs in claim order as a Recorder would be told of them,
// and how many more there are.
func (b *Board) Standing(most int) (list []Happening, more int64) {
	set, now := b.rules.Load(), time.Now().UTC()
	request := index.PageRequest{Unclaimed: true, Limit: most}
	for len(list) < most {
		page := b.index.Page(request)
		for _, e := range page.Entries {
			if !e.Held && len(list) < most {
				list = append(list, Happening{At: now, Job: b.recorded(set, e), Specs: set.facts.specs})
			}
		}
		if !page.More {
			return list, 0
		}
		last := page.Last
		request.After = &last
	}
	counts := b.index.Count()
	return list, max(0, counts.Ready+counts.Delayed-int64(len(list)))
}

// Matcher reads a filter as claims have it, and returns what says whether a job
// matches. It is nil for a filter that looks at details.
func Matcher(text string) (func(*policy.Job) bool, error) {
	f, err := filter.Parse(text)
	if err != nil || f.NeedsDetails() {
		return nil, err
	}
	return func(j *policy.Job) bool {
		return f.Matches(&filter.Subject{Name: j.Name, Priority: j.Priority, Attempt: j.Attempt, CreatedAt: j.CreatedAt, Labels: j.Labels})
	}, nil
}
