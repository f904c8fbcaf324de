package board

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// A token's text is a version byte, the job's id, generation, epoch and nonce
// in URL-safe base64. Clients do not look inside.
const (
	tokenVersion = 1
	tokenBytes   = 1 + 16 + 8 + 8 + 16
)

var tokenEncoding = base64.RawURLEncoding.Strict()

// FormatToken writes the token of a claim on a job as clients see it. The zero
// token, that of a claim made by another program, is empty text.
func (b *Board) FormatToken(id job.ID, t job.Token) string {
	if t.IsZero() {
		return ""
	}
	var raw [tokenBytes]byte
	raw[0] = tokenVersion
	copy(raw[1:], id[:])
	binary.BigEndian.PutUint64(raw[17:], t.Generation)
	binary.BigEndian.PutUint64(raw[25:], t.Epoch)
	copy(raw[33:], t.Nonce[:])
	var text [(tokenBytes*8 + 5) / 6]byte
	tokenEncoding.Encode(text[:], raw[:])
	return string(text[:])
}

// ParseToken reads what FormatToken wrote for the same job. Anything else is
// NotOwner.
func (b *Board) ParseToken(id job.ID, text string) (job.Token, error) {
	var raw [tokenBytes]byte
	if len(text) != tokenEncoding.EncodedLen(tokenBytes) {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	if n, err := tokenEncoding.Decode(raw[:], []byte(text)); err != nil || n != tokenBytes || raw[0] != tokenVersion {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	if job.ID(raw[1:17]) != id {
		return job.Token{}, errToken(id, "the token belongs to another job")
	}
	t := job.Token{
		Generation: binary.BigEndian.Uint64(raw[17:]),
		Epoch:      binary.BigEndian.Uint64(raw[25:]),
		Nonce:      [16]byte(raw[33:]),
	}
	if t.IsZero() {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	return t, nil
}

func errToken(id job.ID, message string) error {
	return &job.Error{Job: id, Kind: job.NotOwner, Message: message}
}

// entropy hands out random bytes from a buffer, since asking the system for
// sixteen at a time costs more than the rest of a claim. The buffer is small at first, since
// most boards are.
type entropy struct {
	mu   sync.Mutex
	buf  []byte // nil, of fewBytes, or of manyBytes
	left int
}

const (
	fewBytes  = 128
	manyBytes = 4096
)

// next returns 16 random bytes, never the same ones twice.
func (e *entropy) next() (out [16]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left < len(out) {
		switch len(e.buf) {
		case 0:
			e.buf = make([]byte, fewBytes)
		case fewBytes:
			e.buf = make([]byte, manyBytes)
		}
		_, _ = rand.Read(e.buf) // never fails: the program ends instead
		e.left = len(e.buf)
	}
	start := len(e.buf) - e.left
	copy(out[:], e.buf[start:])
	clear(e.buf[start : start+len(out)]) // a nonce is not kept in memory longer than needed
	e.left -= len(out)
	return out
}

// newID makes a version 7 uuid: ids of later jobs sort after those of earlier
// ones, which stores with a tree like.
func (e *entropy) newID(now time.Time) job.ID {
	id := job.ID(e.next())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli())) //nolint:gosec // after 1970
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
