package board

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// MaxLogBatch is how many entries one call appends or reads.
const MaxLogBatch = 1000

// LogRequest asks for entries to be appended to the log of a claimed job.
type LogRequest struct {
	Ref       Ref
	Index     int32          // of the operation that they are about; 0 for a job without
	Entries   []job.LogEntry // of which only Type and Message count
	RequestID string         // a call that repeats the last one adds nothing; "": never a repetition
}

// LogResult is what appending gave.
type LogResult struct {
	Last            int64 // serial of the job's last entry
	CancelRequested bool
}

// AppendLog adds entries to the log of a claimed job. Serials grow by one. Where
// the log is full, the oldest entries go.
func (b *Board) AppendLog(ctx context.Context, req LogRequest) (LogResult, error) {
	if err := checkLog(&req); err != nil {
		return LogResult{}, err
	}
	a, proof, err := b.alterClaim(ctx, req.Ref)
	if err != nil {
		return LogResult{}, err
	}
	if !a.opened.Capabilities.Attachments {
		return LogResult{}, job.Errorf(job.Unsupported, "the store behind this board keeps no logs")
	}
	p := &appender{board: b, req: &req, request: requestDigest(req.RequestID)}
	var result LogResult
	a.plan = func(_ int, s *currentJob) (driver.Op, error) {
		if err := b.refusal(a.ids[0], proof, s); err != nil {
			return driver.Op{}, err
		}
		result = LogResult{Last: s.status.Log.Last, CancelRequested: s.status.Canceling()}
		if p.request != 0 && p.request == s.status.Log.Request || len(req.Entries) == 0 {
			return driver.Op{}, errUnchanged
		}
		return p.op(ctx, proof, s)
	}
	a.done = func(_ int, _ *currentJob, r *driver.Result) {
		if r.Kind == job.NoKind {
			result.Last = p.last
			b.logs.appended(req.Ref.ID, p.entries, p.tail)
			b.metrics.LogEntries.Add(int64(len(p.entries)))
		}
	}
	if err := a.runOne(ctx); err != nil {
		return LogResult{}, err
	}
	return result, nil
}

func checkLog(req *LogRequest) error {
	if len(req.Entries) > MaxLogBatch {
		return job.Errorf(job.Invalid, "entries: %d are too many: want at most %d", len(req.Entries), MaxLogBatch)
	}
	if len(req.RequestID) > MaxRequestID {
		return job.Errorf(job.Invalid, "requestId: want at most %d bytes", MaxRequestID)
	}
	size := 0
	for i := range req.Entries {
		e := &req.Entries[i]
		if problem := textProblem(e.Message, job.MaxLogMessage); problem != "" {
			return job.Errorf(job.Invalid, "entries[%d].message: %s", i, problem)
		}
		if problem := textProblem(e.Type, job.MaxLogType); problem != "" {
			return job.Errorf(job.Invalid, "entries[%d].type: %s", i, problem)
		}
		if e.Type == job.LogCut {
			return job.Errorf(job.Invalid, "entries[%d].type: %q stands for what is not kept any more: want another word", i, job.LogCut)
		}
		size += len(e.Message) + len(e.Type)
	}
	if size > job.MaxLogAppend {
		return job.Errorf(job.Invalid, "entries: %d bytes are too many for one call: want at most %d", size, job.MaxLogAppend)
	}
	return nil
}

func requestDigest(id string) uint64 {
	if id == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(id))
	return max(binary.LittleEndian.Uint64(sum[:]), 1)
}

// appender is one call of AppendLog.
type appender struct {
	board   *Board
	req     *LogRequest
	request uint64

	entries []job.LogEntry // as they were sent
	tail    record.Tail    // after them
	last    int64
}

// op makes the op that appends the entries.
func (p *appender) op(ctx context.Context, proof *proof, s *currentJob) (driver.Op, error) {
	if most := max(s.status.Operations.Len(), 1); p.req.Index < 0 || int(p.req.Index) >= most {
		return driver.Op{}, job.Errorf(job.Invalid, "index: want 0 to %d, got %d", most-1, p.req.Index)
	}
	log := &s.status.Log
	now := time.Now().UTC().Truncate(time.Microsecond)
	p.entries = slices.Clone(p.req.Entries)
	for i := range p.entries {
		e := &p.entries[i]
		e.Serial, e.Index, e.At = log.Last+int64(i)+1, p.req.Index, now
	}
	old, start, deleted, err := p.begin(ctx, s)
	if err != nil {
		return driver.Op{}, err
	}
	chunks, contents := record.Chunked(start, slices.Concat(old, p.entries))
	after := s.status
	after.Log = record.Log{Last: log.Last + int64(len(p.entries)), Request: p.request}
	if len(deleted) == 0 {
		kept := log.Chunks
		if start.Data != nil {
			kept = kept[:len(kept)-1] // it is written anew
		}
		after.Log.Chunks = slices.Concat(kept, chunks)
	} else {
		after.Log.Chunks = chunks
	}
	attach := p.attach(chunks, contents, deleted, &after.Log)
	last := len(chunks) - 1
	p.tail = record.Tail{First: chunks[last].First, Last: after.Log.Last, Data: contents[last]}
	p.last = after.Log.Last
	encoded := after.Encode()
	op := proof.op(driver.Update)
	op.Version, op.Status, op.Attach = s.entry.Version, &encoded, attach
	op.Event, op.Reason = job.OperationEvent, fmt.Sprintf("log of operation %d up to %d", p.req.Index, p.last)
	return op, nil
}

// begin says where the entries go: behind the last chunk, where it is at hand,
// else into a new one. Where there are too many chunks, all of them are read to be
// put together, and come back as old entries.
func (p *appender) begin(ctx context.Context, s *currentJob) (old []job.LogEntry, start record.Tail, deleted []record.Chunk, err error) {
	log := &s.status.Log
	if tail, ok := p.board.logs.tail(p.req.Ref.ID, log); ok {
		return nil, tail, nil, nil
	}
	if len(log.Chunks) < record.MaxChunks {
		return nil, record.Tail{}, nil, nil
	}
	old, _, err = p.board.readLog(ctx, p.req.Ref.ID)
	return old, record.Tail{}, log.Chunks, err
}

// attach makes the attached records that change.
func (p *appender) attach(chunks []record.Chunk, contents [][]byte, deleted []record.Chunk, log *record.Log) []driver.Attachment {
	for _, c := range log.Trim() {
		at := slices.Index(chunks, c)
		if at < 0 {
			deleted = append(slices.Clip(deleted), c)
			continue
		}
		contents[at] = nil // it would be dropped at once
	}
	var attach []driver.Attachment
	written := make(map[string]bool, len(chunks))
	for i, c := range chunks {
		if contents[i] != nil {
			written[c.Name()] = true
			attach = append(attach, driver.Attachment{Name: c.Name(), Data: contents[i]})
		}
	}
	for _, c := range deleted {
		if name := c.Name(); !written[name] {
			attach = append(attach, driver.Attachment{Name: name, Delete: true})
		}
	}
	return attach
}

// readLog reads the log of a job from the store, and says whether the job has
// ended or is in the trash, so that no more will come for now.
func (b *Board) readLog(ctx context.Context, id job.ID) (entries []job.LogEntry, ended bool, err error) {
	stay := b.flight.read()
	records, err := b.read(ctx, []job.ID{id}, driver.Attached)
	b.flight.done(stay)
	if err != nil {
		return nil, false, err
	}
	rec := &records[0]
	if rec.State == job.Unknown {
		return nil, true, absent(id, rec)
	}
	entries, err = logOf(rec.Attached)
	if err != nil {
		b.unreadable(id, "log", err)
		return nil, !isOpen(rec.State), unreadableLog(id)
	}
	return entries, !isOpen(rec.State), nil
}

// showLog shows the log of a job among its attached records.
func (b *Board) showLog(j *job.Job, attached []driver.Attachment) error {
	entries, err := logOf(attached)
	if err != nil {
		b.unreadable(j.ID, "log", err)
		return unreadableLog(j.ID)
	}
	if j.Log = entriesAfter(entries, 0); len(j.Log) > 0 {
		// An append may have come after the job was read.
		j.LogSerial = max(j.LogSerial, j.Log[len(j.Log)-1].Serial)
	}
	return nil
}

func unreadableLog(id job.ID) error {
	return &job.Error{Job: id, Kind: job.Corrupt, Message: "the job's log in the store cannot be read"}
}

// logOf decodes the chunks among attached records, in the order of their serials.
func logOf(list []driver.Attachment) ([]job.LogEntry, error) {
	var entries []job.LogEntry
	for i := range list {
		text, ok := strings.CutPrefix(list[i].Name, record.LogPrefix)
		if !ok {
			continue
		}
		var first int64
		if _, err := fmt.Sscanf(text, "%d", &first); err != nil || first < 1 {
			return nil, record.ErrRecord
		}
		part, err := record.ReadChunk(list[i].Data, first)
		if err != nil {
			return nil, err
		}
		entries = append(entries, part...)
	}
	return entries, nil
}

// entriesAfter returns the entries after a serial. Where some of these are not kept
// any more, it begins with an entry that says so.
func entriesAfter(entries []job.LogEntry, serial int64) []job.LogEntry {
	n, _ := slices.BinarySearchFunc(entries, serial+1, func(e job.LogEntry, s int64) int { return int(e.Serial - s) })
	entries = entries[n:]
	if len(entries) == 0 || entries[0].Serial == serial+1 {
		return entries
	}
	first := &entries[0]
	cut := job.LogEntry{
		Serial: first.Serial - 1, Index: first.Index, At: first.At, Type: job.LogCut,
		Message: fmt.Sprintf("%d entries before this are not kept any more", first.Serial-1-serial),
	}
	return append([]job.LogEntry{cut}, entries...)
}
