package board

import (
	"encoding/binary"
	"errors"
	"time"
)

// Records of the board are written as a version byte and then fields, each a
// tag, a length and as many bytes. A reader keeps the fields that it does not
// know and writes them again, so that an older version loses nothing of a newer
// one's.
const recordVersion = 1

var errRecord = errors.New("the record is cut short or of a format that this version cannot read")

func appendField(dst []byte, tag uint64, data []byte) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(data)))
	return append(dst, data...)
}

func appendText(dst []byte, tag uint64, text string) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// appendNumber leaves a zero out.
func appendNumber(dst []byte, tag uint64, n int64) []byte {
	if n == 0 {
		return dst
	}
	var buf [binary.MaxVarintLen64]byte
	return appendField(dst, tag, buf[:binary.PutVarint(buf[:], n)])
}

// appendTime leaves the zero time out.
func appendTime(dst []byte, tag uint64, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	var buf [binary.MaxVarintLen64]byte
	return appendField(dst, tag, buf[:binary.PutVarint(buf[:], t.UnixMicro())])
}

// eachField calls fn for each field of a record, in order. Whole is the field
// with its tag and length. The slices point into record.
func eachField(record []byte, fn func(tag uint64, data, whole []byte) error) error {
	if len(record) == 0 {
		return nil
	}
	if record[0] != recordVersion {
		return errRecord
	}
	for rest := record[1:]; len(rest) > 0; {
		tag, n := uvarint(rest)
		if n <= 0 {
			return errRecord
		}
		size, m := uvarint(rest[n:])
		if m <= 0 || size > uint64(len(rest)-n-m) {
			return errRecord
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

func readNumber(data []byte) (int64, error) {
	v, n := binary.Varint(data)
	if n != len(data) || n <= 0 {
		return 0, errRecord
	}
	return v, nil
}
