package peers

import (
	"context"
	"encoding/binary"
	"time"
)

// A system is a job queue with its own client.
type system interface {
	// Post has the queue keep jobs with these payloads, as fast as its client can.
	Post(ctx context.Context, payloads [][]byte) error

	// Work has one worker do jobs, with so many handlers, until it is stopped. An error
	// that comes later goes to the test.
	Work(handlers int, handle func(payload []byte)) (stop func(), err error)
}

// A peer is a system in the table.
type peer struct {
	system

	name, what string // what: the store that it keeps jobs in
}

// payloadSize is that of each job.
const payloadSize = 200

// payloads are those of n jobs that are due now.
func payloads(n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = stamped(time.Now())
	}
	return list
}

// stamped is a payload that says when its job was due: text, as every client takes it.
func stamped(at time.Time) []byte {
	b := make([]byte, payloadSize)
	for i := range b {
		b[i] = 'x'
	}
	copy(b, hexOf(at))
	return b
}

// base is when this process began: what lies between two moments is told by its steady clock.
var base = time.Now()

const digits = "0123456789abcdef"

func hexOf(at time.Time) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(at.Sub(base)))
	text := make([]byte, 0, 16)
	for _, c := range raw {
		text = append(text, digits[c>>4], digits[c&15])
	}
	return text
}

// age is how long ago a job was due.
func age(payload []byte) time.Duration {
	var n uint64
	for _, c := range payload[:16] {
		d := uint64(c - '0')
		if c >= 'a' {
			d = uint64(c-'a') + 10
		}
		n = n<<4 | d
	}
	return time.Since(base) - time.Duration(n)
}
