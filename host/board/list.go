package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// List returns a page of jobs: first the open ones in claim order, then the
// trash, then what has ended, these by time, as far as the states are asked for.
func (b *Board) List(ctx context.Context, req ListRequest) (ListPage, error) {
	if _, err := b.serving(ctx); err != nil {
		return ListPage{}, err
	}
	l, err := b.lister(&req)
	if err != nil {
		return ListPage{}, err
	}
	b.order.used()
	waiting, cancel := waitUntil(ctx, req.Wait)
	defer cancel()
	if req.PageToken == "" && l.filter.Text == "" && (l.states.has(job.Unclaimed) || l.states.has(job.Claimed)) {
		if l.page.Corrupt, err = b.Corrupt(ctx); err != nil {
			return ListPage{}, err
		}
	}
	for {
		changed, began := b.index.Changed(), time.Now()
		at := l.at
		if err := l.fill(ctx); err != nil {
			return ListPage{}, err
		}
		if req.Wait <= 0 || len(l.page.Jobs) > 0 || l.page.Next != "" || len(l.page.Corrupt) > 0 {
			return l.page, nil
		}
		next := nextLook(began, time.Now())
		late, err := waitChange(waiting, changed, nil)
		if late || err != nil || waiting.Err() != nil {
			return ListPage{}, nil // the wait is over: an empty answer
		}
		if restUntil(waiting, next); ctx.Err() != nil {
			return ListPage{}, nil // nobody is there for one more look
		}
		l.at = at
	}
}

// Boards change all the time, and most changes are none to who waits for a job: between two
// looks of such a call are listPause at least, and listShare times as long as the first one
// took, up to listLongest.
const (
	listPause   = 50 * time.Millisecond
	listShare   = 4
	listLongest = time.Second
)

// nextLook is when a call looks again that looked from began to ended and found nothing.
func nextLook(began, ended time.Time) time.Time {
	return ended.Add(min(max(listPause, listShare*ended.Sub(began)), listLongest))
}

// restUntil waits for a time. If ctx ends before, there is one more look at the board.
func restUntil(ctx context.Context, next time.Time) {
	defer idle(ctx)()
	_ = sleep.For(ctx, time.Until(next))
}

// The parts of a listing, in this order.
const (
	partOpen = iota
	partTrash
	partEnded
	partEnd
)

// lister is one call of List.
type lister struct {
	board      *Board
	filter     filter.Filter
	states     stateSet
	size       int
	details    bool
	operations bool
	at         pageToken
	page       ListPage
}

// stateSet is which states a listing shows.
type stateSet uint8

func (s stateSet) has(state job.State) bool { return s&(1<<state) != 0 }

func (b *Board) lister(req *ListRequest) (*lister, error) {
	l := &lister{board: b, size: req.PageSize, details: req.Details, operations: req.Operations}
	switch {
	case req.PageSize < 0 || req.PageSize > MaxPage:
		return nil, job.Errorf(job.Invalid, "pageSize: want 1 to %d, got %d", MaxPage, req.PageSize)
	case req.PageSize == 0:
		l.size = DefaultPage
	}
	var err error
	if l.filter, err = filter.Parse(req.Filter); err != nil {
		return nil, err
	}
	states := req.States
	if len(states) == 0 {
		states = []job.State{job.Unclaimed, job.Claimed}
	}
	for _, s := range states {
		if s < job.Unclaimed || s > job.Trashed {
			return nil, job.Errorf(job.Invalid, "states: want UNCLAIMED, CLAIMED, COMPLETE or TRASHED")
		}
		l.states |= 1 << s
	}
	if l.at, err = b.parsePageToken(req.PageToken, l.states, l.filter.Text); err != nil {
		return nil, err
	}
	return l, nil
}

// fill reads a page. It may be short of jobs, or even without any, where most
// do not match; then it says where to go on.
func (l *lister) fill(ctx context.Context) error {
	for budget := 64; len(l.page.Jobs) < l.size && l.at.part < partEnd; budget-- {
		if budget == 0 {
			break
		}
		if err := context.Cause(ctx); err != nil {
			return &job.Error{Op: "list", Kind: job.Interrupted, Err: err}
		}
		var err error
		switch l.at.part {
		case partOpen:
			err = l.open(ctx)
		case partTrash:
			err = l.scan(ctx, driver.TrashedJobs, job.Trashed)
		case partEnded:
			err = l.scan(ctx, driver.EndedJobs, job.Complete)
		}
		if err != nil {
			return err
		}
	}
	l.page.Next = ""
	if l.at.part < partEnd && !l.nothingBehind() {
		l.page.Next = l.at.encode(l.states, l.filter.Text)
	}
	return nil
}

// nothingBehind reports whether none of the parts from here on is asked for.
func (l *lister) nothingBehind() bool {
	switch l.at.part {
	case partOpen:
		return false
	case partTrash:
		return !l.states.has(job.Trashed) && !l.states.has(job.Complete)
	case partEnded:
		return !l.states.has(job.Complete)
	}
	return true
}

func (l *lister) nextPart() { l.at = pageToken{part: l.at.part + 1, order: l.at.order} }

// open adds open jobs from the index.
func (l *lister) open(ctx context.Context) error {
	req := index.PageRequest{
		After: l.at.after, Unclaimed: l.states.has(job.Unclaimed), Claimed: l.states.has(job.Claimed),
		Limit: l.size - len(l.page.Jobs),
	}
	if !req.Unclaimed && !req.Claimed {
		l.nextPart()
		return nil
	}
	if !l.filter.Empty() {
		req.Match = func(e *index.Entry) bool { return l.filter.Matches(subjectOf(e, &l.filter)) }
	}
	page := l.board.index.Page(req)
	jobs := make([]*job.Job, len(page.Entries))
	for i, e := range page.Entries {
		jobs[i] = jobOf(e)
	}
	if err := l.add(ctx, jobs); err != nil {
		return err
	}
	if !page.More {
		l.nextPart()
		return nil
	}
	l.at.after = &page.Last
	return nil
}

// add takes jobs into the page that have no details yet.
func (l *lister) add(ctx context.Context, jobs []*job.Job) error {
	if !l.details && !l.operations && !l.filter.NeedsDetails() {
		l.page.Jobs = append(l.page.Jobs, jobs...)
		return nil
	}
	const most = 64
	for part := range slices.Chunk(jobs, most) {
		ids := make([]job.ID, len(part))
		for i, j := range part {
			ids[i] = j.ID
		}
		var parts driver.Parts
		if l.details || l.filter.NeedsDetails() {
			parts = driver.Details
		}
		records, err := l.board.read(ctx, ids, parts)
		if err != nil {
			return err
		}
		for i, j := range part {
			if records[i].State == job.Unknown {
				continue // it was purged meanwhile
			}
			if l.operations {
				showOperations(j, &records[i], records[i].Status)
			}
			showDetails(j, &records[i].Posting)
			if !l.filter.MatchesDetails(j.Details) {
				continue
			}
			if !l.details {
				j.Details, j.RawDetails = nil, nil
			}
			l.page.Jobs = append(l.page.Jobs, j)
		}
	}
	return nil
}

// scan adds jobs that are not open, by time.
func (l *lister) scan(ctx context.Context, set driver.Set, state job.State) error {
	if !l.states.has(state) {
		l.nextPart()
		return nil
	}
	req := driver.ScanRequest{Set: set, After: l.at.scan, Limit: l.size - len(l.page.Jobs), Parts: driver.FinalData}
	if l.details || l.filter.NeedsDetails() {
		req.Parts |= driver.Details
	}
	now, next := time.Now(), ""
	for page, err := range l.board.driver.Scan(ctx, l.board.spec.Key, req) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			if rec := &page.Records[i]; rec.State == state && rec.Outcome != job.Purged {
				l.addRecord(rec, now)
			}
		}
		next = page.Next
	}
	if next == "" {
		l.nextPart()
		return nil
	}
	l.at.scan = next
	return nil
}

func (l *lister) addRecord(rec *driver.Record, now time.Time) {
	j := l.board.jobOfRecord(rec, now)
	if !l.filter.Empty() {
		s := filter.Subject{Name: j.Name, Owner: j.Owner, Priority: j.Priority, Attempt: j.Attempt, CreatedAt: j.CreatedAt, Labels: j.Labels, Unique: j.Unique.Key, Batch: j.Batch}
		if !l.filter.Matches(&s) || !l.filter.MatchesDetails(j.Details) {
			return
		}
	}
	if l.operations {
		showOperations(j, rec, rec.Status)
	}
	if !l.details {
		j.Details, j.RawDetails = nil, nil
	}
	l.page.Jobs = append(l.page.Jobs, j)
}
