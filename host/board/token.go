package board

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/boardd/boardd/sdk/job"
)

// A token's text is a version byte, the job's id, generation, epoch and nonce
// in URL-safe base64. Clients do not look inside.
const (
	tokenVersion = 1
	tokenBytes   = 1 + 16 + 8 + 8 + 16
)

var tokenEncoding = base64.RawURLEncoding.Strict()

// FormatToken writes the token of a claim on a job as clients see it. The zero
// token, that of a claim made by another program, is empty text.
func (b *Board) FormatToken(id job.ID, t job.Token) string {
	if t.IsZero() {
		return ""
	}
	var raw [tokenBytes]byte
	raw[0] = tokenVersion
	copy(raw[1:], id[:])
	binary.BigEndian.PutUint64(raw[17:], t.Generation)
	binary.BigEndian.PutUint64(raw[25:], t.Epoch)
	copy(raw[33:], t.Nonce[:])
	var text [(tokenBytes*8 + 5) / 6]byte
	tokenEncoding.Encode(text[:], raw[:])
	return string(text[:])
}

// ParseToken reads what FormatToken wrote for the same job. Anything else is
// NotOwner.
func (b *Board) ParseToken(id job.ID, text string) (job.Token, error) {
	var raw [tokenBytes]byte
	if len(text) != tokenEncoding.EncodedLen(tokenBytes) {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	if n, err := tokenEncoding.Decode(raw[:], []byte(text)); err != nil || n != tokenBytes || raw[0] != tokenVersion {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	if job.ID(raw[1:17]) != id {
		return job.Token{}, errToken(id, "the token belongs to another job")
	}
	t := job.Token{
		Generation: binary.BigEndian.Uint64(raw[17:]),
		Epoch:      binary.BigEndian.Uint64(raw[25:]),
		Nonce:      [16]byte(raw[33:]),
	}
	if t.IsZero() {
		return job.Token{}, errToken(id, "the token is not one that this board gave out")
	}
	return t, nil
}

func errToken(id job.ID, message string) error {
	return &job.Error{Job: id, Kind: job.NotOwner, Message: message}
}
