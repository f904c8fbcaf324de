package board

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// entropy hands out random bytes from a buffer, since asking the system for
// sixteen at a time costs more than the rest of a claim.
type entropy struct {
	mu   sync.Mutex
	buf  [4096]byte
	left int
}

// next returns 16 random bytes, never the same ones twice.
func (e *entropy) next() (out [16]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left < len(out) {
		_, _ = rand.Read(e.buf[:]) // never fails: the program ends instead
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
