package job

import (
	"encoding/hex"
	"fmt"

	"github.com/boardd/boardd/sdk/shorten"
)

// ID is a job's uuid (RFC 4122). The zero ID names no job.
type ID [16]byte

// ParseID reads the text form with four dashes, in either case, of any version
// and variant: a poster's own numbers are its own business. The zero uuid is
// refused.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("%q is not a uuid: want 32 hexadecimal digits as 8-4-4-4-12", clip(s))
	}
	var digits [32]byte
	n := copy(digits[:], s[:8])
	n += copy(digits[n:], s[9:13])
	n += copy(digits[n:], s[14:18])
	n += copy(digits[n:], s[19:23])
	copy(digits[n:], s[24:])
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return ID{}, fmt.Errorf("%q is not a uuid: want 32 hexadecimal digits as 8-4-4-4-12", clip(s))
	}
	if id == (ID{}) {
		return ID{}, fmt.Errorf("the uuid of all zeros names no job")
	}
	return id, nil
}

// String returns the text form in lower case.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])
	return string(b[:])
}

// clip shortens a stranger's text for a message.
func clip(s string) string { return shorten.Text(s) }
