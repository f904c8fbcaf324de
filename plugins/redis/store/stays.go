package store

import (
	"crypto/sha256"
	"encoding/binary"
)

// A stay is the time for which a board is on one server: until another one takes its place,
// or the same one is started again. The first host that looks at the board there notes the
// stay in the head, and until then nobody makes a change but hosts that do not yet know that
// they are on another server. So what was acknowledged on the server before, beyond the change
// at which the next stay begins, is lost. See note.lua.
type stay struct {
	server uint64 // see serverNumber
	since  uint64 // the board's position when it began
}

// staySize is the bytes of one stay in a head, which keeps the last four: Redis keeps a hash
// small as long as none of its values has more than 64 bytes.
const staySize = 8 + 8

// serverNumber is what a head and a host's memory have room for of a run id; 0: not known.
func serverNumber(run string) uint64 {
	if run == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(run))
	return binary.BigEndian.Uint64(sum[:])
}

// serverKey is the number as it is written.
func serverKey(run string) string {
	return string(binary.BigEndian.AppendUint64(nil, serverNumber(run)))
}

// decodeStays reads the stays of a head, the earliest first. What is not written as they are
// tells of none.
func decodeStays(written string) []stay {
	if len(written)%staySize != 0 {
		return nil
	}
	list := make([]stay, len(written)/staySize)
	u := unpacker{b: []byte(written)}
	for i := range list {
		list[i] = stay{u.u64(), u.u64()}
	}
	return list
}

// leftAt returns the change up to which a board has what was acknowledged on a server where
// it was opened at a position, and false if that cannot be told, or it is still there.
func leftAt(list []stay, server, opened uint64) (position uint64, ok bool) {
	if server == 0 || len(list) == 0 || list[len(list)-1].server == server && list[len(list)-1].since <= opened {
		return 0, false
	}
	for i := len(list) - 2; i >= 0; i-- {
		if list[i].server == server && list[i].since <= opened {
			return list[i+1].since, true
		}
	}
	// Its stay is not remembered any more, or is not in what was put back.
	for _, s := range list {
		if s.since >= opened {
			return s.since, true
		}
	}
	return list[len(list)-1].since, true
}
