package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// framed parts bytes into requests as a caller sends them: a byte says how long the next
// one is, and how it begins.
func framed(data []byte) (requests [][]byte) {
	for len(data) > 0 && len(requests) < 40 {
		head, n := data[0], int(data[0]>>2)
		data = data[1:]
		n = min(n, len(data))
		body := data[:n]
		data = data[n:]
		switch head & 3 {
		case 0:
			requests = append(requests, packet(1, int32(opSetWatches), body))
		case 1:
			requests = append(requests, packet(-2, int32(opPing)))
		case 2:
			requests = append(requests, packet(3, int32(14), body))
		default: // whatever it is, and be it shorter than a request's head
			requests = append(requests, body)
		}
	}
	return requests
}

// goesAhead reports whether a request is sent before that for the watches, by the
// protocol: its operation is the second number of 4 bytes behind its length.
func goesAhead(p []byte) bool {
	if len(p) < requestHead {
		return true
	}
	op := binary.BigEndian.Uint32(p[8:])
	return op == opPing || op == opSetAuth || op == opSetWatches
}

// FuzzResume writes any requests to a connection that takes the place of a lost one. All
// of them arrive, each whole; those that may go ahead do so, and the others come in their
// order once the watches were asked for, or when their time is up.
func FuzzResume(f *testing.F) {
	f.Add([]byte{2, 'a', 1, 0, 2, 'b'})
	f.Add([]byte{9, 'a', 'b', 3, 7, 1, 18, 'w', 'r', 'i', 't'})
	f.Add(append([]byte{0xff}, bytes.Repeat([]byte{0, 0, 0, opSetWatches}, 20)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			r := resume(gather(near))
			requests := framed(data)
			want := bytes.Clone(connectRequest)
			var held []byte
			open := false
			for _, p := range requests {
				switch {
				case open || goesAhead(p):
					want = append(want, p...)
				default:
					held = append(held, p...)
				}
				if !open && len(p) >= requestHead && binary.BigEndian.Uint32(p[8:]) == opSetWatches {
					open, want, held = true, append(want, held...), nil
				}
			}
			want = append(want, held...)
			for _, p := range append([][]byte{connectRequest}, requests...) {
				if n, err := r.Write(p); n != len(p) || err != nil {
					t.Fatalf("%d of %d bytes, %v", n, len(p), err)
				}
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%x was sent, want %x: %v", got, want, err)
			}
			_, _ = r.Close(), far.Close() // nothing is left on it
		})
	})
}

// FuzzGather sends bytes through a connection in any pieces, in both directions: they
// arrive as they were.
func FuzzGather(f *testing.F) {
	f.Add([]byte("answers and requests"), uint8(3), uint8(7))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 200}, 300), uint8(1), uint8(255))
	f.Add([]byte{}, uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, written, read uint8) {
		near, far := net.Pipe()
		g := gather(near)
		go func() { // it ends with the connection
			for at := 0; at < len(data); {
				n := min(1+int(written), len(data)-at)
				if _, err := g.Write(data[at : at+n]); err != nil {
					return
				}
				at += n
			}
		}()
		back := make([]byte, len(data))
		if _, err := io.ReadFull(far, back); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%x arrives as %x: %v", data, back, err)
		}
		go func() { _, _ = far.Write(data) }() // what is lacking the reader finds
		var got []byte
		for part := make([]byte, 1+int(read)); len(got) < len(data); {
			n, err := g.Read(part)
			if got = append(got, part[:n]...); err != nil {
				break
			}
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%x is read as %x", data, got)
		}
		_, _ = g.Close(), far.Close() // nothing is left on it
	})
}
