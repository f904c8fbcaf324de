package record

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits on what a status record keeps of the past.
const (
	MaxReasons    = 20
	MaxReasonKept = 512 // bytes of each
)

// Status is a job's mutable record, as the driver's opaque Status carries it.
// The zero value is that of a job that nobody ever claimed, and is written as
// no bytes at all.
type Status struct {
	Attempt   int32
	Reasons   []string  // of lost and abandoned claims, oldest first
	Attempts  []Attempt // those claims; not known of the last ones where there are fewer
	Present   Attempt   // the claim that stands, or by which the job ended; its owner is the store's to say
	Last      string
	StartedAt time.Time // of the first claim
	Exhausted bool      // it went to the trash because its attempts ran out
	Cancel    bool      // its worker is asked to stop

	HasPriority       bool
	Priority          job.Priority // instead of the posting's
	OperationPriority int32

	Operations  Operations
	ResultBytes int64 // of all attached results
	Log         Log
	Met         bool // everything that the job was to wait for has ended well
	Awaited     bool // another job waits for this one

	// Ahead is the attempt whose claim was given before its worker could begin, as long
	// as nobody said that it has begun; 0: none. Unbegun is how many such claims in a row
	// ended without that.
	Ahead, Unbegun int32

	RestoredAt time.Time // the last time that it was put back from the trash
	Ended      []Ended   // claims that were given up, oldest first

	unknown []byte // fields of a newer version, as they were read
}

// The fields of a status record. A number is never used for anything else: 25 was the epoch of
// the claim with which attempts ran out.
const (
	statusAttempt           = 1
	statusReason            = 2
	statusLast              = 3
	StatusStarted           = 4
	statusExhausted         = 5
	statusCancel            = 6
	statusPriority          = 7
	statusOperationPriority = 8

	statusOperations          = 9
	statusOperationPriorities = 10
	statusOperationTimes      = 11 // of one operation each
	statusOperationResults    = 12
	statusResultBytes         = 13
	statusLog                 = 14
	statusMet                 = 15
	statusAwaited             = 16
	statusAttemptOf           = 17 // of the reason before it
	statusPresent             = 18
	statusRestored            = 24
	statusAhead               = 26
	statusUnbegun             = 27
	statusEnded               = 28 // of one claim each
)

// ReadStatus decodes a status record. One that cannot be read gives the zero
// Status and the error: a job is never hidden by it.
func ReadStatus(record []byte) (Status, error) {
	var s Status
	err := EachField(record, func(tag uint64, data, whole []byte) error {
		switch tag {
		case statusReason:
			if len(s.Reasons) < MaxReasons {
				s.Reasons = append(s.Reasons, string(data))
			}
			return nil
		case statusLast:
			s.Last = string(data)
			return nil
		case statusLog:
			return s.Log.read(data)
		case statusEnded:
			e, err := readEnded(data)
			if len(s.Ended) < MaxEnded {
				s.Ended = append(s.Ended, e)
			}
			return err
		case statusAttemptOf, statusPresent:
			a, err := readAttempt(data)
			if tag == statusPresent {
				s.Present = a
			} else if len(s.Reasons) > 0 {
				s.keepAttempt(len(s.Reasons)-1, a)
			}
			return err
		case statusAttempt, StatusStarted, statusExhausted, statusCancel, statusPriority, statusOperationPriority,
			statusResultBytes, statusMet, statusAwaited, statusRestored, statusAhead, statusUnbegun:
			n, err := ReadNumber(data)
			if err != nil {
				return err
			}
			return s.setNumber(tag, n)
		}
		if mine, err := s.Operations.read(tag, data); mine {
			return err
		}
		s.unknown = append(s.unknown, whole...)
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

func (s *Status) setNumber(tag uint64, n int64) error {
	switch tag {
	case StatusStarted:
		s.StartedAt = time.UnixMicro(n).UTC()
		return nil
	case statusRestored:
		s.RestoredAt = time.UnixMicro(n).UTC()
		return nil
	case statusExhausted:
		s.Exhausted = n != 0
		return nil
	case statusCancel:
		s.Cancel = n != 0
		return nil
	case statusMet:
		s.Met = n != 0
		return nil
	case statusAwaited:
		s.Awaited = n != 0
		return nil
	case statusResultBytes:
		s.ResultBytes = n
		return nil
	}
	if n != int64(int32(n)) { //nolint:gosec // that is the question
		return ErrRecord
	}
	switch tag {
	case statusAttempt:
		if n < 0 {
			return ErrRecord
		}
		s.Attempt = int32(n)
	case statusAhead:
		s.Ahead = int32(n)
	case statusUnbegun:
		s.Unbegun = int32(n)
	case statusPriority:
		if n < int64(job.VeryHigh) || n > int64(job.VeryLow) {
			return ErrRecord
		}
		s.HasPriority, s.Priority = true, job.Priority(n)
	case statusOperationPriority:
		s.OperationPriority = int32(n)
	}
	return nil
}

// Encode writes the record.
func (s *Status) Encode() []byte {
	size := 64 + len(s.unknown) + len(s.Last) + 2*s.Operations.Len()
	for _, r := range s.Reasons {
		size += len(r) + 4
	}
	for i := range s.Attempts {
		size += len(s.Attempts[i].Owner) + 24
	}
	size += 28 * len(s.Ended)
	b := make([]byte, 1, size)
	b[0] = Version
	b = AppendNumber(b, statusAttempt, int64(s.Attempt))
	for i, r := range s.Reasons {
		b = AppendText(b, statusReason, r)
		if i < len(s.Attempts) {
			b = appendAttempt(b, statusAttemptOf, s.Attempts[i])
		}
	}
	b = appendAttempt(b, statusPresent, s.Present)
	if s.Last != "" {
		b = AppendText(b, statusLast, s.Last)
	}
	b = AppendTime(b, StatusStarted, s.StartedAt)
	b = AppendNumber(b, statusExhausted, flag(s.Exhausted))
	b = AppendNumber(b, statusCancel, flag(s.Cancel))
	if s.HasPriority {
		b = AppendField(b, statusPriority, []byte{byte(s.Priority<<1) ^ byte(s.Priority>>7)}) // a varint of one byte
	}
	b = AppendNumber(b, statusOperationPriority, int64(s.OperationPriority))
	b = s.Operations.append(b)
	b = AppendNumber(b, statusResultBytes, s.ResultBytes)
	b = s.Log.append(b)
	b = AppendNumber(b, statusMet, flag(s.Met))
	b = AppendNumber(b, statusAwaited, flag(s.Awaited))
	b = AppendNumber(b, statusAhead, int64(s.Ahead))
	b = AppendNumber(b, statusUnbegun, int64(s.Unbegun))
	b = AppendTime(b, statusRestored, s.RestoredAt)
	for i := range s.Ended {
		b = appendEnded(b, &s.Ended[i])
	}
	b = append(b, s.unknown...)
	if len(b) == 1 {
		return nil
	}
	return b
}

// SetOperations sets the operations, and the operation priority that follows from them.
func (s *Status) SetOperations(o Operations) {
	s.Operations, s.OperationPriority = o, o.Priority()
}

// Requeue puts operations back that a claim left behind.
func (s *Status) Requeue() {
	if s.Operations.under() {
		o := s.Operations.Own()
		o.Requeue()
		s.SetOperations(o)
	}
}

// Canceling reports whether the worker is asked to stop.
func (s *Status) Canceling() bool { return s.Cancel || s.Operations.Status() == job.OpCanceling }

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// Lose notes why a claim ended without the job being done.
func (s *Status) Lose(reason string, a Attempt) {
	reason = shorten.To(reason, MaxReasonKept)
	s.Last = reason
	// New slices: the old ones may be shared.
	over := max(0, len(s.Reasons)-MaxReasons+1)
	s.Reasons = slices.Concat(s.Reasons[over:], []string{reason})
	s.Attempts = slices.Clone(s.Attempts[min(over, len(s.Attempts)):])
	s.keepAttempt(len(s.Reasons)-1, a)
	s.Present = Attempt{}
}

// MaxUnbegun is how many claims in a row may end before they began without using up an
// attempt.
const MaxUnbegun = 2

// IsAhead reports whether the job is held by a claim that was given ahead and has not
// begun.
func (s *Status) IsAhead() bool { return s.Ahead != 0 && s.Ahead == s.Attempt }

// Begin notes that the claim has begun.
func (s *Status) Begin() { s.Ahead, s.Unbegun = 0, 0 }

// LoseUnbegun refunds the attempt of a claim that ends before it has begun, and reports
// whether it did.
func (s *Status) LoseUnbegun() bool {
	ahead := s.IsAhead()
	s.Ahead = 0
	if !ahead || s.Unbegun >= MaxUnbegun {
		return false
	}
	s.Attempt--
	s.Unbegun++
	return true
}

// keepAttempt keeps the attempt that belongs to a reason.
func (s *Status) keepAttempt(at int, a Attempt) {
	if a == (Attempt{}) {
		return
	}
	s.Attempts = append(s.Attempts, make([]Attempt, at+1-len(s.Attempts))...)
	s.Attempts[at] = a
}
