package board

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What bounds the intake of postings that others leave in the store.
const (
	intakeAgain = time.Second // until those that could not be posted yet are tried again
	intakeVain  = 16          // pages in a row of which none could be posted, after which that is waited for
)

// leftPosting is a posting as it lies in an inbox: a NewJob of the API as JSON, without its uuid.
type leftPosting struct {
	Name     string            `json:"name"`
	Details  json.RawMessage   `json:"details"`
	Priority string            `json:"priority"`
	Labels   map[string]string `json:"labels"`
	Book     struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
	} `json:"book"`
	NotBefore   time.Time `json:"notBefore"`
	MaxAttempts int32     `json:"maxAttempts"`
	Timeout     string    `json:"timeout"`
	Unique      struct {
		Key        string `json:"key"`
		Window     string `json:"window"`
		OnConflict string `json:"onConflict"`
	} `json:"unique"`
	Batch string `json:"batch"`
	After []struct {
		UUID     string   `json:"uuid"`
		Statuses []string `json:"statuses"`
	} `json:"after"`
	Operations []struct {
		Name     string          `json:"name"`
		Input    json.RawMessage `json:"input"`
		Priority int32           `json:"priority"`
	} `json:"operations"`
}

// posting reads what lies in an inbox, with the uuid that it was given there.
func (l *leftPosting) posting(id job.ID, text []byte) (p job.Posting, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return p, job.Errorf(job.Invalid, "the posting cannot be read: %v", err)
	}
	p = job.Posting{
		ID: id, Name: l.Name, Details: l.Details, Book: job.Book{UUID: l.Book.UUID, Name: l.Book.Name}, NotBefore: l.NotBefore, MaxAttempts: l.MaxAttempts,
		Unique: job.Unique{Key: l.Unique.Key}, Batch: l.Batch, Labels: job.LabelsOf(l.Labels),
	}
	if l.Priority != "" {
		var ok bool
		if p.Priority, ok = job.ParsePriority(l.Priority); !ok {
			return p, job.Errorf(job.Invalid, "priority: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW")
		}
	}
	if p.Timeout, err = leftDuration("timeout", l.Timeout); err != nil {
		return p, err
	}
	if p.Unique.Window, err = leftDuration("unique.window", l.Unique.Window); err != nil {
		return p, err
	}
	conflict := slices.Index([]string{"", "KEEP", "REPLACE", "REJECT"}, l.Unique.OnConflict)
	if conflict < 0 {
		return p, job.Errorf(job.Invalid, "unique.onConflict: want KEEP, REPLACE or REJECT")
	}
	p.Unique.OnConflict = job.OnConflict(max(conflict-1, 0)) //nolint:gosec // a place in a short list
	for i := range l.Operations {
		o := &l.Operations[i]
		p.Operations = append(p.Operations, job.NewOperation{Name: o.Name, Input: o.Input, Priority: o.Priority})
	}
	return p, l.addAfter(&p)
}

// afterStatuses are the statuses that a job may end with.
var afterStatuses = []job.OperationStatus{job.OpSuccess, job.OpError, job.OpCanceled}

func (l *leftPosting) addAfter(p *job.Posting) error {
	for i := range l.After {
		id, err := job.ParseID(l.After[i].UUID)
		if err != nil {
			return job.Errorf(job.Invalid, "after[%d].uuid: %v", i, err)
		}
		a := job.Prerequisite{ID: id}
		for _, name := range l.After[i].Statuses {
			at := slices.IndexFunc(afterStatuses, func(s job.OperationStatus) bool { return s.String() == name })
			if at < 0 {
				return job.Errorf(job.Invalid, "after[%d].statuses: want SUCCESS, ERROR or CANCELED, got %.64q", i, name)
			}
			a.Statuses = append(a.Statuses, afterStatuses[at])
		}
		p.After = append(p.After, a)
	}
	return nil
}

func leftDuration(what, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < job.MinLease || !strings.HasSuffix(text, "s") {
		return 0, job.Errorf(job.Invalid, "%s: want seconds such as \"30s\", at least 1s, got %.64q", what, text)
	}
	return d, nil
}

// takeInForever posts what others leave in the store, until ctx ends. Each host of the board
// does so: the store lets one of them post it.
func (b *Board) takeInForever(ctx context.Context) {
	in, wake := intake{Board: b}, b.intake
	var again <-chan time.Time
	for {
		select {
		case <-wake: // what is new is behind all that waits
		case <-again:
			in, wake, again = intake{Board: b}, b.intake, nil
		case <-ctx.Done():
			return
		}
		err := in.takeIn(ctx)
		if err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "postings that wait in the store could not be taken in, and are tried again", "error", err)
		}
		if again == nil && (in.waits || err != nil) {
			again = time.After(intakeAgain)
		}
		if in.full || err != nil {
			wake = nil // nobody overtakes those that wait for room
		}
	}
}

// intake posts what waits in the store.
type intake struct {
	*Board
	from  string // the last page that was read: where the next try goes on
	waits bool   // something has to wait longer
	full  bool   // and is for room, as all that comes later will be
}

// takeIn posts what waits, page by page.
func (in *intake) takeIn(ctx context.Context) error {
	opened, err := in.changing(ctx)
	if err != nil || !opened.Capabilities.Inbox {
		return err
	}
	for vain := 0; vain < intakeVain; vain++ {
		page, err := in.inboxPage(ctx, driver.ScanRequest{Set: driver.InboxPostings, After: in.from, Limit: 128})
		if err != nil {
			return err
		}
		if len(page.Records) > 0 {
			taken := incoming{board: in.Board, opened: opened, waits: in.waits}
			if err := taken.take(ctx, page.Records); err != nil {
				return err
			}
			in.waits, in.full = taken.waits, in.full || taken.full
			if taken.done > 0 {
				vain = -1
			}
		}
		if page.Next == "" {
			if !in.waits {
				in.from = "" // the store numbers its pages, and may begin anew
			}
			return nil
		}
		in.from = page.Next
	}
	in.waits, in.full = true, true
	return nil
}

// inboxPage reads one page of what waits.
func (b *Board) inboxPage(ctx context.Context, req driver.ScanRequest) (page driver.Page, err error) {
	for page, err := range b.driver.Scan(ctx, b.spec.Key, req) {
		return page, err
	}
	return page, ctx.Err()
}

// incoming is one page of postings that others left in the store.
type incoming struct {
	board  *Board
	opened *driver.BoardStatus
	done   int         // left the inbox
	waits  bool        // some have to wait, of this page or of one before
	full   bool        // some of this page for room
	raced  bool        // another host took some of this page
	refuse []driver.Op // what can never be posted
}

// take posts them as calls do. What can never be posted is refused: it stays in the inbox
// with the reason, and is in nobody's way.
func (in *incoming) take(ctx context.Context, left []driver.Record) error {
	b := in.board
	results := make([]JobResult, len(left))
	p := poster{board: b, opened: in.opened, results: results, room: b.room(in.opened), now: time.Now()}
	for i := range left {
		at := &left[i].Posting
		posting, err := new(leftPosting).posting(at.ID, at.Details)
		if err == nil {
			err = p.prepare(ctx, i, &posting)
		}
		if results[i].Err = err; err == nil {
			p.ops[len(p.ops)-1].Inbox = at.Sequence
		}
	}
	if err := p.postAll(ctx); err != nil {
		return err
	}
	in.raced = slices.ContainsFunc(results, func(r JobResult) bool { return job.KindOf(r.Err) == job.NotFound })
	for i := range left {
		in.answer(&left[i].Posting, &results[i])
	}
	if len(in.refuse) == 0 {
		return nil
	}
	for i, r := range b.applyAll(ctx, in.opened, in.refuse) {
		switch op := &in.refuse[i]; r.Kind {
		case job.NoKind:
			in.done++
			if op.Reason != "" {
				b.log.WarnContext(ctx, "a posting that was left in the store is refused", "job", op.Job, "reason", op.Reason)
			}
		case job.NotFound: // another host was faster
		default:
			in.waits = true
		}
	}
	return nil
}

// answer looks at what became of one.
func (in *incoming) answer(left *driver.Posting, r *JobResult) {
	refuse := func(reason string) {
		in.refuse = append(in.refuse, driver.Op{
			Kind: driver.Refuse, Job: left.ID, Request: in.board.random.next(), Inbox: left.Sequence, Reason: cleanReason(reason),
		})
	}
	switch kind := job.KindOf(r.Err); {
	case r.Err == nil && r.Existing:
		refuse("") // the job that has its key stands for it
	case r.Err == nil:
		in.done++
	case kind == job.NotFound: // another host was faster
	case kind == job.Invalid && (in.waits || in.raced) && strings.Contains(r.Err.Error(), "after["):
		in.waits = true // for one that waits, perhaps, or that another host has just posted
	case kind == job.Invalid, kind == job.Unsupported, kind == job.AlreadyExists, kind == job.Corrupt,
		kind == job.NotEligible: // its batch is closed
		refuse(job.MessageOf(r.Err))
	default:
		in.waits, in.full = true, in.full || kind == job.QuotaExceeded
	}
}
