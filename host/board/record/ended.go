package record

import (
	"encoding/binary"
	"slices"

	"github.com/boardd/boardd/sdk/job"
)

// MaxEnded is how many claims that were given up a status record knows by their tokens: the
// last ones.
const MaxEnded = 8

// Ended is a claim that its holder gave up, by its token. A store knows by itself what was done
// by a token, within the board's window, so that who repeats it is answered as before; this is
// for the stores to which the board moves later.
type Ended struct {
	By      job.Token
	Trashed bool // by a trash; else by an abandon
}

// End notes that a claim was given up.
func (s *Status) End(e Ended) {
	over := max(0, len(s.Ended)-MaxEnded+1)
	s.Ended = slices.Concat(s.Ended[over:], []Ended{e}) // the old one may be shared
}

// HasEnded reports whether the record knows that a claim was given up so.
func (s *Status) HasEnded(e Ended) bool { return !e.By.IsZero() && slices.Contains(s.Ended, e) }

func appendEnded(dst []byte, e *Ended) []byte {
	var buf [1 + len(e.By.Nonce) + 2*binary.MaxVarintLen64]byte
	data := append(append(buf[:0], byte(flag(e.Trashed))), e.By.Nonce[:]...)
	data = binary.AppendUvarint(data, e.By.Generation)
	return AppendField(dst, statusEnded, binary.AppendUvarint(data, e.By.Epoch))
}

func readEnded(data []byte) (e Ended, err error) {
	if len(data) < 1+len(e.By.Nonce) {
		return Ended{}, ErrRecord
	}
	e.Trashed = data[0] != 0
	data = data[1+copy(e.By.Nonce[:], data[1:]):]
	for _, n := range []*uint64{&e.By.Generation, &e.By.Epoch} {
		v, size := binary.Uvarint(data)
		if size <= 0 {
			return Ended{}, ErrRecord
		}
		*n, data = v, data[size:]
	}
	return e, nil
}
