package record

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Attempt is what a status record knows of one claim of boardd's: by the host's
// clock, for people to look at. Nothing is decided by it.
type Attempt struct {
	Owner        string // only of one that has ended: the store knows who holds a job
	Begun, Ended time.Time
	Lease        time.Duration // that was asked for at first; 0: none
}

// appendAttempt writes an attempt, if anything is known of it.
func appendAttempt(dst []byte, tag uint64, a Attempt) []byte {
	if a == (Attempt{}) {
		return dst
	}
	var buf [3 * binary.MaxVarintLen64]byte
	data := buf[:0]
	for _, n := range []int64{micros(a.Begun), micros(a.Ended), a.Lease.Milliseconds()} {
		data = binary.AppendVarint(data, n)
	}
	return AppendField(dst, tag, append(data, a.Owner...))
}

func readAttempt(data []byte) (Attempt, error) {
	var numbers [3]int64
	for i := range numbers {
		v, n := binary.Varint(data)
		if n <= 0 {
			return Attempt{}, ErrRecord
		}
		numbers[i], data = v, data[n:]
	}
	const longest = int64(job.MaxLease / time.Millisecond)
	if numbers[2] < 0 || numbers[2] > longest {
		return Attempt{}, ErrRecord
	}
	return Attempt{
		Begun: fromMicros(numbers[0]), Ended: fromMicros(numbers[1]), Lease: time.Duration(numbers[2]) * time.Millisecond, Owner: string(data),
	}, nil
}

// micros is 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Shown is a time as people see it: in microseconds, which is as exact as the
// index knows it, so that one job has one time in every answer.
func Shown(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Microsecond) }

// ShowAttempts shows the claims that ended without the job being done, and since
// when the present one stands, and with which lease.
func ShowAttempts(j *job.Job, s *Status) {
	j.ClaimedAt, j.ClaimLease = Shown(s.Present.Begun), s.Present.Lease
	j.RestoredAt = Shown(s.RestoredAt)
	if len(s.Reasons) == 0 {
		return
	}
	j.Attempts = make([]job.Attempt, len(s.Reasons))
	for i, reason := range s.Reasons {
		j.Attempts[i].Reason = reason
		if i < len(s.Attempts) {
			a := &s.Attempts[i]
			j.Attempts[i].Owner, j.Attempts[i].Lease = a.Owner, a.Lease
			j.Attempts[i].Begun, j.Attempts[i].Ended = Shown(a.Begun), Shown(a.Ended)
		}
	}
}
