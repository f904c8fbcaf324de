package board

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// extra is what the board keeps of a posting besides what a driver knows of it,
// as Posting.Extra carries it. It never changes.
type extra struct {
	labels      []job.Label // sorted by key
	maxAttempts int32
	notBefore   time.Time // as the poster gave it
	after       []job.Prerequisite
	operations  []job.NewOperation // only to be written: operationsOf reads them
}

// The fields of an extra record. A number is never used for anything else.
const (
	extraLabel       = 1
	extraMaxAttempts = 2
	extraNotBefore   = 3
	extraAfter       = 4 // one of the jobs that it waits for
	extraOperation   = 5
)

func readExtra(record []byte) (extra, error) {
	var e extra
	err := eachField(record, func(tag uint64, data, _ []byte) error {
		switch tag {
		case extraLabel:
			size, n := binary.Uvarint(data)
			if n <= 0 || size > uint64(len(data)-n) || len(e.labels) >= job.MaxLabels {
				return errRecord
			}
			key, value := data[n:n+int(size)], data[n+int(size):] //nolint:gosec // not more than len(data)
			e.labels = append(e.labels, job.Label{Key: string(key), Value: string(value)})
		case extraMaxAttempts:
			n, err := readNumber(data)
			if err != nil || n < 0 || n != int64(int32(n)) { //nolint:gosec // that is the question
				return errRecord
			}
			e.maxAttempts = int32(n)
		case extraNotBefore:
			n, err := readNumber(data)
			if err != nil {
				return err
			}
			e.notBefore = time.UnixMicro(n).UTC()
		case extraAfter:
			p, err := readPrerequisite(data)
			if err != nil || len(e.after) >= job.MaxAfter {
				return errRecord
			}
			e.after = append(e.after, p)
		}
		return nil
	})
	if err != nil {
		return extra{}, err
	}
	return e, nil
}

// encode writes the record: nil if there is nothing to say.
func (e *extra) encode() []byte {
	if len(e.labels) == 0 && e.maxAttempts == 0 && e.notBefore.IsZero() && len(e.after) == 0 && len(e.operations) == 0 {
		return nil
	}
	size := 32
	for _, l := range e.labels {
		size += len(l.Key) + len(l.Value) + 8
	}
	b := make([]byte, 1, size)
	b[0] = recordVersion
	for _, l := range e.labels {
		var head [binary.MaxVarintLen64]byte
		n := binary.PutUvarint(head[:], uint64(len(l.Key)))
		b = binary.AppendUvarint(b, extraLabel)
		b = binary.AppendUvarint(b, uint64(n+len(l.Key)+len(l.Value)))
		b = append(b, head[:n]...)
		b = append(b, l.Key...)
		b = append(b, l.Value...)
	}
	b = appendNumber(b, extraMaxAttempts, int64(e.maxAttempts))
	b = appendTime(b, extraNotBefore, e.notBefore)
	for i := range e.after {
		b = appendField(b, extraAfter, appendPrerequisite(nil, &e.after[i]))
	}
	for i := range e.operations {
		b = appendOperation(b, &e.operations[i])
	}
	return b
}
