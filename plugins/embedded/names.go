package embedded

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// counted reports whether a page has as many elements as it counts: what they
// point to begins right behind the last one, so that one more or less shows. The
// position of the first lies at an offset within it. A page without elements has
// nothing behind its header.
func counted(b []byte, count, offset int) bool {
	if len(b) < pageHeader+pageElement {
		return count == 0
	}
	position := int(binary.NativeEndian.Uint32(b[pageHeader+offset:]))
	return position == count*pageElement
}

// A level says which names there are in a bucket. A bucket under another name
// would be taken for one that is not there, with all that is in it.
type level uint8

const (
	records    level = iota // keys of records, whose checksums say more
	topLevel                // of the file
	boardLevel              // of a board
)

var boardBuckets = [][]byte{
	jobsBucket, detailsBucket, attachedBucket, trashBucket, tombstoneBucket, finalBucket, expiryBucket, answerBucket, changeBucket, keyBucket, groupBucket,
}

// below returns the level of a bucket of this name, and whether there is such a
// name here.
func (l level) below(name []byte, bucket bool) (level, bool) {
	is := func(known []byte) bool { return bytes.Equal(known, name) }
	switch l {
	case topLevel:
		if bytes.HasPrefix(name, boardPrefix) {
			return boardLevel, bucket
		}
		return records, bucket && (is(storeBucket) || is(documentsBucket))
	case boardLevel:
		if is(stateKey) {
			return records, !bucket
		}
		return records, bucket && slices.ContainsFunc(boardBuckets, is)
	}
	return records, true
}
