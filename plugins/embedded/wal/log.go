// Package wal is the write-ahead log of the embedded store: records that are on the disk
// when Append returns, in two files that take turns. What a record says, it does not know.
package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"

	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/failpoint"
)

// Log is a write-ahead log. It makes a change durable with one write and one sync: the
// record is added to a file that has its full size already, so that the sync has no
// metadata to write. The log consists of epochs. Each is a chain of records, numbered
// from 0, at the front of one of two files, which the epochs use in turn. Record 0 of
// an epoch says how many records the one before it has. While one epoch is written, the
// store writes the content of the one before to its own file; after that, the file of
// that epoch is free for the next one.
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
// and ends at a multiple of 8 bytes. The salt is random, and renewed each time that a log
// is begun when the store's file is whole: so records that an earlier log left behind are
// never taken for a part of this one, even if the store's file was put back from a backup
// and the epochs are counted again. Since a record is on the disk before the next one is
// written, only the last one of the last epoch can be incomplete.
type Log struct {
	folder string
	disk   Disk
	id     [16]byte // of the store
	Salt   [16]byte

	files [2]*os.File // nil until used
	sizes [2]int64    // what they have, all of it written once

	Epoch  uint64 // that is written
	Number uint64 // of its next record
	At     int64  // where that goes

	Spare int64 // that is to be left in the file behind the next record
}

// Disk is the two calls that make a record durable. One that is nil is
// the system's. Tests make them fail.
type Disk struct {
	Write func(f *os.File, b []byte, at int64) error
	Sync  func(f *os.File) error
}

func (d Disk) filled() Disk {
	if d.Write == nil {
		d.Write = func(f *os.File, b []byte, at int64) error {
			_, err := f.WriteAt(b, at)
			return err
		}
	}
	if d.Sync == nil {
		d.Sync = SyncData
	}
	return d
}

const (
	recordMagic = 0x4A64_6F62
	recordAlign = 8

	Head = 32      // bytes before a record's body, which Append fills in
	Unit = 1 << 20 // bytes; files are a multiple of it
)

// Files are the names of the two files. Epoch n is in the n%2nd.
var Files = [2]string{"boards.journal.0", "boards.journal.1"}

// ErrFull says that the disk has no room for a record. Everything is as it was.
var ErrFull = errors.New("the disk has no room for the journal")

// New returns the log of a store in a folder. Nothing is read or written yet.
func New(folder string, id [16]byte, d Disk) *Log {
	return &Log{folder: folder, disk: d.filled(), id: id}
}

// Renew takes another salt.
func (l *Log) Renew() { _, _ = rand.Read(l.Salt[:]) } // never fails

// Path is the file of an epoch.
func (l *Log) Path(epoch uint64) string { return filepath.Join(l.folder, Files[epoch%2]) }

// Begin begins an epoch; previous is how many records the one before it has. What
// was in its file must not be needed any more.
func (l *Log) Begin(epoch, previous uint64) error {
	n := epoch % 2
	if l.files[n] == nil {
		if err := l.openFile(epoch); err != nil {
			return err
		}
	}
	before := *l
	l.Epoch, l.Number, l.At = epoch, 0, 0
	record := binary.LittleEndian.AppendUint64(make([]byte, Head, 64), previous)
	if err := l.Append(record); err != nil {
		before.files, before.sizes = l.files, l.sizes
		*l = before
		return err
	}
	return nil
}

func (l *Log) openFile(epoch uint64) error {
	f, err := os.OpenFile(l.Path(epoch), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = durable.SyncFolder(l.folder)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.files[epoch%2] = f
	l.sizes[epoch%2] = info.Size() / Unit * Unit
	return nil
}

// Append makes a record durable. Its body begins after Head bytes, which Append fills
// in. An error that is ErrFull leaves everything as it was.
func (l *Log) Append(record []byte) error {
	for len(record)%recordAlign != 0 {
		record = append(record, 0)
	}
	n := l.Epoch % 2
	// A record that tells of a larger file has to lie in the smaller one, so that a
	// file that is cut off at its old size is found out.
	const notice = Head
	if l.At+int64(len(record))+notice+l.Spare > l.sizes[n] {
		if err := l.grow(l.At + int64(len(record)) + 2*notice + l.Spare); err != nil {
			return err
		}
		if l.Number > 0 {
			if err := l.write(make([]byte, Head)); err != nil {
				return err
			}
		}
	}
	if err := failpoint.Fail("embedded/wal/before-write"); err != nil {
		return err
	}
	if err := l.write(record); err != nil {
		return err
	}
	if err := failpoint.Fail("embedded/wal/before-sync"); err != nil {
		return err
	}
	err := l.disk.Sync(l.files[n])
	failpoint.Hit("embedded/wal/after-sync")
	return err
}

// write puts a record behind the last one.
func (l *Log) write(record []byte) error {
	f := l.files[l.Epoch%2]
	order := binary.LittleEndian
	order.PutUint32(record, recordMagic)
	order.PutUint32(record[4:], uint32(len(record)-Head))
	order.PutUint64(record[8:], l.Epoch)
	order.PutUint64(record[16:], l.Number)
	order.PutUint32(record[24:], uint32(l.sizes[l.Epoch%2]/Unit))
	order.PutUint32(record[28:], l.sum(record))
	if err := l.disk.Write(f, record, l.At); err != nil {
		if IsFull(err) { // on a file system that writes old blocks to new places
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		return err
	}
	l.Number++
	l.At += int64(len(record))
	return nil
}

func (l *Log) sum(record []byte) uint32 {
	sum := crc32.Update(crc32.Checksum(l.id[:], castagnoli), castagnoli, l.Salt[:])
	return crc32.Update(crc32.Update(sum, castagnoli, record[:28]), castagnoli, record[Head:])
}

// grow makes the present file large enough. Zeros are written to all of it: otherwise
// the file system would have to allocate blocks, and sync metadata, for each record.
func (l *Log) grow(need int64) error {
	n := l.Epoch % 2
	f, size := l.files[n], l.sizes[n]
	want := max(2*size, (need+Unit-1)/Unit*Unit)
	want = min(want, max(size+16*Unit, (need+Unit-1)/Unit*Unit))
	zeros := make([]byte, Unit)
	for at := size; at < want; at += Unit {
		if err := l.disk.Write(f, zeros, at); err != nil {
			if IsFull(err) {
				return fmt.Errorf("%w: %w", ErrFull, errors.Join(err, f.Truncate(size)))
			}
			return err
		}
	}
	if err := l.disk.Sync(f); err != nil {
		if IsFull(err) { // nothing but zeros was lost
			return fmt.Errorf("%w: %w", ErrFull, errors.Join(err, f.Truncate(size)))
		}
		return err
	}
	failpoint.Hit("embedded/wal/grown")
	l.sizes[n] = want
	return nil
}

// Close closes the files.
func (l *Log) Close() error {
	var errs []error
	for _, f := range l.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// IsFull reports whether an error says that the disk has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
