package store

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// meta is what boardd keeps of a job beside TaskFlow's own records. The formats
// are those of script.go.
type meta struct {
	claim    bool // by boardd
	foreign  bool // by another program, as last seen
	held     bool
	trashed  bool
	noExpiry bool
	attached bool

	version   uint64
	position  uint64
	modified  time.Time
	notBefore time.Time
	ended     time.Time
	digest    [16]byte
	status    []byte

	token    job.Token
	since    time.Time
	deadline time.Time // as it was when the lease was last set by boardd
	owner    string
	extra    []byte // of a foreign claim: last_modified as it was seen
}

// The flags of a meta.
const (
	flagClaim = 1 << iota
	flagForeign
	flagHeld
	flagTrashed
	flagNoExpiry
	flagAttached
	flagDelayed // not before is set
	flagUnread  // another program's posting, which nobody has found readable
)

// An unpacker reads what struct.pack wrote. After the first thing that is not
// there it reads zeros, and short is set.
type unpacker struct {
	b     []byte
	short bool
}

func (u *unpacker) take(n int) []byte {
	if n < 0 || n > len(u.b) {
		u.short, u.b = true, nil
		return nil
	}
	out := u.b[:n:n]
	u.b = u.b[n:]
	return out
}

func (u *unpacker) u8() byte {
	if b := u.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (u *unpacker) u16() int {
	if b := u.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (u *unpacker) u32() int {
	if b := u.take(4); b != nil {
		return int(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (u *unpacker) u64() uint64 {
	if b := u.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (u *unpacker) text() string { return string(u.take(u.u16())) }

// blob returns a counted part; nil if it is empty.
func (u *unpacker) blob() []byte {
	if n := u.u32(); n > 0 {
		return u.take(n)
	}
	return nil
}

func (u *unpacker) bytes16() (b [16]byte) {
	copy(b[:], u.take(16))
	return b
}

// time reads microseconds since 1970; 0 is no time.
func (u *unpacker) time() time.Time {
	if n := u.u64(); n > 0 {
		return time.UnixMicro(int64(n)).UTC()
	}
	return time.Time{}
}

func (u *unpacker) token() job.Token {
	return job.Token{Generation: u.u64(), Epoch: u.u64(), Nonce: u.bytes16()}
}

func (u *unpacker) id() job.ID {
	id, err := job.ParseID(string(u.take(36)))
	u.short = u.short || err != nil
	return id
}

// decodeMeta reads a meta; false: it is none.
func decodeMeta(raw []byte) (meta, bool) {
	u := unpacker{b: raw}
	format, flags := u.u8(), u.u8()
	m := meta{
		claim: flags&flagClaim != 0, foreign: flags&flagForeign != 0, held: flags&flagHeld != 0,
		trashed: flags&flagTrashed != 0, noExpiry: flags&flagNoExpiry != 0, attached: flags&flagAttached != 0,
		version: u.u64(), position: u.u64(), modified: u.time(), notBefore: u.time(), ended: u.time(),
		digest: u.bytes16(), status: u.blob(),
	}
	u.take(u.u16()) // what the post counts
	if m.claim || m.foreign {
		m.token, m.since, m.deadline, m.owner = u.token(), u.time(), u.time(), u.text()
		m.extra = u.take(u.u16())
	}
	return m, format == 1 && !u.short
}

// past is what is left of a job that ended.
type past struct {
	tombstone bool
	final     bool
	outcome   job.Outcome
	version   uint64
	position  uint64
	at        time.Time
	until     time.Time // of the final record
	digest    [16]byte
	token     job.Token // that ended it
}

func decodePast(raw []byte) (past, bool) {
	u := unpacker{b: raw}
	flags := u.u8()
	p := past{
		tombstone: flags&1 != 0, final: flags&2 != 0, outcome: job.Outcome(u.u8()), version: u.u64(), position: u.u64(),
		at: u.time(), until: u.time(), digest: u.bytes16(), token: u.token(),
	}
	return p, !u.short
}

// What a final record keeps besides its data.
const (
	keepPosting = 1 << iota
	keepAttached
)

type final struct {
	keep    byte
	status  []byte
	data    []byte
	posting []byte
}

func decodeFinal(raw []byte) (final, bool) {
	u := unpacker{b: raw}
	u.u64() // its size
	f := final{keep: u.u8(), status: u.blob(), data: u.blob(), posting: u.blob()}
	return f, !u.short
}
