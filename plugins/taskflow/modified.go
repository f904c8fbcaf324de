package taskflow

import (
	"bytes"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// EncodeDatetime writes a time as TaskFlow does: UTC, without a zone, to the
// microsecond.
func EncodeDatetime(t time.Time) ([]byte, error) {
	if t.IsZero() {
		return nil, invalid("created_on: want a time, since TaskFlow fails over a posting without one")
	}
	var b bytes.Buffer
	err := writeDatetime(msgpack.NewEncoder(&b), t, nil)
	return b.Bytes(), err
}

// nonceKey is the key that boardd adds to the datetime of a job's last change.
const nonceKey = "nonce"

// EncodeModified writes the time of a job's last change as a claim made by
// boardd leaves it: a datetime that TaskFlow reads, with one more key that it
// passes over. Every claim and abandon by TaskFlow replaces it as a whole, so a
// nonce that still stands there says that none came in between. It is the last 16
// bytes, where a script finds it without reading msgpack.
func EncodeModified(t time.Time, nonce [16]byte) ([]byte, error) {
	var b bytes.Buffer
	err := writeDatetime(msgpack.NewEncoder(&b), t, nonce[:])
	return b.Bytes(), err
}

// DecodeModified reads the time of a job's last change, and the nonce that
// boardd left with it; ours is false where TaskFlow wrote it last.
func DecodeModified(blob []byte) (t time.Time, nonce [16]byte, ours bool, err error) {
	r := reader{data: blob}
	v, err := r.next()
	if err == nil && (v.kind != kindExt || v.code != extDatetime || r.at != len(blob)) {
		err = fmt.Errorf("it is %v: want a datetime and nothing else", v.kind)
	}
	if err != nil {
		return t, nonce, false, corrupt("last_modified: %v", err)
	}
	if t, err = readDatetime(v.body, 0); err != nil {
		return time.Time{}, nonce, false, corrupt("last_modified: %v", err)
	}
	f, _, _ := readFields(v.body, 0, timeFields) // readDatetime has just done it
	ours = len(f.nonce) == len(nonce)
	if ours {
		copy(nonce[:], f.nonce)
	}
	return t, nonce, ours, nil
}
