package session

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// A resumed connection takes the place of a lost one on which nodes were watched.
//
// The library tells the server from which transaction on it has not heard of changes:
// from the last one that an answer has named. It looks that up when answers of the new
// connection are read already, without a lock. An answer that is fast enough makes it
// name a transaction too late, and what was changed in between is never told. So here
// no answer that names a transaction is handed out before the watches were asked for.
type resumed struct {
	*gatherer

	asked sync.Once
	told  chan struct{} // closed when the watches were asked for, or the connection has ended

	// Used by the one goroutine that writes.
	begun bool // the request for the session was written

	// Used by the one goroutine that reads.
	answered bool // the answer to that was read
	open     bool // everything is handed out
	left     int  // bytes of the packet that is being read
}

// maxHeld is for how long answers are held back: the library asks for watches as its
// first thing, but not where none has been left.
const maxHeld = time.Second

// What is known of packets (ZooKeeper's jute records, all numbers big-endian): each has
// its length in front; a request begins with an id and an operation of 4 bytes each, an
// answer with the id, and in 8 bytes the transaction that it knows of, 0 if none.
const (
	lengthBytes  = 4
	requestHead  = lengthBytes + 4 + 4
	answerHead   = lengthBytes + 4 + 8
	opSetWatches = 101
)

func resume(g *gatherer) *resumed { return &resumed{gatherer: g, told: make(chan struct{})} }

// Write sends one request.
func (r *resumed) Write(p []byte) (int, error) {
	n, err := r.gatherer.Write(p)
	if r.begun && len(p) >= requestHead && binary.BigEndian.Uint32(p[8:]) == opSetWatches {
		r.asked.Do(func() { close(r.told) })
	}
	r.begun = true
	return n, err
}

// Read returns what has come, up to the end of a packet.
func (r *resumed) Read(p []byte) (int, error) {
	if r.left == 0 && r.open {
		return r.gatherer.Read(p)
	}
	if r.left == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.in.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// next begins a packet, once it may be handed out.
func (r *resumed) next() error {
	length, err := r.in.Peek(lengthBytes)
	if err != nil {
		return cutOff(length, err)
	}
	r.left = lengthBytes + int(binary.BigEndian.Uint32(length))
	if !r.answered {
		r.answered = true
		return nil
	}
	if r.left < answerHead {
		return nil
	}
	head, err := r.in.Peek(answerHead)
	if err != nil {
		r.left = 0
		return cutOff(head, err)
	}
	id, transaction := int32(binary.BigEndian.Uint32(head[4:])), int64(binary.BigEndian.Uint64(head[8:])) //nolint:gosec // as they were written
	if id < 0 || transaction <= 0 {
		return nil // news or a ping, or of no transaction, as when credentials were given
	}
	timer := time.NewTimer(maxHeld)
	defer timer.Stop()
	select {
	case <-r.told:
	case <-timer.C:
	}
	r.gatherer.mu.Lock()
	defer r.gatherer.mu.Unlock()
	if r.ended {
		return net.ErrClosed
	}
	r.open = true
	return nil
}

// cutOff is the error of a connection that ended within a packet's head.
func cutOff(head []byte, err error) error {
	if len(head) > 0 && err == io.EOF { //nolint:errorlint // a reader gives it as it is
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close ends the connection, and whatever waits.
func (r *resumed) Close() error {
	r.asked.Do(func() { close(r.told) })
	return r.gatherer.Close()
}

var _ net.Conn = (*resumed)(nil)
