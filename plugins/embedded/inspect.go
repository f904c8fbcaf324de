package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/boardd/boardd/sdk/job"
)

// The layout of a bbolt file, as far as its soundness is judged here. bbolt
// reads its file through a memory map and trusts it: a page number beyond the
// end of the file, or a length beyond the end of a page, would end the process
// with a fault. So every page that the store reaches is looked at once, by
// ordinary reads, before bbolt sees it.
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	pageHeader     = 16
	pageElement    = 16
	metaSize       = 64 // its checksum included, which is the last field
	pageBranch     = 0x01
	pageLeaf       = 0x02
	leafIsBucket   = 0x01
	bucketHeader   = 16
	noFreelist     = 1<<64 - 1
	maxTreeDepth   = 32
	maxPageSize    = 1 << 16
	maxElement     = 1 << 30
	inspectPageCap = 1 << 20 // overflow pages above this are judged by their head alone
)

// inspection is one look through a file.
type inspection struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	high     uint64 // the first page number that is not in use
	seen     []uint64
	buffers  [maxTreeDepth][]byte
}

type meta struct {
	pageSize   uint32
	root       uint64
	freelist   uint64
	high, txid uint64
}

// inspect refuses a file that is no store or that is damaged. It returns how
// many of its two heads are sound.
func inspect(path string) (heads int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, unavailable(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, unavailable(err)
	}
	if heads, err = inspectFile(f, info.Size()); err != nil {
		return 0, &job.Error{Kind: job.Corrupt, Message: path + " is damaged or no store of boardd; put back a backup, or move it away to begin anew", Err: err}
	}
	return heads, nil
}

func inspectFile(f io.ReaderAt, size int64) (heads int, err error) {
	m, heads, err := readMeta(f, size)
	if err != nil {
		return 0, err
	}
	in := &inspection{file: f, size: size, pageSize: int64(m.pageSize), high: m.high}
	if need := int64(m.high) * in.pageSize; m.high > uint64(size) || need > size {
		return 0, fmt.Errorf("the file has %d bytes, and its head names %d pages of %d bytes: it was cut off", size, m.high, m.pageSize)
	}
	in.seen = make([]uint64, m.high/64+1)
	in.seen[0] = 3
	if m.freelist != noFreelist {
		return 0, errors.New("it was written by another program: boardd keeps no list of free pages in the file, and bbolt would believe this one")
	}
	return heads, in.tree(m.root, bounds{level: topLevel}, 0)
}

// readMeta returns the newer of the two heads, of those that are sound.
func readMeta(f io.ReaderAt, size int64) (best meta, heads int, err error) {
	consider := func(offset int64) {
		m, ok := metaAt(f, offset, size)
		if !ok {
			return
		}
		if heads++; heads == 1 || m.txid > best.txid {
			best = m
		}
	}
	consider(0)
	for pageSize := int64(1024); pageSize <= maxPageSize; pageSize *= 2 {
		consider(pageSize)
	}
	if heads == 0 {
		return meta{}, 0, errors.New("neither of its two heads is sound")
	}
	return best, heads, nil
}

func metaAt(f io.ReaderAt, offset, size int64) (meta, bool) {
	var b [pageHeader + metaSize]byte
	if offset+int64(len(b)) > size {
		return meta{}, false
	}
	if _, err := f.ReadAt(b[:], offset); err != nil {
		return meta{}, false
	}
	body := b[pageHeader:]
	order := binary.NativeEndian // bbolt writes its structures as they lie in memory
	m := meta{
		pageSize: order.Uint32(body[8:]), root: order.Uint64(body[16:]),
		freelist: order.Uint64(body[32:]), high: order.Uint64(body[40:]), txid: order.Uint64(body[48:]),
	}
	ok := order.Uint32(body) == boltMagic && order.Uint32(body[4:]) == boltVersion &&
		order.Uint64(body[metaSize-8:]) == headSum(body) &&
		m.pageSize >= 1024 && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0 &&
		(offset == 0 || offset == int64(m.pageSize))
	return m, ok
}

// headSum is the checksum of a head, of all that comes before it.
func headSum(body []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(body[:metaSize-8]) // never fails
	return sum.Sum64()
}

// page reads a page with its overflow into the buffer of a depth and marks it
// as seen.
func (in *inspection) page(id uint64, depth int) ([]byte, error) {
	if depth >= maxTreeDepth {
		return nil, fmt.Errorf("page %d lies more than %d levels deep", id, maxTreeDepth)
	}
	if id < 2 || id >= in.high {
		return nil, fmt.Errorf("page %d is named and does not exist: there are %d", id, in.high)
	}
	b := in.room(depth, in.pageSize)
	if _, err := in.file.ReadAt(b, int64(id)*in.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if got := binary.NativeEndian.Uint64(b); got != id {
		return nil, fmt.Errorf("page %d calls itself %d", id, got)
	}
	overflow := uint64(binary.NativeEndian.Uint32(b[12:]))
	if overflow >= in.high-id {
		return nil, fmt.Errorf("page %d goes on for %d pages, beyond the end of the file", id, overflow)
	}
	for n := id; n <= id+overflow; n++ {
		if in.seen[n/64]&(1<<(n%64)) != 0 {
			return nil, fmt.Errorf("page %d is in use twice", n)
		}
		in.seen[n/64] |= 1 << (n % 64)
	}
	if overflow == 0 {
		return b, nil
	}
	total := int64(overflow+1) * in.pageSize
	if total > inspectPageCap {
		return b, nil // the bytes of a very large value; its record has a checksum
	}
	b = in.room(depth, total)
	_, err := in.file.ReadAt(b, int64(id)*in.pageSize)
	return b, err
}

func (in *inspection) room(depth int, n int64) []byte {
	if int64(cap(in.buffers[depth])) < n {
		in.buffers[depth] = make([]byte, n)
	}
	return in.buffers[depth][:n]
}

// bounds are the keys between which those of a page must lie: from low, below
// high. An empty one is no bound. The level says which keys there are at all.
type bounds struct {
	low, high []byte
	level     level
}

func (w bounds) check(previous, key []byte) error {
	switch {
	case len(key) == 0:
		return errors.New("has an empty key")
	case len(previous) > 0 && bytes.Compare(previous, key) >= 0:
		return errors.New("has keys out of order")
	case len(w.low) > 0 && bytes.Compare(key, w.low) < 0, len(w.high) > 0 && bytes.Compare(key, w.high) >= 0:
		return errors.New("has a key that belongs on another page")
	}
	return nil
}

// tree looks at a page and at everything below it.
func (in *inspection) tree(id uint64, within bounds, depth int) error {
	b, err := in.page(id, depth)
	if err != nil {
		return err
	}
	length := (int64(binary.NativeEndian.Uint32(b[12:])) + 1) * in.pageSize
	switch flags := binary.NativeEndian.Uint16(b[8:]); flags {
	case pageBranch:
		err = in.branch(b, within, depth)
	case pageLeaf:
		err = in.leaf(b, length, within, depth)
	default:
		err = fmt.Errorf("is of the unknown type %#x", flags)
	}
	var deeper *pageError
	if err != nil && !errors.As(err, &deeper) {
		return &pageError{page: id, err: err}
	}
	return err
}

// pageError says on which page the damage is.
type pageError struct {
	page uint64
	err  error
}

func (e *pageError) Error() string { return fmt.Sprintf("page %d %v", e.page, e.err) }

func (e *pageError) Unwrap() error { return e.err }

func (in *inspection) branch(b []byte, within bounds, depth int) error {
	count := int(binary.NativeEndian.Uint16(b[10:]))
	if count == 0 || pageHeader+count*pageElement > len(b) || !counted(b, count, 0) {
		return fmt.Errorf("claims to have %d branches", count)
	}
	keys := make([][]byte, count+1)
	for i := range count {
		at := pageHeader + i*pageElement
		start := int64(at) + int64(binary.NativeEndian.Uint32(b[at:]))
		end := start + int64(binary.NativeEndian.Uint32(b[at+4:]))
		if start < int64(pageHeader+count*pageElement) || end > int64(len(b)) {
			return errors.New("has a key beyond its end")
		}
		keys[i] = b[start:end]
		var previous []byte
		if i > 0 {
			previous = keys[i-1]
		}
		if err := within.check(previous, keys[i]); err != nil {
			return err
		}
	}
	keys[count] = within.high
	for i := range count {
		child := binary.NativeEndian.Uint64(b[pageHeader+i*pageElement+8:])
		if err := in.tree(child, bounds{keys[i], keys[i+1], within.level}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf looks at a leaf page of the given length; b may be only its beginning.
func (in *inspection) leaf(b []byte, length int64, within bounds, depth int) error {
	count := int(binary.NativeEndian.Uint16(b[10:]))
	if pageHeader+count*pageElement > len(b) || !counted(b, count, 4) {
		return fmt.Errorf("claims to have %d records", count)
	}
	var previous []byte
	for i := range count {
		at := pageHeader + i*pageElement
		flags := binary.NativeEndian.Uint32(b[at:])
		start := int64(at) + int64(binary.NativeEndian.Uint32(b[at+4:]))
		middle := start + int64(binary.NativeEndian.Uint32(b[at+8:]))
		end := middle + int64(binary.NativeEndian.Uint32(b[at+12:]))
		if start < int64(pageHeader+count*pageElement) || end > length || end-start > maxElement {
			return errors.New("has a record beyond its end")
		}
		if middle > int64(len(b)) {
			break // behind a very large value
		}
		if err := within.check(previous, b[start:middle]); err != nil {
			return err
		}
		previous = b[start:middle]
		below, known := within.level.below(previous, flags == leafIsBucket)
		switch {
		case !known:
			return fmt.Errorf("has %.40q, which boardd did not make", previous)
		case flags == 0:
		case flags != leafIsBucket || end > int64(len(b)):
			return fmt.Errorf("has a record of the unknown type %#x", flags)
		default:
			if err := in.bucket(b[middle:end], below, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket looks at a bucket: a number of a page, or 0 and the page itself.
func (in *inspection) bucket(b []byte, of level, depth int) error {
	if len(b) < bucketHeader {
		return errors.New("has a bucket that is too short")
	}
	root := binary.NativeEndian.Uint64(b)
	if root != 0 {
		return in.tree(root, bounds{level: of}, depth+1)
	}
	inline := b[bucketHeader:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != pageLeaf {
		return errors.New("has a bucket that is damaged")
	}
	return in.leaf(inline, int64(len(inline)), bounds{level: of}, depth)
}
