package api

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// The numbers of the fields of boarddv1.Job, of its labels and of boarddv1.Raw; a test
// compares what is written by them with what boarddv1 writes.
const (
	jobUUID              = 1
	jobName              = 2
	jobState             = 3
	jobOutcome           = 4
	jobPriority          = 5
	jobDetails           = 6
	jobDetailsRaw        = 7
	jobLabels            = 8
	jobSequence          = 10
	jobCreatedAt         = 11
	jobModifiedAt        = 12
	jobOwner             = 13
	jobLeaseExpiresAt    = 14
	jobAttempt           = 15
	jobMaxAttempts       = 16
	jobNotBefore         = 17
	jobLastReason        = 19
	jobOperationStatus   = 21
	jobOperationPriority = 22
	jobReceivedAt        = 23
	jobStartedAt         = 24
	jobEndedAt           = 25
	jobClaimedAt         = 28
	jobClaimLease        = 30
	jobLogSerial         = 31

	labelKey   = 1
	labelValue = 2

	rawEncoding = 1
	rawData     = 2
)

// A protowriter appends fields of messages in the binary form; what is zero or empty
// is left out.
type protowriter struct{ b []byte }

// job writes the fields of a boarddv1.Job, as toJob fills them.
func (w *protowriter) job(j *job.Job) {
	w.text(jobUUID, j.ID.String())
	w.text(jobName, clean(j.Name))
	w.number(jobState, int64(j.State))
	w.number(jobOutcome, int64(j.Outcome))
	w.number(jobPriority, int64(int(j.Priority)+priorityShift))
	if details, raw := detailsOf(j); raw != nil {
		end := w.open(jobDetailsRaw)
		w.text(rawEncoding, raw.Encoding.String())
		w.bytes(rawData, raw.Data)
		w.close(end)
	} else if details != nil {
		w.b = protowire.AppendBytes(protowire.AppendTag(w.b, jobDetails, protowire.BytesType), details)
	}
	for _, l := range j.Labels {
		end := w.open(jobLabels)
		w.text(labelKey, clean(l.Key))
		w.text(labelValue, clean(l.Value))
		w.close(end)
	}
	w.number(jobSequence, toInt64(j.Sequence))
	w.times(j)
	w.text(jobOwner, clean(j.Owner))
	w.number(jobAttempt, int64(j.Attempt))
	w.number(jobMaxAttempts, int64(j.MaxAttempts))
	w.text(jobLastReason, clean(j.LastReason))
	w.number(jobOperationStatus, int64(toOperationStatus(j.OperationStatus)))
	w.number(jobOperationPriority, int64(j.OperationPriority))
	w.number(jobLogSerial, j.LogSerial)
	if hasRare(j) {
		var rare boarddv1.Job
		addRare(&rare, j)
		w.b, _ = boarddv1.Binary{}.MarshalAppend(w.b, &rare) // it is a message
	}
}

func (w *protowriter) times(j *job.Job) {
	w.time(jobCreatedAt, j.CreatedAt)
	w.time(jobReceivedAt, j.CreatedAt)
	w.time(jobModifiedAt, j.ModifiedAt)
	w.time(jobStartedAt, j.StartedAt)
	w.time(jobEndedAt, j.EndedAt)
	w.time(jobLeaseExpiresAt, j.LeaseExpiresAt)
	w.time(jobNotBefore, j.NotBefore)
	w.time(jobClaimedAt, j.ClaimedAt)
	if j.ClaimLease != 0 {
		var lease durationpb.Duration
		fillDuration(&lease, j.ClaimLease)
		w.pair(jobClaimLease, lease.GetSeconds(), lease.GetNanos())
	}
}

func (w *protowriter) number(field protowire.Number, n int64) {
	if n != 0 {
		w.b = protowire.AppendVarint(protowire.AppendTag(w.b, field, protowire.VarintType), uint64(n)) //nolint:gosec // a negative one is written so
	}
}

func (w *protowriter) text(field protowire.Number, s string) {
	if s != "" {
		w.b = protowire.AppendString(protowire.AppendTag(w.b, field, protowire.BytesType), s)
	}
}

func (w *protowriter) bytes(field protowire.Number, data []byte) {
	if len(data) > 0 {
		w.b = protowire.AppendBytes(protowire.AppendTag(w.b, field, protowire.BytesType), data)
	}
}

func (w *protowriter) time(field protowire.Number, t time.Time) {
	if !t.IsZero() {
		var at timestamppb.Timestamp
		fill(&at, t)
		w.pair(field, at.GetSeconds(), at.GetNanos())
	}
}

// pair writes a google.protobuf.Timestamp or Duration, whose fields are the seconds
// and the nanoseconds.
func (w *protowriter) pair(field protowire.Number, seconds int64, nanos int32) {
	end := w.open(field)
	w.number(1, seconds)
	w.number(2, int64(nanos))
	w.close(end)
}

// open begins a message within the message, with room for a length of one byte, which
// is enough for most. close ends it.
func (w *protowriter) open(field protowire.Number) (begin int) {
	w.b = append(protowire.AppendTag(w.b, field, protowire.BytesType), 0)
	return len(w.b)
}

func (w *protowriter) close(begin int) {
	n := uint64(len(w.b) - begin) //nolint:gosec // not negative
	if more := protowire.SizeVarint(n) - 1; more > 0 {
		w.b = slices.Insert(w.b, begin, make([]byte, more)...)
	}
	protowire.AppendVarint(w.b[:begin-1], n)
}
