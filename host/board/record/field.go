// Package record has what a board writes about a job besides what a driver knows of it:
// the status record, which changes, the extra record of the posting, which does not, the
// operations within, and the log's chunks. It is bytes to structs and back, and the rules
// of what one record allows; it reaches no store and knows no board.
package record

import (
	"encoding/binary"
	"errors"
	"time"
)

// Version begins every record. Records are written as a version byte and then fields, each a
// tag, a length and as many bytes. A reader keeps the fields that it does not
// know and writes them again, so that an older version loses nothing of a newer
// one's.
const Version = 1

// ErrRecord says that a record cannot be read.
var ErrRecord = errors.New("the record is cut short or of a format that this version cannot read")

// AppendField writes a field.
func AppendField(dst []byte, tag uint64, data []byte) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(data)))
	return append(dst, data...)
}

// AppendText writes a field of text.
func AppendText(dst []byte, tag uint64, text string) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// AppendNumber leaves a zero out.
func AppendNumber(dst []byte, tag uint64, n int64) []byte {
	if n == 0 {
		return dst
	}
	var buf [binary.MaxVarintLen64]byte
	return AppendField(dst, tag, buf[:binary.PutVarint(buf[:], n)])
}

// AppendTime leaves the zero time out.
func AppendTime(dst []byte, tag uint64, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	var buf [binary.MaxVarintLen64]byte
	return AppendField(dst, tag, buf[:binary.PutVarint(buf[:], t.UnixMicro())])
}

// EachField calls fn for each field of a record, in order. Whole is the field
// with its tag and length. The slices point into record.
func EachField(record []byte, fn func(tag uint64, data, whole []byte) error) error {
	if len(record) == 0 {
		return nil
	}
	if record[0] != Version {
		return ErrRecord
	}
	for rest := record[1:]; len(rest) > 0; {
		tag, n := uvarint(rest)
		if n <= 0 {
			return ErrRecord
		}
		size, m := uvarint(rest[n:])
		if m <= 0 || size > uint64(len(rest)-n-m) {
			return ErrRecord
		}
		end := n + m + int(size) //nolint:gosec // not more than len(rest)
		if err := fn(tag, rest[n+m:end], rest[:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

// uvarint is binary.Uvarint, quicker for small numbers, as most are.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// ReadNumber reads the number that a field holds.
func ReadNumber(data []byte) (int64, error) {
	v, n := binary.Varint(data)
	if n != len(data) || n <= 0 {
		return 0, ErrRecord
	}
	return v, nil
}
