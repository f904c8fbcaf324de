package guest

import (
	"unsafe"

	"github.com/boardd/boardd/sdk/policy/abi"
)

// Batch is a block: what a policy is shown at once. Everything that it gives out
// is valid until the call returns.
type Batch struct{ *view }

// view is what a batch, its jobs and its keys have in common. They are passed
// around by value, which compilers for WebAssembly do through memory, so they
// are small.
type view struct {
	mem                 []byte
	records, recordSize int
	out, outSize        int
	count               int
}

// Open checks a block's header, so that what the methods read lies inside.
func Open(mem []byte) (Batch, error) {
	if len(mem) < abi.HeaderSize || get32(mem, abi.HMagic) != abi.Magic || mem[abi.HMajor] != abi.Major || mem[abi.HMajor+1] != 0 {
		return Batch{}, ErrBlock
	}
	b := Batch{&view{
		mem:     mem,
		records: int(get32(mem, abi.HRecords)), recordSize: int(get32(mem, abi.HRecordSize)),
		out: int(get32(mem, abi.HOut)), outSize: int(get32(mem, abi.HOutSize)),
		count: int(get32(mem, abi.HCount)),
	}}
	if int(get32(mem, abi.HTotal)) != len(mem) || b.count > abi.MaxRecords || b.recordSize > len(mem) || b.outSize > len(mem) ||
		!b.holds(b.records, b.count*b.recordSize) || !b.holds(b.out, b.count*b.outSize) {
		return Batch{}, ErrBlock
	}
	if !b.holds(b.pair(abi.HText)) || !b.holds(b.pair(abi.HWorker)) {
		return Batch{}, ErrBlock
	}
	return b, b.fits(abi.Call(get32(mem, abi.HCall)))
}

// fits checks the sizes of the records against the call's: larger ones are from
// a later minor version, smaller ones are an error.
func (b Batch) fits(call abi.Call) error {
	record, out := abi.JobSize, 0
	switch call {
	case abi.Eligible:
		out = abi.VerdictSize
	case abi.Score:
		out = abi.ScoreSize
	case abi.RankKeys:
		record, out = abi.KeySize, abi.RankSize
	case abi.Explain:
		if int(get32(b.mem, abi.HIndex)) >= b.count {
			return ErrBlock
		}
	case abi.Configure:
		record = 0
	default:
		return ErrBlock
	}
	if b.recordSize < record || b.outSize < out {
		return ErrBlock
	}
	return nil
}

func (b *view) holds(at, n int) bool {
	return at >= 0 && n >= 0 && at <= len(b.mem) && n <= len(b.mem)-at
}

func (b *view) pair(at int) (int, int) { return int(get32(b.mem, at)), int(get32(b.mem, at+4)) }

// Memory returns the block itself.
func (b Batch) Memory() []byte { return b.mem }

// Len returns how many jobs or keys the batch has.
func (b Batch) Len() int { return b.count }

// Now returns the time in ns since 1970, as of the last tick or Until; 0 if the
// manifest does not declare time.
func (b Batch) Now() int64 { return int64(get64(b.mem, abi.HNow)) }

// Worker returns one of the worker's labels.
func (b Batch) Worker(key string) (string, bool) {
	return b.find(get64(b.mem, abi.HWorker), key)
}

// EachWorkerLabel calls visit for the worker's labels, in the order of their
// keys, until it returns false.
func (b Batch) EachWorkerLabel(visit func(key, value string) bool) { b.workerTable().each(visit) }

func (b Batch) workerTable() table {
	at, n := b.pair(abi.HWorker)
	return b.table(at, n)
}

// Parameter returns a parameter by its place in the manifest.
func (b Batch) Parameter(i int) Cell { return b.cell(abi.HParameters, i) }

// cell returns cell i of the pair at the given place, absent if it has fewer.
func (b Batch) cell(pair, i int) Cell {
	at, n := b.pair(pair)
	if i < 0 || i >= n {
		return Cell{}
	}
	at += i * abi.CellSize
	return Cell{view: b.view, head: (*[abi.CellSize]byte)(b.mem[at:])}
}

// Job returns a job of the batch.
func (b Batch) Job(i int) Job {
	return Job{view: b.view, head: (*[abi.JobSize]byte)(b.mem[b.records+i*b.recordSize:])}
}

// Key returns a key of the batch.
func (b Batch) Key(i int) Key {
	return Key{view: b.view, head: (*[abi.KeySize]byte)(b.mem[b.records+i*b.recordSize:])}
}

func (b Batch) setVerdict(i int, v Verdict) {
	at := b.out + i*b.outSize
	b.mem[at+abi.VDecision] = byte(v.Decision)
	put32(b.mem, at+abi.VReason, v.Reason)
	put64(b.mem, at+abi.VUntil, uint64(v.Until))
}

func (b Batch) setRank(i int, r Rank) {
	at := b.out + i*b.outSize
	put64(b.mem, at+abi.RScore, uint64(r.Score))
	full := uint32(0)
	if r.Full {
		full = 1
	}
	put32(b.mem, at+abi.RFull, full)
	put32(b.mem, at+abi.RMost, r.Most)
}

// say writes the block's text, cut to its room.
func (b Batch) say(text string) {
	at, room := b.pair(abi.HText)
	n := copy(b.mem[at:at+room], text)
	put32(b.mem, abi.HTextLength, uint32(n))
}

// text lends a part of the block as a string.
func (b *view) text(at, n int) string {
	part := b.mem[at : at+n]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

func (b *view) table(at, n int) table { return b.mem[at : at+n] }

// find looks up a key in the table of a pair. It does what a loop over entry
// would, and compares most keys, without a call: that takes longer than the rest.
func (b *view) find(pair uint64, key string) (string, bool) {
	at := int(uint32(pair))
	for end := at + int(pair>>32); at+4 <= end; {
		both := get32(b.mem, at)
		k, v := int(both&0xffff), int(both>>16)
		at += 4
		if k == len(key) {
			if uint(k-4) <= 4 {
				if get32(b.mem, at) == text32(key, 0) && get32(b.mem, at+k-4) == text32(key, k-4) {
					return b.text(at+k, v), true
				}
			} else if b.text(at, k) == key {
				return b.text(at+k, v), true
			}
		}
		at += k + v
	}
	return "", false
}
