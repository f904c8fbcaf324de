package catalog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// The store counts the versions of all documents together, so that from its numbers a
// tenant would learn how much the others change. It is shown others: of a record's
// version, by the record's random ID, which nobody is shown. They differ wherever the
// versions do, and are the same on every host.

// shownBits is how large they are: every JSON reader takes them for whole numbers.
const shownBits = 53

// Shown is the version of the tenant as people see it.
func (t *Tenant) Shown() uint64 { return shown(t.ID, t.Version) }

// Shown is the version of the board as people see it.
func (b *Board) Shown() uint64 { return shown(b.ID, b.Version) }

func shown(id string, version uint64) uint64 {
	if version == 0 {
		return 0 // there is none
	}
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write(binary.BigEndian.AppendUint64([]byte("version"), version))
	return max(1, binary.BigEndian.Uint64(mac.Sum(nil))>>(64-shownBits))
}
