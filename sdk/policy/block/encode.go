package block

import (
	"encoding/binary"
	"errors"
	"time"
	"unsafe"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// errRoom says that a block did not fit; what asked for it asks for less.
var errRoom = errors.New("the block is larger than its room")

// form is what all blocks of one policy have in common.
type form struct {
	manifest *policy.Manifest
	prefix   []byte // header and parameters
	jobs     seen
	worker   seen
}

// newForm encodes what does not change from call to call.
func newForm(m *policy.Manifest, parameters []byte, count int) *form {
	f := &form{manifest: m, jobs: seenBy(m.Labels), worker: seenBy(m.WorkerLabels)}
	f.prefix = make([]byte, abi.HeaderSize, abi.HeaderSize+len(parameters))
	h := f.prefix
	le.PutUint32(h[abi.HMagic:], abi.Magic)
	le.PutUint16(h[abi.HMajor:], abi.Major)
	le.PutUint16(h[abi.HMinor:], abi.Minor)
	le.PutUint32(h[abi.HHeaderSize:], abi.HeaderSize)
	putPair(h[abi.HParameters:], abi.HeaderSize, count)
	f.prefix = append(f.prefix, parameters...)
	return f
}

var le = binary.LittleEndian

func putPair(b []byte, at, n int) {
	le.PutUint32(b, uint32(at))
	le.PutUint32(b[4:], uint32(n))
}

func align(n int) int { return (n + abi.Alignment - 1) &^ (abi.Alignment - 1) }

// A writer lays out one block in its room: header, parameters, text, worker,
// records, out area, and behind them the texts that records point to.
type writer struct {
	*form
	room    []byte
	end     int // of what is written
	known   known
	records int
	out     int
	short   bool
}

// begin writes everything before the records, and clears the out area. The
// records, of which each byte is written later, it leaves.
func (w *writer) begin(f *form, room []byte, call abi.Call, now time.Time, worker []job.Label, n, recordSize, outSize int) error {
	w.form, w.room, w.short = f, room, false
	w.known.seen = &f.jobs
	text := align(len(f.prefix))
	table := text + abi.TextSize
	if table > len(room) {
		return errRoom
	}
	copy(room, f.prefix)
	clear(room[len(f.prefix):table])
	w.end = table
	if f.manifest.ByWorker {
		w.labels(room[abi.HWorker:], worker, &known{seen: &f.worker})
	} else {
		putPair(room[abi.HWorker:], table, 0)
	}
	records := align(w.end)
	w.records, w.out = records, align(records+n*recordSize)
	arena := align(w.out + n*outSize)
	if w.short || arena > len(room) {
		return errRoom
	}
	clear(room[w.end:records])
	clear(room[w.out:arena])
	w.end = arena
	le.PutUint32(room[abi.HCall:], uint32(call))
	le.PutUint32(room[abi.HCount:], uint32(n))
	putPair(room[abi.HRecords:], w.records, recordSize)
	putPair(room[abi.HOut:], w.out, outSize)
	if f.manifest.ByTime && !now.IsZero() {
		le.PutUint64(room[abi.HNow:], uint64(now.Truncate(f.tick()).UnixNano()))
	}
	putPair(room[abi.HText:], text, abi.TextSize)
	return nil
}

func (f *form) tick() time.Duration {
	if f.manifest.Tick > 0 {
		return f.manifest.Tick
	}
	return policy.DefaultTick
}

// finish writes the block's length and returns it.
func (w *writer) finish() (int, error) {
	if w.short {
		return 0, errRoom
	}
	le.PutUint32(w.room[abi.HTotal:], uint32(w.end))
	return w.end, nil
}

// text writes a text and the pair that points to it.
func (w *writer) text(pair []byte, s string) {
	if len(s) > len(w.room)-w.end {
		w.short = true
		return
	}
	putPair(pair, w.end, len(s))
	put(w.room[w.end:w.end+len(s)], s)
	w.end += len(s)
}

// put copies a text, of which most are short: for those a call to copy takes
// longer than the copying.
func put(to []byte, s string) {
	from := unsafe.Slice(unsafe.StringData(s), len(s))
	switch n := len(from); {
	case n > 32:
		copy(to, from)
	case n > 16:
		first, second, third, last := le.Uint64(from), le.Uint64(from[8:]), le.Uint64(from[n-16:]), le.Uint64(from[n-8:])
		le.PutUint64(to, first)
		le.PutUint64(to[8:], second)
		le.PutUint64(to[n-16:], third)
		le.PutUint64(to[n-8:], last)
	case n >= 8:
		last := le.Uint64(from[n-8:])
		le.PutUint64(to, le.Uint64(from))
		le.PutUint64(to[n-8:], last)
	case n >= 4:
		last := le.Uint32(from[n-4:])
		le.PutUint32(to, le.Uint32(from))
		le.PutUint32(to[n-4:], last)
	case n > 0:
		to[0], to[n/2], to[n-1] = from[0], from[n/2], from[n-1]
	}
}

// job writes record i.
func (w *writer) job(i int, j *policy.Job) {
	r := (*[abi.JobSize]byte)(w.room[w.records+i*abi.JobSize:])
	*(*[16]byte)(r[abi.JID:]) = j.ID
	le.PutUint64(r[abi.JSequence:], j.Sequence)
	le.PutUint64(r[abi.JCreated:], uint64(nanos(j.CreatedAt)))
	if le.PutUint64(r[abi.JNotBefore:], 0); !j.NotBefore.IsZero() {
		le.PutUint64(r[abi.JNotBefore:], uint64(nanos(j.NotBefore)))
	}
	le.PutUint32(r[abi.JPriority:], uint32(int32(j.Priority)))
	le.PutUint32(r[abi.JAttempt:], uint32(j.Attempt))
	le.PutUint32(r[abi.JMaxAttempts:], uint32(j.MaxAttempts))
	le.PutUint32(r[abi.JOperationPriority:], uint32(j.OperationPriority))
	w.text(r[abi.JName:], j.Name)
	w.labels(r[abi.JLabels:], j.Labels, &w.known)
	if len(w.manifest.Facts) == 0 || len(j.Facts) == 0 {
		putPair(r[abi.JFacts:], w.end, 0)
	} else {
		w.facts(r[abi.JFacts:], j.Facts)
	}
	clear(r[abi.JFacts+8:])
}

// The first and the last second whose nanoseconds since 1970 an int64 holds.
const first, last = -9223372036, 9223372035

// nanos returns a time as blocks have it.
func nanos(t time.Time) int64 {
	if s := t.Unix(); s >= first && s <= last {
		return s*1e9 + int64(t.Nanosecond())
	}
	return far(t)
}

// far returns the nearest that an int64 holds to a time that none does, and 0 for
// no time.
func far(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() < first:
		return first * 1e9
	}
	return last * 1e9
}

// facts writes one cell for each fact of the manifest.
func (w *writer) facts(pair []byte, facts []policy.Fact) {
	n := min(len(w.manifest.Facts), len(facts))
	start := align(w.end)
	if start+n*abi.CellSize > len(w.room) {
		w.short = true
		return
	}
	clear(w.room[w.end : start+n*abi.CellSize])
	w.end = start + n*abi.CellSize
	for i, v := range facts[:n] {
		at := start + i*abi.CellSize
		w.fact(w.room[at:at+abi.CellSize], w.manifest.Facts[i].Type, v)
	}
	putPair(pair, start, n)
}

// key writes record i.
func (w *writer) key(i int, k *policy.Key) {
	at := w.records + i*abi.KeySize
	r := w.room[at : at+abi.KeySize : at+abi.KeySize]
	w.text(r[abi.KKey:], k.Key)
	le.PutUint64(r[abi.KRunning:], uint64(k.Running))
	le.PutUint64(r[abi.KWaiting:], uint64(k.Waiting))
	le.PutUint64(r[abi.KServed:], uint64(k.Served))
	le.PutUint64(r[abi.KOldest:], uint64(nanos(k.Oldest)))
	clear(r[abi.KOldest+8:])
}
