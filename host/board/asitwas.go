package board

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// AsItWasReason is the reason of a claim's end that PostAsItWas makes: a claim in hand is no
// part of what is kept of a job.
const AsItWasReason = "the job was posted as it was, without its claim"

// asItWasEvent is the reason of the event that says that a job is there.
const asItWasEvent = "posted as it was"

// readWhole reads jobs again with all that belongs to them.
func (b *Board) readWhole(ctx context.Context, ids []job.ID, records []driver.Record) error {
	for part := range slices.Chunk(ids, exportChunk) {
		read, err := b.read(ctx, part, exportParts)
		if err != nil {
			return err
		}
		records = records[copy(records, read):]
	}
	return nil
}

// asItWas is a record with all its parts as PostAsItWas takes it.
func asItWas(rec *driver.Record) (*job.AsItWas, error) {
	text, err := json.Marshal(exported(rec))
	if err != nil {
		return nil, &job.Error{Op: "get", Job: rec.Posting.ID, Kind: job.Internal, Err: err}
	}
	return &job.AsItWas{Format: job.AsItWasFormat, Record: text, SHA256: hexSum(text)}, nil
}

func hexSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A WholeJob is a job that PostAsItWas can post.
type WholeJob struct {
	Shown *job.Job // as GetJobs showed it, but for what is a board's own

	line *exportedJob
}

// ReadAsItWas reads a job whole. Nothing is asked of the store.
func (b *Board) ReadAsItWas(a *job.AsItWas) (*WholeJob, error) {
	switch {
	case a == nil || a.Format == 0 && len(a.Record) == 0:
		return nil, job.Errorf(job.Invalid, "asItWas: want the job whole, as GetJobs gives it where its fields name asItWas")
	case a.Format > job.AsItWasFormat:
		return nil, job.Errorf(job.Invalid, "asItWas.format: it is %d, of a newer version of boardd, and this one reads %d: want a server of the version that wrote it, or a later one",
			a.Format, job.AsItWasFormat)
	case a.Format != job.AsItWasFormat:
		return nil, job.Errorf(job.Invalid, "asItWas.format: want %d, got %d", job.AsItWasFormat, a.Format)
	case a.SHA256 != hexSum(a.Record):
		return nil, job.Errorf(job.Invalid, "asItWas.record: it was cut off or changed: its %d bytes do not have the checksum %.80q", len(a.Record), a.SHA256)
	}
	line := &exportedJob{}
	d := json.NewDecoder(bytes.NewReader(a.Record))
	d.DisallowUnknownFields()
	if err := d.Decode(line); err != nil {
		return nil, job.Errorf(job.Invalid, "asItWas.record: want a job as a board keeps it: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, job.Errorf(job.Invalid, "asItWas.record: want one JSON object")
	}
	rec, err := line.record()
	if err != nil {
		return nil, err
	}
	ext, _ := record.ReadExtra(rec.Posting.Extra) // it was read before
	shown := recordShown(b.entryAlone(rec, &ext, time.Now()), rec)
	showOperations(shown, rec, rec.Status)
	return &WholeJob{Shown: shown, line: line}, b.showLog(shown, rec.Attached)
}

// record is the record that a line was made of, as far as the line has it.
func (e *exportedJob) record() (*driver.Record, error) {
	p, state, err := e.posting()
	if err != nil {
		return nil, err
	}
	p.CreatedAt = e.Created
	r := &driver.Record{Posting: *p, State: state, EndedAt: e.Ended, NotBefore: e.NotBefore, Held: e.Held, Status: e.Status, Final: e.Final}
	if state == job.Complete {
		if r.Outcome, err = e.outcome(); err != nil {
			return nil, err
		}
	}
	if state == job.Claimed {
		r.Holder = &driver.Holder{Owner: e.Owner, NoExpiry: true}
	}
	for name, data := range e.Attached {
		r.Attached = append(r.Attached, driver.Attachment{Name: name, Data: data})
	}
	slices.SortFunc(r.Attached, func(a, b driver.Attachment) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return r, nil
}

// PostAsItWas puts jobs on the board as they were when they were read: with their uuids, ages,
// states, attempts, operations and logs, but without claims. A job that the board knows in
// any state is AlreadyExists. No limit keeps a job off, though it counts.
func (b *Board) PostAsItWas(ctx context.Context, jobs []*WholeJob) ([]JobResult, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return nil, err
	}
	if len(jobs) > MaxBatch {
		return nil, job.Errorf(job.Invalid, "jobs: %d are too many: want at most %d", len(jobs), MaxBatch)
	}
	if !opened.Capabilities.Imports {
		return nil, job.Errorf(job.Unsupported, "the store of the board %s takes in no jobs as they were: want one on another store, or post them as new ones", b.spec.Name)
	}
	w := &wholePoster{
		taking: taking{random: &b.random, history: b.spec.History, lost: AsItWasReason, groups: opened.Capabilities.Groups, now: time.Now()},
		board:  b, opened: opened, results: make([]JobResult, len(jobs)),
	}
	for i, j := range jobs {
		op, err := w.op(j.line)
		if err == nil {
			err = op.Check(opened.Capabilities)
		}
		if err != nil {
			w.results[i].Err = err
			continue
		}
		if op.Reason = asItWasEvent; op.Import.Then != nil {
			op.Import.Then.Reason = asItWasEvent
		}
		w.ops, w.ids, w.of = append(w.ops, op), append(w.ids, op.Job), append(w.of, i)
	}
	if len(w.ids) == 0 {
		return w.results, nil
	}
	return w.results, b.rounds(ctx, w.ids, func(items []int) []*index.Entry { return w.post(ctx, items) })
}

// wholePoster is one call of PostAsItWas. Of ids, ops and of, each item is one job that
// passed; of is its place in the results.
type wholePoster struct {
	taking

	board   *Board
	opened  *driver.BoardStatus
	results []JobResult
	ids     []job.ID
	ops     []driver.Op
	of      []int
}

// post sends the items that the board does not know, and returns what is news to the index.
func (w *wholePoster) post(ctx context.Context, items []int) (news []*index.Entry) {
	ids := make([]job.ID, len(items))
	for n, i := range items {
		ids[n] = w.ids[i]
	}
	there, err := w.board.read(ctx, ids, 0)
	if err != nil {
		for _, i := range items {
			w.results[w.of[i]].Err = itemError(w.ids[i], &driver.Result{Kind: job.Unavailable, Message: "the board could not be asked whether the job is there: " + err.Error()})
		}
		return nil
	}
	var ops []driver.Op
	var of []int
	for n, i := range items {
		if err := known(ids[n], &there[n]); err != nil {
			w.results[w.of[i]].Err = err
			continue
		}
		ops, of = append(ops, w.ops[i]), append(of, i)
	}
	if len(ops) == 0 {
		return nil
	}
	now := time.Now()
	for n, r := range w.board.send(ctx, w.opened, ops) {
		if e := w.answer(of[n], &r, now); e != nil {
			news = append(news, e)
		}
	}
	return news
}

// known refuses a job that the board knows.
func known(id job.ID, there *driver.Record) error {
	e := &job.Error{Job: id, Kind: job.AlreadyExists}
	switch {
	case there.Corrupt != "":
		return corrupt(id, there.Corrupt)
	case there.State == job.Unknown:
		return nil
	case there.State == job.Trashed:
		e.Message = "the job is in the board's trash: want it restored, or purged before it is posted as it was"
	case there.State == job.Complete:
		e.Message = fmt.Sprintf("the board remembers the job, COMPLETE and %s: want it purged before it is posted as it was", there.Outcome)
	default:
		e.Message = fmt.Sprintf("the job is on the board, %s", there.State)
	}
	return e
}

// answer makes an item's result of the store's answer, and returns what is news to the index.
func (w *wholePoster) answer(item int, r *driver.Result, now time.Time) *index.Entry {
	op, result := &w.ops[item], &w.results[w.of[item]]
	switch {
	case r.Kind == job.Precondition && op.Group != "":
		result.Err = batchClosed(op)
		return nil
	case r.Kind != job.NoKind:
		result.Err = itemError(op.Job, r)
		return nil
	case r.Record == nil:
		result.Err = &job.Error{Job: op.Job, Kind: job.OutcomeUnknown, Message: "the driver broke its contract: it did not show the posted job"}
		return nil
	}
	w.board.metrics.Posted.Add(1)
	if op.Group != "" && w.board.batches.watched.Load() > 0 {
		w.board.batches.hint(op.Group)
	}
	rec := *r.Record
	rec.Posting.Extra, rec.Attached = op.Posting.Extra, op.Attach
	ext, _ := record.ReadExtra(op.Posting.Extra) // it was read before
	e := w.board.entryWith(&rec, &ext, now)
	if e.Position == 0 {
		e.Position = r.Position
	}
	w.board.learnFacts(op.Posting, e.Sequence)
	if result.Job = recordShown(e, &rec); rec.State != job.Complete {
		showDetails(result.Job, op.Posting)
	}
	showOperations(result.Job, &rec, rec.Status)
	if !isOpen(rec.State) {
		return nil
	}
	return e
}
