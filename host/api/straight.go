package api

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// isBinary reports whether the answer to a request with this content type is written
// in the binary form.
func isBinary(contentType string) bool { return !strings.Contains(contentType, "json") }

// straight makes the answers to the calls that move the most jobs. In the binary form
// it writes what a job has many of, its labels and its operations, at once, into the
// bytes that a message carries along for fields that its program does not know: a map
// and a boarddv1.Operation of each would be most of what the answer costs. Whoever
// reads the answer sees no difference.
type straight struct {
	binary  bool
	written []byte // what answers carry along are parts of this
}

// The numbers of the fields of a job's labels.
const (
	jobLabels  = 8
	labelKey   = 1
	labelValue = 2
)

// jobs returns what makes the public form of up to n jobs.
func (s *straight) jobs(n int) func(*job.Job) *boarddv1.Job {
	made := make([]madeJob, n)
	return func(j *job.Job) *boarddv1.Job {
		m := &made[0]
		made = made[1:]
		return s.job(m, j, board.Steps{})
	}
}

func (s *straight) job(m *madeJob, j *job.Job, steps board.Steps) *boarddv1.Job {
	answer := m.of(j)
	if !s.binary {
		answer.Labels = toLabels(j.Labels)
		if steps.Len() > 0 {
			answer.Operations = toOperations(steps.List())
		}
		return answer
	}
	begin := len(s.written)
	for _, l := range j.Labels {
		s.label(l)
	}
	if steps.Len() > 0 {
		s.written = slices.Grow(s.written, steps.Size()+16*steps.Len())
		steps.Each(func(step *board.Step) { s.written = appendStepField(s.written, step) })
	}
	if end := len(s.written); end > begin {
		answer.ProtoReflect().SetUnknown(s.written[begin:end:end])
	}
	return answer
}

// label writes an entry of a job's labels.
func (s *straight) label(l job.Label) {
	key, value := clean(l.Key), clean(l.Value)
	size := protowire.SizeTag(labelKey) + protowire.SizeBytes(len(key)) + protowire.SizeTag(labelValue) + protowire.SizeBytes(len(value))
	s.written = protowire.AppendVarint(protowire.AppendTag(s.written, jobLabels, protowire.BytesType), uint64(size))
	s.written = protowire.AppendString(protowire.AppendTag(s.written, labelKey, protowire.BytesType), key)
	s.written = protowire.AppendString(protowire.AppendTag(s.written, labelValue, protowire.BytesType), value)
}

// madeClaim is a claim's public form with room for its parts, so that they cost no
// memory each.
type madeClaim struct {
	claim   boarddv1.Claim
	job     madeJob
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
			Generation: toInt64(c.Token.Generation), Epoch: toInt64(c.Token.Epoch), Attempt: c.Attempt,
		}
		if c.Lease != 0 {
			m.claim.Lease = &m.lease
			m.lease.Seconds, m.lease.Nanos = int64(c.Lease/1e9), int32(c.Lease%1e9)
		}
		if !c.LeaseExpiresAt.IsZero() {
			m.claim.LeaseExpiresAt = &m.expires
			fill(&m.expires, c.LeaseExpiresAt)
		}
		if c.Job != nil {
			var of board.Steps
			if i < len(steps) {
				of = steps[i]
			}
			m.claim.Job = s.job(&m.job, c.Job, of)
		}
	}
	return answers
}
