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

func putPair(b []byte, at, n int) { le.PutUint64(b, pair(at, n)) }

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
	text := align(len(f.prefix))
	table := text + abi.TextSize
	if table > len(room) {
		return errRoom
	}
	copy(room, f.prefix)
	clear(room[len(f.prefix):table])
	w.end = table
	if f.manifest.ByWorker {
		le.PutUint64(room[abi.HWorker:], w.workerLabels(worker))
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
		// Whoever asks has cut it to the tick, or to what a verdict named within one.
		le.PutUint64(room[abi.HNow:], uint64(now.Truncate(policy.MinTick).UnixNano()))
	}
	putPair(room[abi.HText:], text, abi.TextSize)
	return nil
}

// finish writes the block's length and returns it.
func (w *writer) finish() (int, error) {
	if w.short {
		return 0, errRoom
	}
	le.PutUint32(w.room[abi.HTotal:], uint32(w.end))
	return w.end, nil
}

// pair is how a place in the block and a length or count stand together.
func pair(at, n int) uint64 { return uint64(uint32(at)) | uint64(n)<<32 }

// text writes a text and returns the pair that points to it.
func (w *writer) text(s string) uint64 {
	at := w.end
	if len(s) > len(w.room)-at {
		w.short = true
		return 0
	}
	w.end += len(s)
	if n := len(s); n >= 16 && n <= 32 { // as put does it, without the call
		to, from := unsafe.Add(unsafe.Pointer(unsafe.SliceData(w.room)), at), unsafe.Pointer(unsafe.StringData(s))
		*(*[16]byte)(to) = *(*[16]byte)(from)
		*(*[16]byte)(unsafe.Add(to, n-16)) = *(*[16]byte)(unsafe.Add(from, n-16))
	} else {
		put(w.room[at:w.end], s)
	}
	return pair(at, len(s))
}

// put copies a text to where there is room for as much. Most are short: for those
// a call to copy takes longer than the copying.
func put(room []byte, s string) {
	n := len(s)
	if n > len(room) {
		panic("block: no room for a text")
	}
	to, from := unsafe.Pointer(unsafe.SliceData(room)), unsafe.Pointer(unsafe.StringData(s))
	switch {
	case n > 32:
		copy(room, s)
	case n >= 16:
		*(*[16]byte)(to) = *(*[16]byte)(from)
		*(*[16]byte)(unsafe.Add(to, n-16)) = *(*[16]byte)(unsafe.Add(from, n-16))
	case n >= 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
		*(*[8]byte)(unsafe.Add(to, n-8)) = *(*[8]byte)(unsafe.Add(from, n-8))
	case n >= 4:
		*(*[4]byte)(to) = *(*[4]byte)(from)
		*(*[4]byte)(unsafe.Add(to, n-4)) = *(*[4]byte)(unsafe.Add(from, n-4))
	case n > 0:
		room[0], room[n/2], room[n-1] = s[0], s[n/2], s[n-1]
	}
}

// job writes record i. Numbers of 32 bits that stand beside each other are written
// as pairs are.
func (w *writer) job(i int, j *policy.Job) {
	r := (*[abi.JobSize]byte)(w.room[w.records+i*abi.JobSize:])
	*(*[16]byte)(r[abi.JID:]) = j.ID
	le.PutUint64(r[abi.JSequence:], j.Sequence)
	le.PutUint64(r[abi.JCreated:], uint64(nanos(j.CreatedAt)))
	if le.PutUint64(r[abi.JNotBefore:], 0); !j.NotBefore.IsZero() {
		le.PutUint64(r[abi.JNotBefore:], uint64(nanos(j.NotBefore)))
	}
	le.PutUint64(r[abi.JPriority:], pair(int(j.Priority), int(j.Attempt)))
	le.PutUint64(r[abi.JMaxAttempts:], pair(int(j.MaxAttempts), int(j.OperationPriority)))
	le.PutUint64(r[abi.JName:], w.text(j.Name))
	start := w.end
	if n := w.again(j.Labels); n < len(j.Labels) {
		w.labels(j.Labels[n:])
	}
	le.PutUint64(r[abi.JLabels:], pair(start, w.end-start))
	if le.PutUint64(r[abi.JFacts:], pair(w.end, 0)); len(j.Facts) > 0 {
		le.PutUint64(r[abi.JFacts:], w.facts(j.Facts))
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
func (w *writer) facts(facts []policy.Fact) uint64 {
	n := min(len(w.manifest.Facts), len(facts))
	if n == 0 {
		return pair(w.end, 0)
	}
	start := align(w.end)
	if start+n*abi.CellSize > len(w.room) {
		w.short = true
		return 0
	}
	clear(w.room[w.end : start+n*abi.CellSize])
	w.end = start + n*abi.CellSize
	for i, v := range facts[:n] {
		at := start + i*abi.CellSize
		w.fact(w.room[at:at+abi.CellSize], w.manifest.Facts[i].Type, v)
	}
	return pair(start, n)
}

// key writes record i.
func (w *writer) key(i int, k *policy.Key) {
	at := w.records + i*abi.KeySize
	r := w.room[at : at+abi.KeySize : at+abi.KeySize]
	le.PutUint64(r[abi.KKey:], w.text(k.Key))
	le.PutUint64(r[abi.KRunning:], uint64(k.Running))
	le.PutUint64(r[abi.KWaiting:], uint64(k.Waiting))
	le.PutUint64(r[abi.KServed:], uint64(k.Served))
	le.PutUint64(r[abi.KOldest:], uint64(nanos(k.Oldest)))
	clear(r[abi.KOldest+8:])
}
