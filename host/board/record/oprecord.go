package record

import (
	"encoding/binary"

	"github.com/boardd/boardd/sdk/job"
)

// read takes one field of a status record in, and reports whether it was one of
// the operations'.
func (o *Operations) read(tag uint64, data []byte) (bool, error) {
	switch tag {
	case statusOperations:
		for _, s := range data {
			if s < byte(job.OpQueued) || s > byte(job.OpError) {
				return true, ErrRecord
			}
		}
		if len(data) == 0 || len(data) > job.MaxOperations || o.Statuses != nil {
			return true, ErrRecord
		}
		o.Statuses = data
	case statusOperationPriorities:
		for _, p := range data {
			if p := int8(p); p < job.MinOperationPriority || p > job.MaxOperationPriority { //nolint:gosec // it was one
				return true, ErrRecord
			}
		}
		if len(data) != len(o.Statuses) || len(data) == 0 {
			return true, ErrRecord
		}
		o.Priorities = data
	case statusOperationTimes:
		return true, o.readTimes(data)
	case statusOperationResults:
		return true, o.readResults(data)
	default:
		return false, nil
	}
	return true, nil
}

func (o *Operations) readTimes(data []byte) error {
	i, n := binary.Uvarint(data)
	if n <= 0 || i >= uint64(len(o.Statuses)) {
		return ErrRecord
	}
	var t [3]int64
	for k := range t {
		data = data[n:]
		if t[k], n = binary.Varint(data); n <= 0 {
			return ErrRecord
		}
	}
	if n != len(data) {
		return ErrRecord
	}
	*o.Begin(int(i)) = OpTimes{t[0], t[1], t[2]} //nolint:gosec // checked above
	return nil
}

func (o *Operations) readResults(data []byte) error {
	for i := range o.Statuses {
		at, n := binary.Uvarint(data)
		if n <= 0 || at > uint64(len(o.Statuses)) && at != CanceledResult {
			return ErrRecord
		}
		o.SetResult(i, int(at)) //nolint:gosec // checked above
		data = data[n:]
	}
	if len(data) != 0 || len(o.Statuses) == 0 {
		return ErrRecord
	}
	return nil
}

// append writes the fields of a status record.
func (o *Operations) append(dst []byte) []byte {
	if len(o.Statuses) == 0 {
		return dst
	}
	dst = AppendField(dst, statusOperations, o.Statuses)
	for _, p := range o.Priorities {
		if p != 0 {
			dst = AppendField(dst, statusOperationPriorities, o.Priorities)
			break
		}
	}
	for i, t := range o.Times {
		if t == (OpTimes{}) {
			continue
		}
		var buf [4 * binary.MaxVarintLen64]byte
		b := binary.AppendUvarint(buf[:0], uint64(i)) //nolint:gosec // an index
		b = binary.AppendVarint(b, t.Started)
		b = binary.AppendVarint(b, t.Executed)
		dst = AppendField(dst, statusOperationTimes, binary.AppendVarint(b, t.Ended))
	}
	for _, r := range o.Results {
		if r != NoResult {
			return o.appendResults(dst)
		}
	}
	return dst
}

func (o *Operations) appendResults(dst []byte) []byte {
	b := make([]byte, 0, len(o.Results)+2)
	for _, r := range o.Results {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return AppendField(dst, statusOperationResults, b)
}

// AppendOperation writes what a poster gave of an operation into an extra record.
func AppendOperation(dst []byte, op *job.NewOperation) []byte {
	b := make([]byte, 0, len(op.Name)+len(op.Input)+8)
	b = binary.AppendUvarint(b, uint64(len(op.Name)))
	b = append(b, op.Name...)
	b = binary.AppendVarint(b, int64(op.Priority))
	return AppendField(dst, ExtraOperation, append(b, op.Input...))
}

// PostedOperation is what AppendOperation wrote. It points into the record.
type PostedOperation struct {
	Name, Input []byte
	Priority    int32
}

// ReadOperation decodes what AppendOperation wrote.
func ReadOperation(data []byte) (op PostedOperation, err error) {
	size, n := uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return op, ErrRecord
	}
	op.Name, data = data[n:n+int(size)], data[n+int(size):] //nolint:gosec // not more than len(data)
	priority, n := binary.Varint(data)
	if n <= 0 || priority < job.MinOperationPriority || priority > job.MaxOperationPriority {
		return op, ErrRecord
	}
	op.Priority = int32(priority)
	if len(data) > n {
		op.Input = data[n:]
	}
	return op, nil
}
