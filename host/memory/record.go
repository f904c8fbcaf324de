package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
)

// A file begins with magic, and then has records one behind the other, each at a
// multiple of 8 bytes, in little endian:
//
//	mark    4 bytes
//	length  4 bytes, of what follows the sum
//	sum     4 bytes, CRC-32C of the length and of what follows the sum
//	gone    1 byte, 1 where the key is to be forgotten
//	key     2 bytes of length, and as many bytes
//	value   the rest
//
// and zeros up to the next multiple of 8. A later record of a key holds. Behind the
// last one there are zeros. What lies between is no record of ours any more: records
// behind it still count, since each was put by itself.
const (
	magic      = "boardd memory 1\n"
	recordMark = 0x6D65_4D62
	recordHead = 12
	recordFix  = 3 // of what follows the head: gone and the key's length
	align      = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRecord(b []byte, key string, value []byte, gone bool) []byte {
	at := len(b)
	order := binary.LittleEndian
	b = order.AppendUint32(b, recordMark)
	b = order.AppendUint32(b, uint32(recordFix+len(key)+len(value)))
	b = append(b, 0, 0, 0, 0)
	if gone {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = order.AppendUint16(b, uint16(len(key)))
	b = append(append(b, key...), value...)
	order.PutUint32(b[at+8:], sum(b[at:]))
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// sum is that of a record without what comes behind it.
func sum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[4:8], castagnoli), castagnoli, record[recordHead:])
}

// decodeRecord returns the record that b begins with, and how many bytes it takes up;
// 0 where there is none.
func decodeRecord(b []byte) (key string, value []byte, gone bool, size int) {
	if len(b) < recordHead+recordFix || binary.LittleEndian.Uint32(b) != recordMark {
		return "", nil, false, 0
	}
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if n < recordFix || n > int64(len(b)-recordHead) {
		return "", nil, false, 0
	}
	record := b[:recordHead+n]
	if sum(record) != binary.LittleEndian.Uint32(b[8:]) {
		return "", nil, false, 0
	}
	body := record[recordHead:]
	length := int(binary.LittleEndian.Uint16(body[1:]))
	if recordFix+length > len(body) {
		return "", nil, false, 0
	}
	size = (len(record) + align - 1) / align * align
	return string(body[recordFix : recordFix+length]), body[recordFix+length:], body[0] == 1, min(size, len(b))
}

// readLog returns what a file holds, and how many bytes in it are neither a record
// nor empty. A file that is not there holds nothing.
func readLog(path string) (known map[string][]byte, unread int, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]byte{}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	known, unread = decodeLog(text)
	return known, unread, nil
}

func decodeLog(text []byte) (known map[string][]byte, unread int) {
	known = map[string][]byte{}
	if !bytes.HasPrefix(text, []byte(magic)) {
		unread = min(len(text), len(magic))
	}
	var zeros [align]byte
	for at := len(magic); at < len(text); {
		key, value, gone, size := decodeRecord(text[at:])
		switch end := min(at+align, len(text)); {
		case size == 0:
			if !bytes.Equal(text[at:end], zeros[:end-at]) {
				unread += align
			}
			at = end
			continue
		case gone:
			delete(known, key)
		default:
			known[key] = bytes.Clone(value)
		}
		at += size
	}
	return known, unread
}
