package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// packet is a request or an answer: its length, an id, and what follows.
func packet(id int32, rest ...any) []byte {
	var b bytes.Buffer
	for _, x := range append([]any{id}, rest...) {
		if err := binary.Write(&b, binary.BigEndian, x); err != nil {
			panic(err)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

// What an answer's header holds besides its id: a transaction and an error.
func answer(id int32, transaction int64) []byte {
	return packet(id, transaction, int32(0), []byte("some data"))
}

var (
	connectRequest = packet(0, int64(opSetWatches)<<32, int32(4000), int64(7)) // of a server in its 101st epoch
	connectAnswer  = packet(0, int32(4000), int64(7))
	setWatches     = packet(-8, int32(opSetWatches), int64(5))
	otherRequest   = packet(3, int32(4), []byte("/path"))
)

// TestResume: what names a transaction is held back until the watches were asked for.
func TestResume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first []byte // answers that come before the held one
		end   func(r *resumed, far net.Conn)
		after time.Duration // at most, until the held one is read
		lost  bool          // the held one never is
	}{
		"asked":       {nil, func(r *resumed, _ net.Conn) { _, _ = r.Write(setWatches) }, 0, false},
		"never asked": {nil, func(r *resumed, _ net.Conn) { _, _ = r.Write(otherRequest) }, maxHeld, false},
		"closed":      {nil, func(r *resumed, _ net.Conn) { _ = r.Close() }, 0, true},
		"others go through": {
			bytes.Join([][]byte{answer(-4, 0), answer(-2, 9), answer(-1, -1), packet(1)}, nil),
			func(r *resumed, _ net.Conn) { _, _ = r.Write(setWatches) }, 0, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				r := resume(gather(near))
				defer func() { _ = r.Close() }()
				go func() { _, _ = io.Copy(io.Discard, far) }() // requests
				_, _ = r.Write(connectRequest)
				held := answer(3, 12)
				go func() {
					_, _ = far.Write(bytes.Join([][]byte{connectAnswer, test.first, held, held}, nil))
				}()
				want := bytes.Join([][]byte{connectAnswer, test.first}, nil)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%q, %v", got, err)
				}
				began := time.Now()
				done := make(chan error, 1)
				go func() {
					got := make([]byte, 2*len(held))
					_, err := io.ReadFull(r, got)
					if err == nil && !bytes.Equal(got, append(held, held...)) {
						t.Errorf("%q", got)
					}
					done <- err
				}()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("it was handed out at once: %v", err)
				default:
				}
				test.end(r, far)
				if err := <-done; (err != nil) != test.lost || time.Since(began) > test.after {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				_ = far.Close()
			})
		})
	}
}

// TestResumeEnds: a connection that ends within a packet is an error and not a wait.
func TestResumeEnds(t *testing.T) {
	t.Parallel()
	whole := append(bytes.Clone(connectAnswer), answer(3, 12)...)
	for n := range len(whole) {
		near, far := net.Pipe()
		r := resume(gather(near))
		go func() {
			_, _ = far.Write(whole[:n])
			_ = far.Close()
		}()
		_, _ = r.Write(connectRequest)
		_, _ = r.Write(setWatches)
		if got, err := io.ReadAll(r); len(got) > n || !bytes.HasPrefix(whole, got) || err == nil && len(got) < n && n-len(got) >= answerHead {
			t.Errorf("of %d bytes %q was read: %v", n, got, err)
		}
		_ = r.Close()
	}
}
