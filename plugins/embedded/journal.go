package embedded

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// The journal makes a change durable with one write and one sync: a record of
// what the change puts where is added to a file that has its size already, so
// that the disk is told about nothing else. It consists of epochs. Each is a
// chain of records, numbered from 0, at the front of one of two files; the epochs
// take turns in them. Record 0 of an epoch says how long the one before it was.
// What an epoch holds is written to the store's file while the next one goes on,
// and when it is there its journal file is free for the one after that.
//
// A record begins, in little endian:
//
//	magic   4 bytes
//	length  4 bytes, of the body, which follows
//	epoch   8 bytes
//	number  8 bytes
//	room    4 bytes, the least size of the file in MiB: a shorter one was cut off
//	sum     4 bytes, CRC-32C of the store's id, of the salt, of the 28 bytes above and of the body
//
// and ends at a multiple of 8 bytes. The salt is random, and another one each time
// that a journal is begun behind a file that is whole: so what an earlier journal
// left behind is never taken for a part of this one, even if the file was put back from
// a backup and the epochs are counted again. Since a record is on the disk before the
// next one is written, only the last one of the last epoch can be incomplete.
type journal struct {
	folder string
	disk   disk
	id     [16]byte // of the store
	salt   [16]byte

	files [2]*os.File // nil until used
	sizes [2]int64    // what they have, all of it written once

	epoch  uint64 // that is written
	number uint64 // of its next record
	at     int64  // where that goes

	spare int64 // that is to be left in the file behind the next record
}

// disk is the two calls that make a record durable. Tests make them fail.
type disk struct {
	write func(f *os.File, b []byte, at int64) error
	sync  func(f *os.File) error
}

func (d disk) filled() disk {
	if d.write == nil {
		d.write = func(f *os.File, b []byte, at int64) error {
			_, err := f.WriteAt(b, at)
			return err
		}
	}
	if d.sync == nil {
		d.sync = syncData
	}
	return d
}

const (
	recordMagic = 0x4A64_6F62
	recordHead  = 32
	recordAlign = 8
	journalUnit = 1 << 20 // files are so many times as large
)

// journalFiles are the names of the two files. Epoch n is in the n%2nd.
var journalFiles = [2]string{"boards.journal.0", "boards.journal.1"}

var errFull = errors.New("the disk has no room for the journal")

func newJournal(folder string, id [16]byte, d disk) *journal {
	return &journal{folder: folder, disk: d, id: id}
}

// renew takes another salt.
func (j *journal) renew() { _, _ = rand.Read(j.salt[:]) } // never fails

func (j *journal) path(epoch uint64) string { return filepath.Join(j.folder, journalFiles[epoch%2]) }

// begin begins an epoch; previous is how many records the one before it has. What
// was in its file must not be needed any more.
func (j *journal) begin(epoch, previous uint64) error {
	n := epoch % 2
	if j.files[n] == nil {
		if err := j.openFile(epoch); err != nil {
			return err
		}
	}
	before := *j
	j.epoch, j.number, j.at = epoch, 0, 0
	record := binary.LittleEndian.AppendUint64(make([]byte, recordHead, 64), previous)
	if err := j.append(record); err != nil {
		before.files, before.sizes = j.files, j.sizes
		*j = before
		return err
	}
	return nil
}

func (j *journal) openFile(epoch uint64) error {
	f, err := os.OpenFile(j.path(epoch), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = syncFolder(j.folder)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.files[epoch%2] = f
	j.sizes[epoch%2] = info.Size() / journalUnit * journalUnit
	return nil
}

// append makes a record durable, whose body begins behind recordHead bytes that
// are filled in here. An error that is errFull leaves everything as it was.
func (j *journal) append(record []byte) error {
	for len(record)%recordAlign != 0 {
		record = append(record, 0)
	}
	n := j.epoch % 2
	// A record that tells of a larger file has to lie in the smaller one, so that a
	// file that is cut off at its old size is found out.
	const notice = recordHead
	if j.at+int64(len(record))+notice+j.spare > j.sizes[n] {
		if err := j.grow(j.at + int64(len(record)) + 2*notice + j.spare); err != nil {
			return err
		}
		if j.number > 0 {
			if err := j.write(make([]byte, recordHead)); err != nil {
				return err
			}
		}
	}
	if err := j.write(record); err != nil {
		return err
	}
	return j.disk.sync(j.files[n])
}

// write puts a record behind the last one.
func (j *journal) write(record []byte) error {
	f := j.files[j.epoch%2]
	order := binary.LittleEndian
	order.PutUint32(record, recordMagic)
	order.PutUint32(record[4:], uint32(len(record)-recordHead))
	order.PutUint64(record[8:], j.epoch)
	order.PutUint64(record[16:], j.number)
	order.PutUint32(record[24:], uint32(j.sizes[j.epoch%2]/journalUnit))
	order.PutUint32(record[28:], j.sum(record))
	if err := j.disk.write(f, record, j.at); err != nil {
		if isFull(err) { // on a file system that writes old blocks to new places
			return fmt.Errorf("%w: %w", errFull, err)
		}
		return err
	}
	j.number++
	j.at += int64(len(record))
	return nil
}

func (j *journal) sum(record []byte) uint32 {
	sum := crc32.Update(crc32.Checksum(j.id[:], castagnoli), castagnoli, j.salt[:])
	return crc32.Update(crc32.Update(sum, castagnoli, record[:28]), castagnoli, record[recordHead:])
}

// grow makes the present file large enough. Everything is written once: the
// disk would otherwise have to note for each record where it put it.
func (j *journal) grow(need int64) error {
	n := j.epoch % 2
	f, size := j.files[n], j.sizes[n]
	want := max(2*size, (need+journalUnit-1)/journalUnit*journalUnit)
	want = min(want, max(size+16*journalUnit, (need+journalUnit-1)/journalUnit*journalUnit))
	zeros := make([]byte, journalUnit)
	for at := size; at < want; at += journalUnit {
		if err := j.disk.write(f, zeros, at); err != nil {
			if isFull(err) {
				return fmt.Errorf("%w: %w", errFull, errors.Join(err, f.Truncate(size)))
			}
			return err
		}
	}
	if err := j.disk.sync(f); err != nil {
		if isFull(err) { // nothing but zeros was lost
			return fmt.Errorf("%w: %w", errFull, errors.Join(err, f.Truncate(size)))
		}
		return err
	}
	j.sizes[n] = want
	return nil
}

func (j *journal) close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
