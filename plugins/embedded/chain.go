package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// chain is what was read of an epoch.
type chain struct {
	records uint64 // 0: there is no such epoch
	before  uint64 // how many the epoch before it has
	torn    bool   // the record after the last was begun
}

// read goes through the records of an epoch. It is an error if something was
// there that is there no longer.
func (j *journal) read(epoch uint64, visit func(body []byte) error) (c chain, err error) {
	f, err := os.Open(j.path(epoch))
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	in := &journalReader{journal: j, file: f, size: info.Size(), epoch: epoch}
	at, room := int64(0), int64(0)
	for ; ; c.records++ {
		record, err := in.at(at, c.records)
		if err != nil {
			return c, err
		}
		if record == nil {
			break
		}
		room = max(room, int64(binary.LittleEndian.Uint32(record[24:])))
		body := record[recordHead:]
		switch {
		case c.records == 0 && len(body) != 8:
			return c, errors.New("its first record is not one")
		case c.records == 0:
			c.before = binary.LittleEndian.Uint64(body)
		default:
			if err := visit(body); err != nil {
				return c, fmt.Errorf("record %d: %w", c.records, err)
			}
		}
		at += int64(len(record))
	}
	if in.size < room*journalUnit {
		return c, fmt.Errorf("it has %d bytes and had %d MiB: it was cut off", in.size, room)
	}
	later, err := in.later(at, c.records)
	if err == nil && later > 0 {
		err = fmt.Errorf("record %d is damaged, and record %d stands behind it", c.records, later)
	}
	c.torn = in.torn
	return c, err
}

// journalReader looks for records of one epoch in one file.
type journalReader struct {
	*journal

	file  *os.File
	size  int64
	epoch uint64
	torn  bool // a record was begun and is not whole
}

// at returns the record of a number at a place, or nil if it is not there.
func (in *journalReader) at(at int64, number uint64) ([]byte, error) {
	head := make([]byte, recordHead)
	if at+recordHead > in.size {
		return nil, nil
	}
	if _, err := in.file.ReadAt(head, at); err != nil {
		return nil, err
	}
	if !in.begins(head) || binary.LittleEndian.Uint64(head[16:]) != number {
		return nil, nil
	}
	record, err := in.whole(head, at)
	if record == nil && err == nil {
		in.torn = true
	}
	return record, err
}

// begins reports whether this looks like the head of a record of the epoch.
func (in *journalReader) begins(head []byte) bool {
	return binary.LittleEndian.Uint32(head) == recordMagic && binary.LittleEndian.Uint64(head[8:]) == in.epoch
}

// whole reads the record that begins with head, or returns nil if it is not
// sound.
func (in *journalReader) whole(head []byte, at int64) ([]byte, error) {
	n := int64(binary.LittleEndian.Uint32(head[4:]))
	if n%recordAlign != 0 || at+recordHead+n > in.size {
		return nil, nil
	}
	record := make([]byte, recordHead+n)
	if _, err := in.file.ReadAt(record, at); err != nil {
		return nil, err
	}
	if in.sum(record) != binary.LittleEndian.Uint32(record[28:]) {
		return nil, nil
	}
	return record, nil
}

// later returns the number of a sound record of the epoch behind the end of its
// chain, or 0. There is one only if the chain was broken after it was written.
func (in *journalReader) later(from int64, number uint64) (uint64, error) {
	const window = 1 << 20
	b := make([]byte, window+recordHead)
	for ; from < in.size; from += window {
		n, err := in.file.ReadAt(b, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; i+recordHead <= n && i < window; i += recordAlign {
			head := b[i : i+recordHead]
			if !in.begins(head) || binary.LittleEndian.Uint64(head[16:]) < number {
				continue
			}
			record, err := in.whole(head, from+int64(i))
			if err != nil {
				return 0, err
			}
			if record != nil && binary.LittleEndian.Uint64(head[16:]) > 0 {
				return binary.LittleEndian.Uint64(head[16:]), nil
			}
		}
	}
	return 0, nil
}
