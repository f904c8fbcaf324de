package board

import (
	"encoding/binary"

	"github.com/boardd/boardd/sdk/job"
)

// read takes one field of a status record in, and reports whether it was one of
// the operations'.
func (o *operations) read(tag uint64, data []byte) (bool, error) {
	switch tag {
	case statusOperations:
		for _, s := range data {
			if s < byte(job.OpQueued) || s > byte(job.OpError) {
				return true, errRecord
			}
		}
		if len(data) == 0 || len(data) > job.MaxOperations || o.statuses != nil {
			return true, errRecord
		}
		o.statuses = data
	case statusOperationPriorities:
		for _, p := range data {
			if p := int8(p); p < job.MinOperationPriority || p > job.MaxOperationPriority { //nolint:gosec // it was one
				return true, errRecord
			}
		}
		if len(data) != len(o.statuses) || len(data) == 0 {
			return true, errRecord
		}
		o.priorities = data
	case statusOperationTimes:
		return true, o.readTimes(data)
	case statusOperationResults:
		return true, o.readResults(data)
	default:
		return false, nil
	}
	return true, nil
}

func (o *operations) readTimes(data []byte) error {
	i, n := binary.Uvarint(data)
	if n <= 0 || i >= uint64(len(o.statuses)) {
		return errRecord
	}
	var t [3]int64
	for k := range t {
		data = data[n:]
		if t[k], n = binary.Varint(data); n <= 0 {
			return errRecord
		}
	}
	if n != len(data) {
		return errRecord
	}
	*o.begin(int(i)) = opTimes{t[0], t[1], t[2]} //nolint:gosec // checked above
	return nil
}

func (o *operations) readResults(data []byte) error {
	for i := range o.statuses {
		at, n := binary.Uvarint(data)
		if n <= 0 || at > uint64(len(o.statuses)) && at != canceledResult {
			return errRecord
		}
		o.setResult(i, int(at)) //nolint:gosec // checked above
		data = data[n:]
	}
	if len(data) != 0 || len(o.statuses) == 0 {
		return errRecord
	}
	return nil
}

// append writes the fields of a status record.
func (o *operations) append(dst []byte) []byte {
	if len(o.statuses) == 0 {
		return dst
	}
	dst = appendField(dst, statusOperations, o.statuses)
	for _, p := range o.priorities {
		if p != 0 {
			dst = appendField(dst, statusOperationPriorities, o.priorities)
			break
		}
	}
	for i, t := range o.times {
		if t == (opTimes{}) {
			continue
		}
		var buf [4 * binary.MaxVarintLen64]byte
		b := binary.AppendUvarint(buf[:0], uint64(i)) //nolint:gosec // an index
		b = binary.AppendVarint(b, t.started)
		b = binary.AppendVarint(b, t.executed)
		dst = appendField(dst, statusOperationTimes, binary.AppendVarint(b, t.ended))
	}
	for _, r := range o.results {
		if r != noResult {
			return o.appendResults(dst)
		}
	}
	return dst
}

func (o *operations) appendResults(dst []byte) []byte {
	b := make([]byte, 0, len(o.results)+2)
	for _, r := range o.results {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return appendField(dst, statusOperationResults, b)
}

// appendOperation writes what a poster gave of an operation into an extra record.
func appendOperation(dst []byte, op *job.NewOperation) []byte {
	b := make([]byte, 0, len(op.Name)+len(op.Input)+8)
	b = binary.AppendUvarint(b, uint64(len(op.Name)))
	b = append(b, op.Name...)
	b = binary.AppendVarint(b, int64(op.Priority))
	return appendField(dst, extraOperation, append(b, op.Input...))
}

// postedOperation is what appendOperation wrote. It points into the record.
type postedOperation struct {
	name, input []byte
	priority    int32
}

func readOperation(data []byte) (op postedOperation, err error) {
	size, n := uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return op, errRecord
	}
	op.name, data = data[n:n+int(size)], data[n+int(size):] //nolint:gosec // not more than len(data)
	priority, n := binary.Varint(data)
	if n <= 0 || priority < job.MinOperationPriority || priority > job.MaxOperationPriority {
		return op, errRecord
	}
	op.priority = int32(priority)
	if len(data) > n {
		op.input = data[n:]
	}
	return op, nil
}
