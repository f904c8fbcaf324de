package board

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// MaxImportLines is how many lines of an export one call takes.
const MaxImportLines = 1000

// ImportedReason is the reason of a claim's end that an import makes: a claim in hand cannot
// come along in a file.
const ImportedReason = "the board was imported"

// MovedReason is that of one which ends since it could not come along to another store.
const MovedReason = "the board moved to another store"

// Imported says what a call of Import did.
type Imported struct {
	Jobs  int64 // that are new
	Known int64 // that were there already
}

// Import takes in lines as Export gives them; first is the number of the first one, for
// errors. The board has to be paused: a job that a worker ends meanwhile would be forgotten at
// some time, and an import that is begun anew would bring it back. What was taken in before
// is known again, so an import may be repeated. All lines are looked at before the first is
// taken in.
func (b *Board) Import(ctx context.Context, lines []byte, first int64) (Imported, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return Imported{}, err
	}
	pause, paused := b.pause.since()
	if !paused {
		return Imported{}, job.Errorf(job.Precondition, "the board %s is not paused: pause it, import, and resume it then", b.spec.Name)
	}
	if !opened.Capabilities.Imports {
		return Imported{}, job.Errorf(job.Unsupported, "the store of the board %s takes in no jobs of another one", b.spec.Name)
	}
	i := importer{taking: taking{random: &b.random, history: b.spec.History, lost: ImportedReason, groups: opened.Capabilities.Groups, now: time.Now()}, board: b, opened: opened, pause: pause}
	for n := first; len(lines) > 0; n++ {
		line, rest, _ := bytes.Cut(lines, []byte("\n"))
		lines = rest
		if n-first >= MaxImportLines {
			return Imported{}, job.Errorf(job.Invalid, "lines: want at most %d", MaxImportLines)
		}
		if err := i.take(line, n); err != nil {
			return Imported{}, atLine(n, err)
		}
	}
	return i.run(ctx)
}

// atLine says to which line an error belongs.
func atLine(n int64, err error) error {
	e := &job.Error{Kind: job.KindOf(err), Message: "line " + strconv.FormatInt(n, 10) + ": " + err.Error(), Err: err}
	if inner, ok := errors.AsType[*job.Error](err); ok && inner.Message != "" {
		e.Job, e.Message = inner.Job, "line "+strconv.FormatInt(n, 10)+": "+inner.Message
	}
	return e
}

// taking makes ops of jobs as another board had them.
type taking struct {
	random  *entropy
	history time.Duration // of the board that takes them in
	lost    string        // why claims end that do not come along
	groups  bool          // the store counts batches
	now     time.Time
}

type importer struct {
	taking

	board  *Board
	opened *driver.BoardStatus
	pause  time.Time // when the board's pause began

	ops       []driver.Op
	lines     []int64 // of ops
	documents []exportedDocument
}

func (i *importer) take(text []byte, n int64) error {
	var line exportLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return job.Errorf(job.Invalid, "want a line of an export, a JSON object: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return job.Errorf(job.Invalid, "want one JSON object in a line")
	}
	switch {
	case (line.Job == nil) == (line.Document == nil):
		return job.Errorf(job.Invalid, "want a job or a document")
	case line.Document != nil:
		doc := line.Document
		if !slices.Contains(exportSpaces, doc.Space) || doc.Name == "" || !movable(doc.Space, &driver.Document{Name: doc.Name, Data: doc.Data}) {
			return job.Errorf(job.Invalid, "document: want a book, a schedule, a tick or a batch, got %.80q in %.80q", doc.Name, doc.Space)
		}
		i.documents = append(i.documents, *doc)
		return nil
	}
	op, err := i.op(line.Job)
	if err != nil {
		return err
	}
	if err := op.Check(i.opened.Capabilities); err != nil {
		return err
	}
	i.ops, i.lines = append(i.ops, op), append(i.lines, n)
	return nil
}

// op is the op that takes a job in.
func (i *taking) op(e *exportedJob) (driver.Op, error) {
	p, state, err := e.posting()
	if err != nil {
		return driver.Op{}, err
	}
	created := e.Created
	if created.IsZero() {
		created = e.Ended // a tombstone need not know it
	}
	op := driver.Op{
		Kind: driver.Post, Job: p.ID, Request: i.random.next(), Posting: p, Event: job.Posted, Reason: "imported",
		Import: &driver.Import{CreatedAt: created},
	}
	ext, _ := record.ReadExtra(e.Posting) // it was read before
	if i.groups {
		op.Group = ext.Batch
	}
	op.Keys = i.keys(&ext.Unique, created, state)
	status := e.Status
	if state == job.Claimed {
		status = i.lostClaim(e)
	}
	if len(status) > 0 {
		op.Status = &status
	}
	for _, name := range slices.Sorted(maps.Keys(e.Attached)) {
		op.Attach = append(op.Attach, driver.Attachment{Name: name, Data: e.Attached[name]})
	}
	switch {
	case e.Held:
		op.Hold = &driver.Hold{Always: true}
	case !e.NotBefore.IsZero():
		op.Hold = &driver.Hold{Until: e.NotBefore}
	}
	if state == job.Trashed || state == job.Complete {
		then := driver.Op{Kind: driver.Trash, Job: p.ID, Event: job.TrashedEvent, Reason: op.Reason}
		if state == job.Complete {
			if then.Ending, err = i.ending(e); err != nil {
				return driver.Op{}, err
			}
			then.Kind, then.Event = driver.Remove, job.ConsumedEvent
			op.Hold = nil
		}
		op.Import.EndedAt, op.Import.Then = e.Ended, &then
		if i.now.Before(e.Ended) { // by another clock
			op.Import.EndedAt = i.now
		}
	}
	return op, nil
}

// keys returns the keys that a job still has.
func (i *taking) keys(u *job.Unique, created time.Time, state job.State) []driver.Key {
	if u.Window == 0 {
		if state == job.Unclaimed || state == job.Claimed {
			return keysOf(u)
		}
		return nil
	}
	left := *u
	if left.Window -= i.now.Sub(created); left.Window <= 0 {
		return nil
	}
	return keysOf(&left)
}

// lostClaim is the status of a job whose claim the import ends.
func (i *taking) lostClaim(e *exportedJob) []byte {
	s, _ := record.ReadStatus(e.Status) // it was read before
	a := record.Attempt{Owner: shorten.To(e.Owner, job.MaxOwner), Begun: s.Present.Begun, Lease: s.Present.Lease, Ended: time.Now().UTC()}
	s.Lose(i.lost, a)
	s.Requeue()
	return s.Encode()
}

// ending is what is left of a job that ended: all of it as long as this board keeps its
// history, and how it ended as long as a job that waits for it may ask.
func (i *taking) ending(e *exportedJob) (*driver.Ending, error) {
	outcome, err := e.outcome()
	if err != nil {
		return nil, err
	}
	ending := &driver.Ending{Outcome: outcome}
	whole := e.Details != nil || e.DetailsRaw != nil || len(e.Final) > 0
	if !whole && len(e.Status) == 0 {
		return ending, nil
	}
	age := i.now.Sub(e.Ended)
	if keep := i.history - age; keep > 0 && whole {
		ending.Keep, ending.Data, ending.KeepPosting, ending.KeepAttached = keep, e.Final, true, true
	} else if keep := prerequisiteKeep - age; keep > 0 && len(e.Status) > 0 {
		ending.Keep = keep
	}
	return ending, nil
}

// run takes everything in.
func (i *importer) run(ctx context.Context) (Imported, error) {
	var sum Imported
	for k := range i.documents {
		doc, err := i.document(&i.documents[k])
		if err == nil {
			_, err = i.board.putDocument(ctx, i.documents[k].Space, doc)
		}
		if err != nil {
			return sum, err
		}
	}
	var news []*index.Entry
	defer func() { i.board.index.PutAll(news) }() // who counts then counts them
	at := 0
	for part := range slices.Chunk(i.ops, max(1, i.opened.Capabilities.MaxBatch)) {
		for _, r := range i.board.send(ctx, i.opened, part) {
			n, op := i.lines[at], &i.ops[at]
			at++
			if e := i.news(op, &r); e != nil {
				news = append(news, e)
			}
			switch {
			case r.Kind == job.NoKind && r.Repeated:
				sum.Known++
			case r.Kind == job.NoKind:
				sum.Jobs++
			case r.Taken != (job.ID{}):
				return sum, atLine(n, taken(op.Job, &r))
			default:
				return sum, atLine(n, itemError(op.Job, &r))
			}
		}
	}
	return sum, nil
}

// document is a document as it is taken in. A schedule has no ticks before the pause is over: how
// far it was, and the job of its last tick, may come later. A batch that was done is to be
// closed in this store, too.
func (i *importer) document(doc *exportedDocument) (driver.Document, error) {
	in := driver.Document{Name: doc.Name, Data: doc.Data}
	var err error
	switch {
	case doc.Space != driver.SettingSpace:
	case strings.HasPrefix(doc.Name, schedulePrefix):
		var r scheduleRecord
		if err = json.Unmarshal(doc.Data, &r); err == nil {
			r.Imported = i.pause
			in.Data, err = json.Marshal(&r)
		}
	default:
		var r batchRecord
		if err = json.Unmarshal(doc.Data, &r); err == nil && !r.Done.IsZero() {
			r.moved(false)
			in.Data, err = json.Marshal(&r)
		}
	}
	if err != nil {
		return in, &job.Error{Op: "import", Kind: job.Internal, Err: err}
	}
	return in, nil
}

// news is what the index learns of an open job from the answer to its import; nil: nothing,
// and it hears of it from the store.
func (i *importer) news(op *driver.Op, r *driver.Result) *index.Entry {
	if r.Kind != job.NoKind || r.Record == nil || !isOpen(r.Record.State) {
		return nil
	}
	rec := *r.Record
	rec.Posting.Extra = op.Posting.Extra
	e := i.board.entryOf(&rec, time.Now())
	if e.Position == 0 {
		e.Position = r.Position
	}
	i.board.learnFacts(op.Posting, e.Sequence)
	return e
}
