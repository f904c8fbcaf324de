package session

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// A resumed connection takes the place of a lost one on which nodes were watched.
//
// The library asks for the watches again as one request among others, and any answer to
// another one may come before it. Whoever gets such an answer knows of a later change
// than those that the watches are about to tell of, and takes a watch that has not fired
// for a node that has not changed. The library itself does so as well: it tells the server
// from which transaction on it has not heard of changes, the last one that an answer has
// named, and looks that up when answers are read already. So here no other request is
// sent before that for the watches: a server answers a session's requests in their order.
//
// The library parts a request for watches whose paths are more than 128 KiB, and the
// later parts come after other requests all the same.
type resumed struct {
	*gatherer

	write sync.Mutex
	begun bool        // the request for the session was written
	open  bool        // everything is sent
	held  []byte      // requests that wait, of callers that all wait for their answers
	timer *time.Timer // ends the waiting
}

// maxHeld is for how long requests are held back: the library asks for watches as its
// first thing, but not where none has been left.
const maxHeld = time.Second

// What is known of requests (ZooKeeper's jute records, all numbers big-endian): each has
// its length in front, and begins with an id and an operation of 4 bytes each.
const (
	requestHead  = 4 + 4 + 4
	opPing       = 11
	opSetAuth    = 100
	opSetWatches = 101
)

func resume(g *gatherer) *resumed { return &resumed{gatherer: g} }

// Write sends one request, or keeps it until that for the watches was sent. Pings and
// credentials, whose answers name no transaction, go through.
func (r *resumed) Write(p []byte) (int, error) {
	r.write.Lock()
	defer r.write.Unlock()
	if !r.begun || r.open || len(p) < requestHead {
		r.begun = true
		return r.gatherer.Write(p)
	}
	switch binary.BigEndian.Uint32(p[8:]) {
	case opPing, opSetAuth:
		return r.gatherer.Write(p)
	case opSetWatches:
		n, err := r.gatherer.Write(p)
		r.release()
		return n, err
	}
	r.held = append(r.held, p...)
	if r.timer == nil {
		r.timer = time.AfterFunc(maxHeld, func() {
			r.write.Lock()
			defer r.write.Unlock()
			r.release()
		})
	}
	return len(p), nil
}

// release sends what was held back. r.write is held.
func (r *resumed) release() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if held := r.held; len(held) > 0 {
		_, _ = r.gatherer.Write(held) // it fails when the connection has ended, and with it all answers
	}
	r.open, r.held = true, nil
}

var _ net.Conn = (*resumed)(nil)
