package auditor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/boardd/boardd/host/audit"
)

// hidden is how a tenant sees the audit log that it shares with others: from the
// numbers of its records, or their hashes, it would learn how much the others do. So
// it sees none, and where a page ends is a number that is encrypted.
type hidden struct {
	key  [32]byte
	open bool // for who may see the whole log: nothing is hidden
}

func (a *Auditor) hidden(all bool) hidden {
	return hidden{a.key.Secret("cursors"), all}
}

// record leaves out what would tell of others.
func (h hidden) record(r *audit.Record) audit.Record {
	shown := *r
	if !h.open {
		shown.Sequence, shown.Previous, shown.Hash, shown.Signature = 0, "", "", ""
	}
	return shown
}

// write encrypts a record's number, and read decrypts it: a Feistel network of four
// rounds over two halves of 31 bits, so that the result is a number that every JSON
// reader takes for one. A cursor 0 is the begin.
func (h hidden) write(sequence uint64) uint64 {
	if h.open {
		return sequence
	}
	left, right := uint32(sequence>>31)&half, uint32(sequence)&half
	for round := range byte(rounds) {
		left, right = right, left^h.round(round, right)
	}
	return uint64(left)<<31 | uint64(right)
}

func (h hidden) read(cursor uint64) uint64 {
	if h.open || cursor == 0 {
		return cursor
	}
	left, right := uint32(cursor>>31)&half, uint32(cursor)&half
	for round := range byte(rounds) {
		left, right = right^h.round(rounds-1-round, left), left
	}
	return uint64(left)<<31 | uint64(right)
}

const (
	rounds = 4
	half   = 1<<31 - 1
)

func (h hidden) round(n byte, text uint32) uint32 {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write(binary.BigEndian.AppendUint32([]byte{n}, text))
	return binary.BigEndian.Uint32(mac.Sum(nil)) & half
}
