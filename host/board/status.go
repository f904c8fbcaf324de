package board

import (
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Limits on what a status record keeps of the past.
const (
	maxReasons    = 20
	maxReasonKept = 512 // bytes of each
)

// status is a job's mutable record, as the driver's opaque Status carries it.
// The zero value is that of a job that nobody ever claimed, and is written as
// no bytes at all.
type status struct {
	attempt   int32
	reasons   []string  // of lost and abandoned claims, oldest first
	attempts  []attempt // those claims; not known of the last ones where there are fewer
	present   attempt   // the claim that stands, or by which the job ended; its owner is the store's to say
	last      string
	startedAt time.Time // of the first claim
	exhausted bool      // it went to the trash because its attempts ran out
	ranOutBy  uint64    // the epoch of the claim with which they ran out the last time; 0: never, or not known
	cancel    bool      // its worker is asked to stop

	hasPriority       bool
	priority          job.Priority // instead of the posting's
	operationPriority int32

	operations  operations
	resultBytes int64 // of all attached results
	log         logState
	met         bool // everything that the job was to wait for has ended well
	awaited     bool // another job waits for this one

	restoredAt time.Time // the last time that it was put back from the trash

	unknown []byte // fields of a newer version, as they were read
}

// The fields of a status record. A number is never used for anything else.
const (
	statusAttempt           = 1
	statusReason            = 2
	statusLast              = 3
	statusStarted           = 4
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
	statusRanOutBy            = 25
)

// readStatus decodes a status record. One that cannot be read gives the zero
// status and the error: a job is never hidden by it.
func readStatus(record []byte) (status, error) {
	var s status
	err := eachField(record, func(tag uint64, data, whole []byte) error {
		switch tag {
		case statusReason:
			if len(s.reasons) < maxReasons {
				s.reasons = append(s.reasons, string(data))
			}
			return nil
		case statusLast:
			s.last = string(data)
			return nil
		case statusLog:
			return s.log.read(data)
		case statusAttemptOf, statusPresent:
			a, err := readAttempt(data)
			if tag == statusPresent {
				s.present = a
			} else if len(s.reasons) > 0 {
				s.keepAttempt(len(s.reasons)-1, a)
			}
			return err
		case statusAttempt, statusStarted, statusExhausted, statusCancel, statusPriority, statusOperationPriority,
			statusResultBytes, statusMet, statusAwaited, statusRestored, statusRanOutBy:
			n, err := readNumber(data)
			if err != nil {
				return err
			}
			return s.setNumber(tag, n)
		}
		if mine, err := s.operations.read(tag, data); mine {
			return err
		}
		s.unknown = append(s.unknown, whole...)
		return nil
	})
	if err != nil {
		return status{}, err
	}
	return s, nil
}

func (s *status) setNumber(tag uint64, n int64) error {
	switch tag {
	case statusStarted:
		s.startedAt = time.UnixMicro(n).UTC()
		return nil
	case statusRestored:
		s.restoredAt = time.UnixMicro(n).UTC()
		return nil
	case statusExhausted:
		s.exhausted = n != 0
		return nil
	case statusRanOutBy:
		s.ranOutBy = uint64(n)
		return nil
	case statusCancel:
		s.cancel = n != 0
		return nil
	case statusMet:
		s.met = n != 0
		return nil
	case statusAwaited:
		s.awaited = n != 0
		return nil
	case statusResultBytes:
		s.resultBytes = n
		return nil
	}
	if n != int64(int32(n)) { //nolint:gosec // that is the question
		return errRecord
	}
	switch tag {
	case statusAttempt:
		if n < 0 {
			return errRecord
		}
		s.attempt = int32(n)
	case statusPriority:
		if n < int64(job.VeryHigh) || n > int64(job.VeryLow) {
			return errRecord
		}
		s.hasPriority, s.priority = true, job.Priority(n)
	case statusOperationPriority:
		s.operationPriority = int32(n)
	}
	return nil
}

// encode writes the record.
func (s *status) encode() []byte {
	size := 64 + len(s.unknown) + len(s.last) + 2*s.operations.len()
	for _, r := range s.reasons {
		size += len(r) + 4
	}
	for i := range s.attempts {
		size += len(s.attempts[i].owner) + 24
	}
	b := make([]byte, 1, size)
	b[0] = recordVersion
	b = appendNumber(b, statusAttempt, int64(s.attempt))
	for i, r := range s.reasons {
		b = appendText(b, statusReason, r)
		if i < len(s.attempts) {
			b = appendAttempt(b, statusAttemptOf, s.attempts[i])
		}
	}
	b = appendAttempt(b, statusPresent, s.present)
	if s.last != "" {
		b = appendText(b, statusLast, s.last)
	}
	b = appendTime(b, statusStarted, s.startedAt)
	b = appendNumber(b, statusExhausted, flag(s.exhausted))
	b = appendNumber(b, statusRanOutBy, int64(s.ranOutBy))
	b = appendNumber(b, statusCancel, flag(s.cancel))
	if s.hasPriority {
		b = appendField(b, statusPriority, []byte{byte(s.priority<<1) ^ byte(s.priority>>7)}) // a varint of one byte
	}
	b = appendNumber(b, statusOperationPriority, int64(s.operationPriority))
	b = s.operations.append(b)
	b = appendNumber(b, statusResultBytes, s.resultBytes)
	b = s.log.append(b)
	b = appendNumber(b, statusMet, flag(s.met))
	b = appendNumber(b, statusAwaited, flag(s.awaited))
	b = appendTime(b, statusRestored, s.restoredAt)
	b = append(b, s.unknown...)
	if len(b) == 1 {
		return nil
	}
	return b
}

// setOperations takes operations that were changed in.
func (s *status) setOperations(o operations) {
	s.operations, s.operationPriority = o, o.priority()
}

// requeue puts operations back that a claim left behind.
func (s *status) requeue() {
	if s.operations.under() {
		o := s.operations.own()
		o.requeue()
		s.setOperations(o)
	}
}

// canceling reports whether the worker is asked to stop.
func (s *status) canceling() bool { return s.cancel || s.operations.status() == job.OpCanceling }

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// lost notes why the claim of an entry ended without the job being done.
func (s *status) lost(reason string, e *index.Entry) {
	reason = cut(reason, maxReasonKept)
	s.last = reason
	// New slices: the old ones may be shared.
	over := max(0, len(s.reasons)-maxReasons+1)
	s.reasons = slices.Concat(s.reasons[over:], []string{reason})
	s.attempts = slices.Clone(s.attempts[min(over, len(s.attempts)):])
	s.keepAttempt(len(s.reasons)-1, s.attemptOf(e))
	s.present = attempt{}
}

// keepAttempt keeps the attempt that belongs to a reason.
func (s *status) keepAttempt(at int, a attempt) {
	if a == (attempt{}) {
		return
	}
	s.attempts = append(s.attempts, make([]attempt, at+1-len(s.attempts))...)
	s.attempts[at] = a
}

// cut shortens text to at most n bytes without breaking a character.
func cut(text string, n int) string { return shorten.To(text, n) }
