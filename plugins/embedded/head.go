package embedded

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/job"
)

// formatVersion is the newest format that this program writes, once a board has a group: who
// does not know of those is not to open the store. Until then it is formatKeys, once a board
// has a key, and before that formatKeyless. It also reads two older ones: formatSlim, which had every extra in its job's record, and is converted when the store
// is opened; and formatWithout, which had no journal either, and is converted with the
// first change.
const (
	formatVersion = 5
	formatKeys    = 4
	formatKeyless = 3
	formatSlim    = 2
	formatWithout = 1
)

// The buckets at the top of the file. Each board has one more, boardPrefix and
// its name.
var (
	storeBucket     = []byte("store")
	documentsBucket = []byte("documents")
	boardPrefix     = []byte("board/")
)

// The tables of the store itself.
const (
	inStore = iota
	inDocuments
)

var storeBuckets = [...][]byte{storeBucket, documentsBucket}

// The records in storeBucket.
var (
	formatKey = []byte("format") // version
	idKey     = []byte("id")     // random, of this store
	bootKey   = []byte("boot")   // which boot, and since when leases of an earlier one are counted anew
	floorKey  = []byte("floor")  // position and generation that no board of today may begin below

	journalKey = []byte("journal") // how far the file goes; absent in a file without a journal: it is whole
)

// floor is below what every new board begins at, so that a board that is
// dropped and made again issues no token and no position twice.
type floor struct{ position, generation uint64 }

// writeFormat makes a new file a store.
func writeFormat(tx *bbolt.Tx) error {
	head, err := tx.CreateBucket(storeBucket)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucket(documentsBucket); err != nil {
		return err
	}
	if err := putHead(head, formatKey, binary.AppendUvarint(nil, formatKeyless)); err != nil {
		return err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return putHead(head, idKey, id[:])
}

func putHead(head *bbolt.Bucket, key, body []byte) error {
	value := append(make([]byte, checksumSize, checksumSize+len(body)), body...)
	seal(kindFormat, key, value)
	return head.Put(key, value)
}

func readHead(head *bbolt.Bucket, key []byte) ([]byte, error) {
	value := head.Get(key)
	if value == nil {
		return nil, nil
	}
	body, err := unseal(kindFormat, key, value)
	if err != nil {
		return nil, fmt.Errorf("the record %q: %w", key, err)
	}
	return body, nil
}

func (s *Store) readHead(tx *bbolt.Tx) error {
	corrupt := func(err error) error {
		return &job.Error{Kind: job.Corrupt, Message: s.folder.file() + " is damaged or no store of boardd", Err: err}
	}
	head := tx.Bucket(storeBucket)
	if head == nil || tx.Bucket(documentsBucket) == nil {
		return corrupt(errors.New("it is a bbolt file that boardd did not make"))
	}
	format, err := readHead(head, formatKey)
	if err != nil {
		return corrupt(err)
	}
	r := reader{b: format}
	version := r.uvarint()
	if r.err != nil {
		return corrupt(fmt.Errorf("the record %q: %w", formatKey, r.err))
	}
	if version < formatWithout || version > formatVersion {
		return job.Errorf(job.Precondition, "%s is written in format %d, and this boardd reads format %d: use the boardd that wrote it, or a newer one",
			s.folder.file(), version, formatVersion)
	}
	s.format = version
	id, err := readHead(head, idKey)
	if err != nil || len(id) != len(s.id) {
		return corrupt(fmt.Errorf("the record %q: %w", idKey, errors.Join(err, errShort)))
	}
	copy(s.id[:], id)
	if s.reached, err = readReached(head); err != nil {
		return corrupt(err)
	}
	return nil
}

// readReached finds how far the file goes.
func readReached(head *bbolt.Bucket) (r reached, err error) {
	body, err := readHead(head, journalKey)
	if err != nil {
		return r, err
	}
	if body == nil {
		return reached{whole: true}, nil
	}
	if err := r.decode(body); err != nil {
		return r, fmt.Errorf("the record %q: %w", journalKey, err)
	}
	return r, nil
}

// readRest reads what of the head may have been in the journal.
func (s *Store) readRest(tx *bbolt.Tx) error {
	corrupt := func(err error) error {
		return &job.Error{Kind: job.Corrupt, Message: s.folder.file() + " is damaged", Err: err}
	}
	head := tx.Bucket(storeBucket)
	s.readBoot(head)
	if err := s.readFloor(head); err != nil {
		return corrupt(err)
	}
	return nil
}

// readBoot finds since when leases that were counted on another boot are
// counted anew: since this boot's first look at the store.
func (s *Store) readBoot(head *bbolt.Bucket) {
	s.bootBase = s.clock.boot()
	body, err := readHead(head, bootKey)
	if body == nil && err == nil {
		return
	}
	r := reader{b: body}
	boot, base := uint64(r.int64()), time.Duration(r.int64())
	if err := errors.Join(err, r.done()); err != nil { // leases last longer than they had to, never shorter
		s.logger.Error("the record of the last boot cannot be read: leases of an earlier boot are counted anew", "path", s.folder.path, "error", err)
		return
	}
	if boot == s.clock.id {
		s.bootBase, s.bootKept = base, true
	}
}

// saveBoot writes that moment down with the first change after a boot.
func (s *Store) saveBoot(t *txn) {
	if s.bootKept {
		return
	}
	body := appendInt64(appendInt64(nil, int64(s.clock.id)), int64(s.bootBase))
	t.put(t.table(nil, inStore), kindFormat, bootKey, len(body), func(b []byte) []byte { return append(b, body...) })
	s.bootKept = true // should this transaction be undone, the next restart counts anew
}

func (s *Store) readFloor(head *bbolt.Bucket) error {
	body, err := readHead(head, floorKey)
	if err != nil || body == nil {
		return err
	}
	r := reader{b: body}
	s.floor = floor{position: r.uvarint(), generation: r.uvarint()}
	if err := r.done(); err != nil {
		return fmt.Errorf("the record %q: %w", floorKey, err)
	}
	return nil
}
