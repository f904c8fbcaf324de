package board

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
)

// pageToken is a place in a listing: in claim order for the open jobs, the
// driver's own for the others. It holds no state of this host.
type pageToken struct {
	order string       // what the open jobs are ordered by
	part  int          // partOpen and so on
	after *index.Order // nil: from the start
	scan  string
}

// A page token's text is a version byte, a digest of the listing that it
// belongs to, the part, and the place; for the open jobs after a digest of what
// they are ordered by.
const pageTokenVersion = 2

var pageEncoding = base64.RawURLEncoding.Strict()

func (t *pageToken) encode(states stateSet, encoded string) string {
	b := append(make([]byte, 0, 96), pageTokenVersion)
	sum := listingDigest(states, encoded)
	b = append(b, sum[:]...)
	b = append(b, byte(t.part)) //nolint:gosec // one of four
	if t.part != partOpen {
		return pageEncoding.EncodeToString(append(b, t.scan...))
	}
	order := orderDigest(t.order)
	b = append(b, order[:]...)
	if o := t.after; o != nil {
		b = binary.AppendVarint(b, o.Score)
		b = binary.AppendVarint(b, int64(o.Priority))
		b = binary.AppendVarint(b, int64(o.OperationPriority))
		b = binary.AppendVarint(b, o.CreatedAt)
		b = binary.AppendUvarint(b, o.Sequence)
		b = append(b, o.ID[:]...)
	}
	return pageEncoding.EncodeToString(b)
}

// listingDigest tells listings apart.
func listingDigest(states stateSet, encoded string) [8]byte {
	sum := sha256.Sum256(append([]byte{byte(states)}, encoded...))
	return [8]byte(sum[:8])
}

func orderDigest(order string) [8]byte {
	sum := sha256.Sum256([]byte(order))
	return [8]byte(sum[:8])
}

func (b *Board) parsePageToken(text string, states stateSet, encoded string) (pageToken, error) {
	order := b.rules.Load().orderID()
	if text == "" {
		return pageToken{order: order}, nil
	}
	wrong := job.Errorf(job.Invalid, "pageToken: want one that a page of this very listing gave")
	raw, err := pageEncoding.DecodeString(text)
	if err != nil || len(raw) < 10 || raw[0] != pageTokenVersion {
		return pageToken{}, wrong
	}
	if sum := listingDigest(states, encoded); !bytes.Equal(raw[1:9], sum[:]) {
		return pageToken{}, job.Errorf(job.Invalid, "pageToken: the states and the filter must stay the same from page to page")
	}
	t := pageToken{part: int(raw[9]), order: order}
	raw = raw[10:]
	switch {
	case t.part < partOpen || t.part >= partEnd:
		return pageToken{}, wrong
	case t.part != partOpen:
		t.scan = string(raw)
		return t, nil
	case len(raw) < 8:
		return pageToken{}, wrong
	}
	if sum := orderDigest(order); !bytes.Equal(raw[:8], sum[:]) {
		return pageToken{}, job.Errorf(job.Aborted, "pageToken: the board is ordered by another policy since that page: begin the listing anew")
	}
	if raw = raw[8:]; len(raw) == 0 {
		return t, nil
	}
	var numbers [4]int64
	for i := range numbers {
		n, size := binary.Varint(raw)
		if size <= 0 {
			return pageToken{}, wrong
		}
		numbers[i], raw = n, raw[size:]
	}
	sequence, size := binary.Uvarint(raw)
	if size <= 0 || len(raw) != size+16 || numbers[1] != int64(int8(numbers[1])) || numbers[2] != int64(int32(numbers[2])) { //nolint:gosec // that is the question
		return pageToken{}, wrong
	}
	t.after = &index.Order{
		Score: numbers[0], Priority: job.Priority(numbers[1]), OperationPriority: int32(numbers[2]), //nolint:gosec // checked above
		CreatedAt: numbers[3], Sequence: sequence, ID: job.ID(raw[size:]),
	}
	return t, nil
}
