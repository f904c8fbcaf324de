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

// packet is a request: its length, an id, and what follows.
func packet(id int32, rest ...any) []byte {
	var b bytes.Buffer
	for _, x := range append([]any{id}, rest...) {
		if err := binary.Write(&b, binary.BigEndian, x); err != nil {
			panic(err)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

var (
	connectRequest = packet(0, int64(opSetWatches)<<32, int32(4000), int64(7)) // of a server in its 101st epoch
	setWatches     = packet(9, int32(opSetWatches), int64(5))
	otherRequest   = packet(3, int32(4), []byte("/path"))
	write          = packet(4, int32(14), []byte("a transaction"))
)

// TestResume: no request is sent before that for the watches, so that no answer to one
// comes before what they tell.
func TestResume(t *testing.T) {
	t.Parallel()
	credentials, ping := packet(2, int32(opSetAuth)), packet(-2, int32(opPing))
	for name, test := range map[string]struct {
		written, sent [][]byte      // after the request for the session
		after         time.Duration // until all of it is sent
	}{
		"watches first":     {[][]byte{setWatches, otherRequest}, [][]byte{setWatches, otherRequest}, 0},
		"watches later":     {[][]byte{otherRequest, write, setWatches, otherRequest}, [][]byte{setWatches, otherRequest, write, otherRequest}, 0},
		"never asked":       {[][]byte{otherRequest, write}, [][]byte{otherRequest, write}, maxHeld},
		"others go through": {[][]byte{credentials, otherRequest, ping, setWatches}, [][]byte{credentials, ping, setWatches, otherRequest}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				r := resume(gather(near))
				defer func() { _ = r.Close() }()
				began := time.Now()
				for _, p := range append([][]byte{connectRequest}, test.written...) {
					if n, err := r.Write(p); n != len(p) || err != nil {
						t.Fatalf("%d, %v", n, err)
					}
				}
				want := bytes.Join(append([][]byte{connectRequest}, test.sent...), nil)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%q was sent, want %q: %v", got, want, err)
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("it took %v, want %v", took, test.after)
				}
			})
		})
	}
}

// TestResumeEnds: a connection that ends while requests are held back is left with them.
func TestResumeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		r := resume(gather(near))
		_, _ = r.Write(connectRequest)
		_, _ = r.Write(otherRequest)
		_ = r.Close()
		time.Sleep(2 * maxHeld)
		if got, err := io.ReadAll(far); len(got) > 0 && !bytes.Equal(got, connectRequest) || err != nil {
			t.Errorf("%q was sent: %v", got, err)
		}
		if _, err := r.Write(otherRequest); err == nil {
			t.Error("a request was taken after the end")
		}
	})
}
