package board

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits of batches.
const (
	MaxBatches  = 100_000            // of a board that are closed or have a Then or an Expected
	BatchKept   = 7 * 24 * time.Hour // for which a batch is known after it is done
	MaxExpected = 1<<40 - 1          // jobs of a batch, as many as a store counts
)

// batchPrefix is before the names of batches among the names of the board's settings, which
// are watched.
const batchPrefix = "batch/"

// A Batch says how the jobs stand that were posted with its name. The store counts each in
// the step that brings it there.
type Batch struct {
	Name     string
	Group    driver.Group // the counts, and whether the batch is closed
	Then     *job.Posting // is posted once the batch is closed and none of its jobs is open; nil: nothing
	ThenID   job.ID       // of that job; zero: it was not posted yet
	Expected int64        // once so many jobs were posted it is closed; 0: by CloseBatch
	Problem  string       // why Then cannot be posted
}

// Done reports whether the batch is closed, none of its jobs is open, and what comes then, if
// anything, was posted.
func (b *Batch) Done() bool {
	return b.Group.Closed && b.Group.Open == 0 && (b.Then == nil || b.ThenID != (job.ID{}))
}

// batchRecord is a batch as its document holds it; there is none of a batch that jobs were
// posted with and that nobody has said more of. The names within Then are those of
// job.Posting.
type batchRecord struct {
	Then     *job.Posting `json:"then,omitempty"`
	ThenID   job.ID       `json:"thenId"` // that Then is or was posted with
	Expected int64        `json:"expected,omitempty"`
	Closed   bool         `json:"closed,omitempty"`   // the store may not know it yet
	Settled  bool         `json:"settled,omitempty"`  // Then is posted now, or was, and cannot be exchanged
	Followed bool         `json:"followed,omitempty"` // Then was posted; the store knows it first
	Problem  string       `json:"problem,omitempty"`
	Done     time.Time    `json:"done,omitzero"` // when that was seen

	// Before is what earlier stores of a board that has moved counted, and the present one
	// does not. It counts as if it did.
	Before endedJobs `json:"before,omitzero"`
}

// open reports whether there is something to do for the batch when its jobs change.
func (r *batchRecord) open() bool { return r.Done.IsZero() && (r.Closed || r.Expected > 0) }

// task is of all that the record says but how far a host came with it, so that it changes where
// there may be something else to do.
func (r *batchRecord) task() [sha256.Size]byte {
	own := *r
	own.Settled, own.Problem = false, ""
	data, _ := json.Marshal(&own) // one that cannot be written has not been read either
	return sha256.Sum256(data)
}

// show is the batch as people see it.
func (r *batchRecord) show(name string, g *driver.Group) Batch {
	b := Batch{Name: name, Group: *r.Before.and(g), Then: r.Then, Expected: r.Expected, Problem: r.Problem}
	if r.Then != nil && (g.Followed || r.Followed) {
		b.ThenID, b.Problem = r.ThenID, ""
	}
	return b
}

// checkBatchOf reports what is wrong with the batch that a posting names.
func checkBatchOf(p *job.Posting, caps *driver.Capabilities) error {
	if p.Batch == "" {
		return nil
	}
	if !caps.Groups {
		return job.Errorf(job.Unsupported, "batch: this board's driver counts no batches: post the job without one, or on a board in another store")
	}
	return checkText("batch", p.Batch, job.MaxBatchName)
}

// checkBatch reports what is wrong with the name of a batch.
func checkBatch(name string, caps *driver.Capabilities) error {
	switch {
	case !caps.Groups:
		return job.Errorf(job.Unsupported, "this board's driver counts no batches: want a board in another store")
	case name == "":
		return job.Errorf(job.Invalid, "name: want a name of 1 to %d bytes", job.MaxBatchName)
	}
	return checkText("name", name, job.MaxBatchName)
}

// PutBatch says what comes after a batch, and with how many jobs it is complete. Both are as
// given: what is left out is taken back. What has been posted cannot be changed any more.
func (b *Board) PutBatch(ctx context.Context, name string, then *job.Posting, expected int64) (Batch, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return Batch{}, err
	}
	if err := checkBatch(name, &opened.Capabilities); err != nil {
		return Batch{}, err
	}
	if expected < 0 || expected > MaxExpected {
		return Batch{}, job.Errorf(job.Invalid, "expected: want 0 (it is closed by a call) to %d jobs, got %d", int64(MaxExpected), expected)
	}
	if then != nil {
		if _, _, err := checkWhole(then, &opened.Capabilities, time.Now()); err != nil {
			return Batch{}, job.Errorf(job.KindOf(err), "then.%s", job.MessageOf(err))
		}
		switch {
		case then.Batch == name:
			return Batch{}, job.Errorf(job.Invalid, "then.batch: it cannot be of the batch that it waits for")
		case then.Unique != job.Unique{}:
			return Batch{}, job.Errorf(job.Invalid, "then.unique: what follows a batch is posted once as it is: want none")
		}
	}
	group, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name})
	if err != nil {
		return Batch{}, err
	}
	r, err := b.changeBatch(ctx, name, func(r *batchRecord) error { return r.put(name, then, expected, group, b.random.newID(time.Now())) })
	if err != nil {
		return Batch{}, err
	}
	b.batches.hint(name)
	return r.show(name, group), nil
}

// put writes what PutBatch is given into a record. The id is for a Then that has none.
func (r *batchRecord) put(name string, then *job.Posting, expected int64, group *driver.Group, id job.ID) error {
	if r.follows(then) {
		if r.Expected != expected {
			r.Expected, r.Done = expected, time.Time{}
		}
		return nil
	}
	if r.Settled || group.Followed || r.Followed {
		return job.Errorf(job.Precondition, "then: what follows the batch %q was posted already, or is about to be", shorten.To(name, 64))
	}
	*r = batchRecord{Closed: r.Closed, Expected: expected, Before: r.Before}
	if then != nil {
		own := *then
		if own.ID != (job.ID{}) {
			id = own.ID
		}
		own.ID = id
		r.Then, r.ThenID = &own, id
	}
	return nil
}

// follows reports whether a posting is what the record has as Then: the one that was given,
// as far as that had no ID.
func (r *batchRecord) follows(then *job.Posting) bool {
	if then == nil || r.Then == nil {
		return then == r.Then
	}
	was := *r.Then
	if then.ID == (job.ID{}) {
		was.ID = job.ID{}
	}
	is, err := json.Marshal(&was)
	wanted, err2 := json.Marshal(then)
	return err == nil && err2 == nil && bytes.Equal(is, wanted)
}

// CloseBatch lets no more jobs into a batch. What follows it is posted once none of its jobs
// is open. It may come twice.
func (b *Board) CloseBatch(ctx context.Context, name string) (Batch, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return Batch{}, err
	}
	if err := checkBatch(name, &opened.Capabilities); err != nil {
		return Batch{}, err
	}
	before, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name})
	if err != nil {
		return Batch{}, err
	}
	if _, err := b.readBatch(ctx, name, nil); errors.Is(err, job.NotFound) && before.Posted() == 0 {
		return Batch{}, err
	}
	r, err := b.changeBatch(ctx, name, func(r *batchRecord) error {
		r.Closed = true
		return nil
	})
	if err != nil {
		return Batch{}, err
	}
	group, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name, Close: true})
	if err != nil {
		return Batch{}, err // it is closed as soon as the store can be reached: the record says so
	}
	b.batches.hint(name)
	return r.show(name, group), nil
}

// Batch returns how a batch stands. With a wait it answers when the batch is done, or the
// wait is over.
func (b *Board) Batch(ctx context.Context, name string, wait time.Duration) (Batch, error) {
	opened, err := b.serving(ctx)
	if err != nil {
		return Batch{}, err
	}
	if err := checkBatch(name, &opened.Capabilities); err != nil {
		return Batch{}, err
	}
	waiting, cancel := waitUntil(ctx, wait)
	defer cancel()
	news, stop := b.batches.listen(name)
	defer stop()
	for {
		shown, err := b.lookAtBatch(ctx, opened, name)
		if err != nil || wait <= 0 || shown.Done() {
			return shown, err
		}
		ended := idle(ctx)
		over := batchNews(waiting, news)
		ended()
		if over {
			return shown, ctx.Err()
		}
	}
}

func (b *Board) lookAtBatch(ctx context.Context, opened *driver.BoardStatus, name string) (Batch, error) {
	group, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name})
	if err != nil {
		return Batch{}, err
	}
	var r batchRecord
	if _, err := b.readBatch(ctx, name, &r); err != nil && (!errors.Is(err, job.NotFound) || group.Posted() == 0) {
		return Batch{}, err
	}
	return r.show(name, group), nil
}

// Batches returns up to most batches whose names come after the given one, in the order of
// their names, and behind which name more may come: those that were put or closed, and those
// of which a job is open. With done they are only those that are done, or that are not; then
// there may be fewer, or none, before the next name.
func (b *Board) Batches(ctx context.Context, after string, most int, done *bool) (list []Batch, next string, err error) {
	opened, err := b.serving(ctx)
	if err != nil {
		return nil, "", err
	}
	if !opened.Capabilities.Groups {
		return nil, "", job.Errorf(job.Unsupported, "this board's driver counts no batches: want a board in another store")
	}
	if err := checkText("pageToken", after, job.MaxBatchName); err != nil {
		return nil, "", err
	}
	records, err := b.batchRecords(ctx, after, most)
	if err != nil {
		return nil, "", err
	}
	names := newFirstNames(after, most)
	for name := range records {
		names.add([]byte(name))
	}
	b.index.EachExtra(func(extra []byte) { names.add(batchOf(extra)) }, func() bool { return ctx.Err() == nil })
	if err := context.Cause(ctx); err != nil {
		return nil, "", &job.Error{Op: "list batches", Kind: job.Interrupted, Err: err}
	}
	page := names.sorted()
	if len(page) == most {
		next = page[most-1]
	}
	ops := make([]driver.Op, len(page))
	for i, name := range page {
		ops[i] = driver.Op{Kind: driver.Tally, Group: name}
	}
	for i, r := range b.send(ctx, opened, ops) {
		group, err := groupOf(&r)
		if err != nil {
			return nil, "", err
		}
		known := records[page[i]]
		if known == nil && group.Posted() == 0 {
			continue // its jobs were forgotten a moment ago
		}
		if known == nil {
			known = &batchRecord{}
		}
		if shown := known.show(page[i], group); done == nil || *done == shown.Done() {
			list = append(list, shown)
		}
	}
	return list, next, nil
}

// batchRecords returns the first records of batches whose names come after the given one.
func (b *Board) batchRecords(ctx context.Context, after string, most int) (map[string]*batchRecord, error) {
	docs, err := b.driver.Documents().List(ctx, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}, batchPrefix+after, most)
	if err != nil {
		return nil, err
	}
	records := make(map[string]*batchRecord, len(docs))
	for i := range docs {
		name, ok := strings.CutPrefix(docs[i].Name, batchPrefix)
		if !ok {
			break
		}
		r := &batchRecord{}
		if json.Unmarshal(docs[i].Data, r) != nil {
			r = &batchRecord{Problem: "its record in the store cannot be read"}
		}
		records[name] = r
	}
	return records, nil
}

// firstNames keeps those of many names that come first after a given one.
type firstNames struct {
	after, last string // names are between them; last is "" while any may come
	most        int
	names       map[string]struct{}
}

func newFirstNames(after string, most int) *firstNames {
	return &firstNames{after: after, most: most, names: map[string]struct{}{}}
}

func (f *firstNames) add(name []byte) {
	if string(name) <= f.after || f.last != "" && string(name) > f.last {
		return
	}
	if _, ok := f.names[string(name)]; ok {
		return
	}
	f.names[string(name)] = struct{}{}
	if len(f.names) > 2*f.most+1024 {
		first := f.sorted()
		clear(f.names)
		for _, n := range first {
			f.names[n] = struct{}{}
		}
		f.last = first[len(first)-1]
	}
}

// sorted returns the names that come first, at most so many as are kept.
func (f *firstNames) sorted() []string {
	list := slices.Sorted(maps.Keys(f.names))
	return list[:min(len(list), f.most)]
}

// askGroup asks how a group stands, or changes that.
func (b *Board) askGroup(ctx context.Context, opened *driver.BoardStatus, op driver.Op) (*driver.Group, error) {
	return groupOf(&b.send(ctx, opened, []driver.Op{op})[0])
}

// groupOf returns how a group stands by the answer to a Tally.
func groupOf(r *driver.Result) (*driver.Group, error) {
	if r.Kind != job.NoKind {
		return r.Group, itemError(job.ID{}, r)
	}
	if r.Group == nil {
		return nil, job.Errorf(job.Internal, "the driver broke its contract: it did not say how the group stands")
	}
	return r.Group, nil
}

// readBatch reads a batch's document into r, unless that is nil.
func (b *Board) readBatch(ctx context.Context, name string, r *batchRecord) (driver.Document, error) {
	doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}, batchPrefix+name)
	if errors.Is(err, job.NotFound) {
		return doc, job.Errorf(job.NotFound, "no job was posted with the batch %q on this board", shorten.To(name, 64))
	}
	if err != nil || r == nil {
		return doc, err
	}
	if err := json.Unmarshal(doc.Data, r); err != nil {
		return doc, &job.Error{Op: "get batch", Kind: job.Corrupt, Message: "the batch's record in the store cannot be read", Err: err}
	}
	return doc, nil
}

// changeBatch writes what change makes of a batch's record, which is empty if there is none,
// and does so again if somebody else was faster. Nothing is written if it changes nothing.
func (b *Board) changeBatch(ctx context.Context, name string, change func(*batchRecord) error) (*batchRecord, error) {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
	for try := 0; ; try++ {
		var r batchRecord
		doc, err := b.readBatch(ctx, name, &r)
		switch {
		case errors.Is(err, job.NotFound) && b.batches.count() >= MaxBatches:
			return nil, job.Errorf(job.QuotaExceeded, "a board has at most %d batches that are closed or followed by something", MaxBatches)
		case err != nil && !errors.Is(err, job.NotFound):
			return nil, err
		}
		if err := change(&r); err != nil {
			return nil, err
		}
		data, err := r.encode()
		switch {
		case err != nil:
			return nil, err
		case bytes.Equal(data, doc.Data):
			return &r, nil
		}
		switch version, err := docs.Put(ctx, space, driver.Document{Name: batchPrefix + name, Data: data}, doc.Version); {
		case err == nil:
			b.batches.learn(name, &r, version)
			return &r, nil
		case try == tries || !errors.Is(err, job.Aborted):
			return nil, err
		}
	}
}

// encode is the record as its document holds it.
func (r *batchRecord) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, &job.Error{Op: "put batch", Kind: job.Internal, Err: err}
	}
	if len(data) > driver.MaxDocument/8 {
		return nil, job.Errorf(job.Invalid, "then: %d bytes are too many: want at most %d", len(data), driver.MaxDocument/8)
	}
	return data, nil
}
