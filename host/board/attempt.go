package board

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
)

// attempt is what a status record knows of one claim of boardd's: by the host's
// clock, for people to look at. Nothing is decided by it.
type attempt struct {
	owner        string // only of one that has ended: the store knows who holds a job
	begun, ended time.Time
	lease        time.Duration // that was asked for at first; 0: none
}

// appendAttempt writes an attempt, if anything is known of it.
func appendAttempt(dst []byte, tag uint64, a attempt) []byte {
	if a == (attempt{}) {
		return dst
	}
	var buf [3 * binary.MaxVarintLen64]byte
	data := buf[:0]
	for _, n := range []int64{micros(a.begun), micros(a.ended), a.lease.Milliseconds()} {
		data = binary.AppendVarint(data, n)
	}
	return appendField(dst, tag, append(data, a.owner...))
}

func readAttempt(data []byte) (attempt, error) {
	var numbers [3]int64
	for i := range numbers {
		v, n := binary.Varint(data)
		if n <= 0 {
			return attempt{}, errRecord
		}
		numbers[i], data = v, data[n:]
	}
	const longest = int64(job.MaxLease / time.Millisecond)
	if numbers[2] < 0 || numbers[2] > longest {
		return attempt{}, errRecord
	}
	return attempt{
		begun: fromMicros(numbers[0]), ended: fromMicros(numbers[1]), lease: time.Duration(numbers[2]) * time.Millisecond, owner: string(data),
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

// attemptOf is the claim that an entry has now, as one that ends now.
func (s *status) attemptOf(e *index.Entry) attempt {
	if e == nil || e.Claim == nil {
		return attempt{}
	}
	a := attempt{owner: cut(e.Claim.Owner, job.MaxOwner), ended: time.Now().UTC()}
	if !e.Claim.Foreign { // what is known otherwise is of an earlier claim
		a.begun, a.lease = s.present.begun, s.present.lease
	}
	return a
}

// showAttempts shows the claims that ended without the job being done, and since
// when the present one stands, and with which lease.
func showAttempts(j *job.Job, s *status) {
	j.ClaimedAt, j.ClaimLease = shown(s.present.begun), s.present.lease
	j.RestoredAt = shown(s.restoredAt)
	if len(s.reasons) == 0 {
		return
	}
	j.Attempts = make([]job.Attempt, len(s.reasons))
	for i, reason := range s.reasons {
		j.Attempts[i].Reason = reason
		if i < len(s.attempts) {
			a := &s.attempts[i]
			j.Attempts[i].Owner, j.Attempts[i].Lease = a.owner, a.lease
			j.Attempts[i].Begun, j.Attempts[i].Ended = shown(a.begun), shown(a.ended)
		}
	}
}
