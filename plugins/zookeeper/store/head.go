package store

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
)

// pieceSize is how much of a document goes into one node.
const pieceSize = 512 << 10

// A head is the node of a document: the document itself, or for a large one how
// many pieces it has and under which name they lie below the head.
type head struct {
	expires int64
	pieces  int
	set     [8]byte // names the pieces; each write has its own
	data    []byte
}

const headFormat = 1

func newHead(doc *driver.Document) head {
	h := head{expires: millis(doc.Expires)}
	if len(doc.Data) <= pieceSize {
		h.data = bytes.Clone(doc.Data)
		return h
	}
	h.pieces = (len(doc.Data) + pieceSize - 1) / pieceSize
	_, _ = rand.Read(h.set[:]) // never fails
	return h
}

func (h *head) piece(path string, i int) string { return fmt.Sprintf("%s/%x-%d", path, h.set, i) }

// drop adds the deletion of the pieces.
func (h *head) drop(m *session.Multi, path string) {
	for i := range h.pieces {
		m.Delete(h.piece(path, i), -1)
	}
}

func (h *head) encode() []byte {
	w := writer{append(make([]byte, 0, 32+len(h.data)), headFormat)}
	w.int(h.expires)
	w.uint(uint64(h.pieces))
	w.raw(h.set[:])
	w.raw(h.data)
	return w.out
}

func decodeHead(data []byte) (head, error) {
	var h head
	if len(data) == 0 || data[0] != headFormat {
		return h, errShort
	}
	d := reader{in: data[1:]}
	h.expires = d.int()
	n := d.uint()
	if most := uint64(driver.MaxDocument/pieceSize + 1); n > most {
		return h, fmt.Errorf("it has %d pieces: want at most %d", n, most)
	}
	h.pieces = int(n)
	d.raw(h.set[:])
	h.data = d.in
	return h, d.err
}
