package api

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// straight makes the answers to the calls that move the most jobs. In the binary form
// it writes each job at once, into the bytes that a message carries along for fields
// that its program does not know: a boarddv1.Job of each, with a map of its labels and
// its operations, would be most of what the answer costs. Whoever reads the answer sees
// no difference.
type straight struct {
	binary  bool
	written []byte // what answers carry along are parts of this
}

// jobRoom is what most jobs fit into, in bytes.
const jobRoom = 512

// newStraight returns what makes the answer to a request with this content type, of so
// many jobs.
func newStraight(contentType string, jobs int) *straight {
	if strings.Contains(contentType, "json") {
		return &straight{}
	}
	return &straight{binary: true, written: make([]byte, 0, jobs*jobRoom)}
}

// The numbers of the fields that have a job.
const (
	jobResultJob = 1
	claimJob     = 9
)

// jobResult puts a job into an answer.
func (s *straight) jobResult(answer *boarddv1.JobResult, j *job.Job) {
	if !s.binary {
		answer.Job = toJob(j)
		return
	}
	answer.ProtoReflect().SetUnknown(s.job(jobResultJob, j, board.Steps{}))
}

// madeClaim is a claim's public form with room for its parts, so that they cost no
// memory each.
type madeClaim struct {
	claim   boarddv1.Claim
	lease   durationpb.Duration
	expires timestamppb.Timestamp
}

// claims returns the public form of claims, whose jobs have these operations.
func (s *straight) claims(b *board.Board, claims []job.Claim, steps []board.Steps) []*boarddv1.Claim {
	answers, made := make([]*boarddv1.Claim, len(claims)), make([]madeClaim, len(claims))
	for i := range claims {
		c, m := &claims[i], &made[i]
		answers[i] = &m.claim
		m.claim = boarddv1.Claim{
			Uuid: c.ID.String(), Owner: clean(c.Owner), Token: b.FormatToken(c.ID, c.Token),
			Generation: toInt64(c.Token.Generation), Epoch: toInt64(c.Token.Epoch), Attempt: c.Attempt, Ahead: c.Ahead,
		}
		if c.Lease != 0 {
			m.claim.Lease = &m.lease
			fillDuration(&m.lease, c.Lease)
		}
		if !c.LeaseExpiresAt.IsZero() {
			m.claim.LeaseExpiresAt = &m.expires
			fill(&m.expires, c.LeaseExpiresAt)
		}
		var of board.Steps
		if i < len(steps) {
			of = steps[i]
		}
		if s.binary && c.Job != nil {
			m.claim.ProtoReflect().SetUnknown(s.job(claimJob, c.Job, of))
			continue
		}
		if m.claim.Job = toJob(c.Job); of.Len() > 0 {
			m.claim.Job.Operations = toOperations(of.List())
		}
	}
	return answers
}

// job writes a job as a field of a message, and returns what was written.
func (s *straight) job(field protowire.Number, j *job.Job, steps board.Steps) []byte {
	if cap(s.written)-len(s.written) < jobRoom {
		s.written = make([]byte, 0, 8*jobRoom) // what stands in the old memory stays there
	}
	before := len(s.written)
	w := protowriter{s.written}
	end := w.open(field)
	w.job(j)
	if steps.Len() > 0 {
		w.b = slices.Grow(w.b, steps.Size()+16*steps.Len())
		steps.Each(w.step)
	}
	w.close(end)
	s.written = w.b
	return w.b[before:len(w.b):len(w.b)]
}

func fillDuration(answer *durationpb.Duration, d time.Duration) {
	answer.Seconds, answer.Nanos = int64(d/time.Second), int32(d%time.Second)
}
