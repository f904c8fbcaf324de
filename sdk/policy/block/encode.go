package block

import (
	"encoding/binary"
	"errors"
	"strings"
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

// seen says which labels a policy is shown: policy.Sees, prepared.
type seen struct {
	exact    []string
	prefixes []string
	none     bool
}

func seenBy(patterns []string) seen {
	s := seen{none: len(patterns) == 0}
	for _, p := range patterns {
		if prefix, open := strings.CutSuffix(p, "*"); open {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			s.exact = append(s.exact, p)
		}
	}
	return s
}

func (s *seen) sees(key string) bool {
	for i := range s.exact {
		if e := s.exact[i]; len(e) == len(key) && e == key {
			return true
		}
	}
	for i := range s.prefixes {
		if strings.HasPrefix(key, s.prefixes[i]) {
			return true
		}
	}
	return false
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

// known are labels' keys that were asked about. Jobs of a board share the memory
// of their keys, so a look at where the text stands answers the question again;
// holding on to it keeps that place from being used for another text. Mostly a job
// has the labels that the one before had, so a key is looked for at its place
// among them first, and then by where its text stands.
type known struct {
	last [8]answer // by place
	all  [16]answer
}

type answer struct {
	key  string
	sees bool
}

// is reports whether an answer is about a key.
func (a *answer) is(key string) bool {
	return unsafe.StringData(a.key) == unsafe.StringData(key) && len(a.key) == len(key) && a.key != ""
}

// ask answers the question about the label at a place that the one before did not
// have there.
func (k *known) ask(s *seen, place uint, key string) bool {
	at := uintptr(unsafe.Pointer(unsafe.StringData(key)))
	e := &k.all[(at^at>>4^at>>8)%uintptr(len(k.all))]
	if !e.is(key) {
		*e = answer{key, s.sees(key)}
	}
	k.last[place] = *e
	return e.sees
}

// begin writes everything before the records and clears the records and the out
// area.
func (f *form) begin(room []byte, call abi.Call, now time.Time, worker []job.Label, n, recordSize, outSize int) (w writer, err error) {
	w = writer{form: f, room: room}
	text := align(len(f.prefix))
	table := text + abi.TextSize
	if table > len(room) {
		return w, errRoom
	}
	copy(room, f.prefix)
	clear(room[len(f.prefix):table])
	w.end = table
	if f.manifest.ByWorker {
		w.labels(room[abi.HWorker:], worker, &f.worker, &known{})
	} else {
		putPair(room[abi.HWorker:], table, 0)
	}
	records := align(w.end)
	w.records, w.out = records, align(records+n*recordSize)
	arena := align(w.out + n*outSize)
	if w.short || arena > len(room) {
		return w, errRoom
	}
	clear(room[w.end:arena])
	w.end = arena
	le.PutUint32(room[abi.HCall:], uint32(call))
	le.PutUint32(room[abi.HCount:], uint32(n))
	putPair(room[abi.HRecords:], w.records, recordSize)
	putPair(room[abi.HOut:], w.out, outSize)
	if f.manifest.ByTime && !now.IsZero() {
		le.PutUint64(room[abi.HNow:], uint64(now.Truncate(f.tick()).UnixNano()))
	}
	putPair(room[abi.HText:], text, abi.TextSize)
	return w, nil
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
	case n > 32, n < 4:
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
	default:
		last := le.Uint32(from[n-4:])
		le.PutUint32(to, le.Uint32(from))
		le.PutUint32(to[n-4:], last)
	}
}

// labels writes those labels that the policy is shown, as a table.
func (w *writer) labels(pair []byte, labels []job.Label, s *seen, k *known) {
	if s.none {
		putPair(pair, w.end, 0)
		return
	}
	room, end := w.room, w.end
	for i := range labels {
		l := &labels[i]
		place := uint(i) % uint(len(k.last))
		e := &k.last[place]
		shown := e.sees
		if !e.is(l.Key) {
			shown = k.ask(s, place, l.Key)
		}
		if !shown {
			continue
		}
		n := 4 + len(l.Key) + len(l.Value)
		if n > len(room)-end || len(l.Key)|len(l.Value) > 0xffff {
			w.short = true
			return
		}
		at := room[end : end+n]
		le.PutUint32(at, uint32(len(l.Key))|uint32(len(l.Value))<<16)
		put(at[4:4+len(l.Key)], l.Key)
		put(at[4+len(l.Key):], l.Value)
		end += n
	}
	putPair(pair, w.end, end-w.end)
	w.end = end
}

// job writes record i.
func (w *writer) job(i int, j *policy.Job) {
	r := (*[abi.JobSize]byte)(w.room[w.records+i*abi.JobSize:])
	*(*[16]byte)(r[abi.JID:]) = j.ID
	le.PutUint64(r[abi.JSequence:], j.Sequence)
	le.PutUint64(r[abi.JCreated:], uint64(nanos(j.CreatedAt)))
	le.PutUint64(r[abi.JNotBefore:], uint64(nanos(j.NotBefore)))
	le.PutUint32(r[abi.JPriority:], uint32(int32(j.Priority)))
	le.PutUint32(r[abi.JAttempt:], uint32(j.Attempt))
	le.PutUint32(r[abi.JMaxAttempts:], uint32(j.MaxAttempts))
	le.PutUint32(r[abi.JOperationPriority:], uint32(j.OperationPriority))
	w.text(r[abi.JName:], j.Name)
	w.labels(r[abi.JLabels:], j.Labels, &w.jobs, &w.known)
	w.facts(r[abi.JFacts:], j.Facts)
}

// nanos returns a time as blocks have it; what no int64 holds is cut to the
// nearest that one does.
func nanos(t time.Time) int64 {
	const first, last = -9223372036, 9223372035
	s := t.Unix()
	if s >= first && s <= last {
		return s*1e9 + int64(t.Nanosecond())
	}
	switch {
	case t.IsZero():
		return 0
	case s < first:
		return first * 1e9
	}
	return last * 1e9
}

// facts writes one cell for each fact of the manifest.
func (w *writer) facts(pair []byte, facts []policy.Fact) {
	n := min(len(w.manifest.Facts), len(facts))
	start := align(w.end)
	if n == 0 {
		putPair(pair, w.end, 0)
		return
	}
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
}
