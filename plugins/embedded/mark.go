package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/boardd/boardd/sdk/durable"
)

// The mark says, beside the records that it is about, how far the store had come when
// a change was acknowledged. It is written after each batch is on the disk and before
// anybody is told, and is not waited for itself: it outlives the process, and after a
// loss of power it may say less than was acknowledged, but never more. So a record of
// the journal that was never finished and one that was acknowledged and is damaged
// are told apart, and so are the store and an older state of it: documents are
// covered like jobs, whatever the host remembers.
//
// The file has two slots, in pages of their own, that are written in turn. Each is, in
// little endian:
//
//	magic       8 bytes
//	serial      8 bytes, of the slot that was written last it is the higher one
//	store       16 bytes, its id
//	epoch       8 bytes, of the journal
//	number      8 bytes, how many records that has
//	position    8 bytes, the highest of any board
//	generation  8 bytes, likewise
//	documents   8 bytes, the highest version of any document
//	sum         4 bytes, CRC-32C of all above
const (
	markFile  = "boards.mark"
	markMagic = "boardmk1"
	markSize  = 8 + 8 + 16 + 5*8 + 4
	markSlot  = 4096
)

// mark is what a slot says.
type mark struct {
	serial     uint64
	store      [16]byte
	tail       tail
	position   uint64
	generation uint64
	documents  uint64
}

// tail is the end of what a store has: an epoch of the journal and how many records
// of it.
type tail struct{ epoch, number uint64 }

// wholeEpoch is a number of records that no epoch exceeds.
const wholeEpoch = math.MaxUint64

func (t tail) before(other tail) bool {
	return t.epoch < other.epoch || t.epoch == other.epoch && t.number < other.number
}

func (m *mark) append(b []byte) []byte {
	order, from := binary.LittleEndian, len(b)
	b = append(b, markMagic...)
	b = order.AppendUint64(b, m.serial)
	b = append(b, m.store[:]...)
	for _, n := range [...]uint64{m.tail.epoch, m.tail.number, m.position, m.generation, m.documents} {
		b = order.AppendUint64(b, n)
	}
	return order.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

func (m *mark) decode(b []byte) bool {
	order := binary.LittleEndian
	if len(b) < markSize || !bytes.HasPrefix(b, []byte(markMagic)) ||
		crc32.Checksum(b[:markSize-4], castagnoli) != order.Uint32(b[markSize-4:]) {
		return false
	}
	m.serial = order.Uint64(b[8:])
	m.store = [16]byte(b[16:])
	for i, n := range [...]*uint64{&m.tail.epoch, &m.tail.number, &m.position, &m.generation, &m.documents} {
		*n = order.Uint64(b[32+8*i:])
	}
	return true
}

// raise notes what the store has come to since.
func (m *mark) raise(position, generation, documents uint64) {
	m.position, m.generation = max(m.position, position), max(m.generation, generation)
	m.documents = max(m.documents, documents)
}

// marker writes the mark. Only the committer does, and who opens the store.
type marker struct {
	file   *os.File // nil: it could not be opened
	logger *slog.Logger
	failed bool
	last   mark
	buffer []byte
}

// openMarker opens the file, and returns the last mark in it; false where there is
// none. A store that has a file without a sound mark is served: the mark is there to
// find what is lost, and nothing is known to be.
func openMarker(folder string, logger *slog.Logger) (k *marker, was mark, ok bool, err error) {
	path := filepath.Join(folder, markFile)
	_, missing := os.Stat(path)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, mark{}, false, unavailable(err)
	}
	b := make([]byte, markSlot+markSize)
	n, err := file.ReadAt(b, 0)
	if err == nil || errors.Is(err, io.EOF) {
		err = nil
		if errors.Is(missing, fs.ErrNotExist) {
			err = durable.SyncFolder(folder)
		}
	}
	if err != nil {
		return nil, mark{}, false, errors.Join(unavailable(err), file.Close())
	}
	var one mark
	for _, at := range [...]int{0, markSlot} {
		if one.decode(b[min(at, n):n]) && (!ok || one.serial > was.serial) {
			was, ok = one, true
		}
	}
	if n > 0 && !ok {
		logger.Warn("what the store had come to cannot be read: should its last changes be lost, only the jobs among them are missed", "path", path)
	}
	return &marker{file: file, logger: logger, last: was}, was, ok, nil
}

// write says that everything up to the tail is on the disk.
func (k *marker) write(to tail) {
	k.last.tail = to
	k.last.serial++
	k.buffer = k.last.append(k.buffer[:0])
	if _, err := k.file.WriteAt(k.buffer, int64(k.last.serial%2)*markSlot); err != nil && !k.failed {
		k.failed = true
		k.logger.Error("what the store has come to cannot be written down: should its last changes be lost, only the jobs among them are missed",
			"path", k.file.Name(), "error", err)
	}
}

func (k *marker) sync() error { return k.file.Sync() }

func (k *marker) close() error {
	if k == nil || k.file == nil {
		return nil
	}
	return errors.Join(k.file.Sync(), k.file.Close())
}
