package record

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Extra is what the board keeps of a posting besides what a driver knows of it,
// as Posting.Extra carries it. It never changes.
type Extra struct {
	Labels      []job.Label // sorted by key
	MaxAttempts int32
	NotBefore   time.Time // as the poster gave it
	After       []job.Prerequisite
	Timeout     time.Duration // of one claim; in microseconds
	Unique      job.Unique    // of which OnConflict is not kept
	Batch       string
	Operations  []job.NewOperation // only to be written: ReadOperation reads them one by one
}

// The fields of an extra record. A number is never used for anything else.
const (
	extraLabel       = 1
	extraMaxAttempts = 2
	ExtraNotBefore   = 3
	extraAfter       = 4 // one of the jobs that it waits for
	ExtraOperation   = 5
	extraTimeout     = 6
	extraUnique      = 7
	extraWindow      = 8 // of the key; in microseconds
	extraBatch       = 9
)

// ReadExtra decodes an extra record.
func ReadExtra(record []byte) (Extra, error) {
	var e Extra
	err := EachField(record, func(tag uint64, data, _ []byte) error {
		switch tag {
		case extraLabel:
			size, n := binary.Uvarint(data)
			if n <= 0 || size > uint64(len(data)-n) || len(e.Labels) >= job.MaxLabels {
				return ErrRecord
			}
			key, value := data[n:n+int(size)], data[n+int(size):] //nolint:gosec // not more than len(data)
			e.Labels = append(e.Labels, job.Label{Key: string(key), Value: string(value)})
		case extraMaxAttempts:
			n, err := ReadNumber(data)
			if err != nil || n < 0 || n != int64(int32(n)) { //nolint:gosec // that is the question
				return ErrRecord
			}
			e.MaxAttempts = int32(n)
		case ExtraNotBefore:
			n, err := ReadNumber(data)
			if err != nil {
				return err
			}
			e.NotBefore = time.UnixMicro(n).UTC()
		case extraAfter:
			p, err := ReadPrerequisite(data)
			if err != nil || len(e.After) >= job.MaxAfter {
				return ErrRecord
			}
			e.After = append(e.After, p)
		case extraTimeout:
			n, err := ReadNumber(data)
			if err != nil || n < 0 || n > int64(job.MaxTimeout/time.Microsecond) {
				return ErrRecord
			}
			e.Timeout = time.Duration(n) * time.Microsecond
		case extraUnique:
			e.Unique.Key = string(data)
		case extraBatch:
			e.Batch = string(data)
		case extraWindow:
			n, err := ReadNumber(data)
			if err != nil || n < 0 || n > int64(job.MaxUniqueWindow/time.Microsecond) {
				return ErrRecord
			}
			e.Unique.Window = time.Duration(n) * time.Microsecond
		}
		return nil
	})
	if err != nil {
		return Extra{}, err
	}
	return e, nil
}

// Encode writes the record: nil if there is nothing to say.
func (e *Extra) Encode() []byte {
	if e.empty() {
		return nil
	}
	size := 32
	for _, l := range e.Labels {
		size += len(l.Key) + len(l.Value) + 8
	}
	b := make([]byte, 1, size)
	b[0] = Version
	for _, l := range e.Labels {
		var head [binary.MaxVarintLen64]byte
		n := binary.PutUvarint(head[:], uint64(len(l.Key)))
		b = binary.AppendUvarint(b, extraLabel)
		b = binary.AppendUvarint(b, uint64(n+len(l.Key)+len(l.Value)))
		b = append(b, head[:n]...)
		b = append(b, l.Key...)
		b = append(b, l.Value...)
	}
	b = AppendNumber(b, extraMaxAttempts, int64(e.MaxAttempts))
	b = AppendTime(b, ExtraNotBefore, e.NotBefore)
	b = AppendNumber(b, extraTimeout, e.Timeout.Microseconds())
	if e.Unique.Key != "" {
		b = AppendNumber(AppendText(b, extraUnique, e.Unique.Key), extraWindow, e.Unique.Window.Microseconds())
	}
	if e.Batch != "" {
		b = AppendText(b, extraBatch, e.Batch)
	}
	for i := range e.After {
		b = AppendField(b, extraAfter, AppendPrerequisite(nil, &e.After[i]))
	}
	for i := range e.Operations {
		b = AppendOperation(b, &e.Operations[i])
	}
	return b
}

func (e *Extra) empty() bool {
	return len(e.Labels) == 0 && e.MaxAttempts == 0 && e.NotBefore.IsZero() && len(e.After) == 0 && e.Timeout == 0 &&
		e.Unique.Key == "" && e.Batch == "" && len(e.Operations) == 0
}

// AppendPrerequisite writes a prerequisite: the job's id and a byte for each status.
func AppendPrerequisite(dst []byte, p *job.Prerequisite) []byte {
	dst = append(dst, p.ID[:]...)
	for _, s := range p.Statuses {
		dst = append(dst, byte(s))
	}
	return dst
}

// ReadPrerequisite decodes what AppendPrerequisite wrote.
func ReadPrerequisite(data []byte) (job.Prerequisite, error) {
	if len(data) < 16 || len(data) > 16+3 {
		return job.Prerequisite{}, ErrRecord
	}
	p := job.Prerequisite{ID: job.ID(data[:16])}
	for _, s := range data[16:] {
		if !job.OperationStatus(s).Finished() {
			return job.Prerequisite{}, ErrRecord
		}
		p.Statuses = append(p.Statuses, job.OperationStatus(s))
	}
	return p, nil
}
