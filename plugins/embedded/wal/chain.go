package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Chain is what was read of an epoch.
type Chain struct {
	Records uint64 // 0: there is no such epoch
	Before  uint64 // how many the epoch before it has
	Torn    bool   // the record after the last was begun
}

// Read goes through the records of an epoch. It is an error if something was
// there that is there no longer.
func (l *Log) Read(epoch uint64, visit func(body []byte) error) (c Chain, err error) {
	f, err := os.Open(l.Path(epoch))
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
	in := &reader{Log: l, file: f, size: info.Size(), epoch: epoch}
	at, room := int64(0), int64(0)
	for ; ; c.Records++ {
		record, err := in.at(at, c.Records)
		if err != nil {
			return c, err
		}
		if record == nil {
			break
		}
		room = max(room, int64(binary.LittleEndian.Uint32(record[24:])))
		body := record[Head:]
		switch {
		case c.Records == 0 && len(body) != 8:
			return c, errors.New("its first record is not one")
		case c.Records == 0:
			c.Before = binary.LittleEndian.Uint64(body)
		default:
			if err := visit(body); err != nil {
				return c, fmt.Errorf("record %d: %w", c.Records, err)
			}
		}
		at += int64(len(record))
	}
	if in.size < room*Unit {
		return c, fmt.Errorf("it has %d bytes and had %d MiB: it was cut off", in.size, room)
	}
	later, err := in.later(at, c.Records)
	if err == nil && later > 0 {
		err = fmt.Errorf("record %d is damaged, and record %d stands behind it", c.Records, later)
	}
	c.Torn = in.torn
	return c, err
}

// reader looks for records of one epoch in one file.
type reader struct {
	*Log

	file  *os.File
	size  int64
	epoch uint64
	torn  bool // a record was begun and is not whole
}

// at returns the record of a number at a place, or nil if it is not there.
func (in *reader) at(at int64, number uint64) ([]byte, error) {
	head := make([]byte, Head)
	if at+Head > in.size {
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
func (in *reader) begins(head []byte) bool {
	return binary.LittleEndian.Uint32(head) == recordMagic && binary.LittleEndian.Uint64(head[8:]) == in.epoch
}

// whole reads the record that begins with head, or returns nil if it is not
// sound.
func (in *reader) whole(head []byte, at int64) ([]byte, error) {
	n := int64(binary.LittleEndian.Uint32(head[4:]))
	if n%recordAlign != 0 || at+Head+n > in.size {
		return nil, nil
	}
	record := make([]byte, Head+n)
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
func (in *reader) later(from int64, number uint64) (uint64, error) {
	const window = 1 << 20
	b := make([]byte, window+Head)
	for ; from < in.size; from += window {
		n, err := in.file.ReadAt(b, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; i+Head <= n && i < window; i += recordAlign {
			head := b[i : i+Head]
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
