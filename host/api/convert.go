package api

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/shorten"
	"github.com/boardd/boardd/sdk/wirejson"
)

// priorityShift is how far the API's priorities, which begin at 1, are from the
// job package's, which begin at VeryHigh.
const priorityShift = int(boarddv1.Priority_NORMAL) - int(job.Normal)

// toJob is the public form of a job, nil for nil.
func toJob(j *job.Job) *boarddv1.Job {
	if j == nil {
		return nil
	}
	made := new(madeJob)
	answer, at := &made.job, made.times.at
	*answer = boarddv1.Job{
		Uuid:           j.ID.String(),
		Name:           clean(j.Name),
		State:          boarddv1.State_Enum(j.State),
		Outcome:        boarddv1.Outcome_Enum(j.Outcome),
		Priority:       boarddv1.Priority_Enum(int(j.Priority) + priorityShift),
		Sequence:       toInt64(j.Sequence),
		CreatedAt:      at(j.CreatedAt),
		ReceivedAt:     at(j.CreatedAt),
		ModifiedAt:     at(j.ModifiedAt),
		StartedAt:      at(j.StartedAt),
		EndedAt:        at(j.EndedAt),
		Owner:          clean(j.Owner),
		LeaseExpiresAt: at(j.LeaseExpiresAt),
		Attempt:        j.Attempt,
		MaxAttempts:    j.MaxAttempts,
		NotBefore:      at(j.NotBefore),
		LastReason:     clean(j.LastReason),

		OperationStatus:   toOperationStatus(j.OperationStatus),
		OperationPriority: j.OperationPriority,
		LogSerial:         j.LogSerial,
	}
	answer.ClaimedAt, answer.ClaimLease = at(j.ClaimedAt), toDuration(j.ClaimLease)
	answer.Labels = toLabels(j.Labels)
	addRare(answer, j)
	var raw *job.Raw
	if answer.Details, raw = detailsOf(j); raw != nil {
		answer.DetailsRaw = &boarddv1.Raw{Encoding: raw.Encoding.String(), Data: raw.Data}
	}
	return answer
}

// detailsOf returns a job's details as JSON or as they are kept.
func detailsOf(j *job.Job) ([]byte, *job.Raw) {
	switch {
	case j.RawDetails != nil:
		return nil, j.RawDetails
	case j.Details != nil && !wirejson.Valid(j.Details):
		// Another program's posting: it must not make the whole answer unreadable.
		return nil, &job.Raw{Encoding: job.JSON, Data: j.Details}
	}
	return j.Details, nil
}

// addRare adds what most jobs that are posted and claimed have nothing of.
func addRare(answer *boarddv1.Job, j *job.Job) {
	answer.Operations, answer.After, answer.Attempts = toOperations(j.Operations), toAfter(j.After), toAttempts(j.Attempts)
	for i := range j.Log {
		answer.Log = append(answer.Log, toLogEntry(&j.Log[i]))
	}
	for _, reason := range j.Reasons {
		answer.Reasons = append(answer.Reasons, clean(reason))
	}
	if j.Book != (job.Book{}) {
		answer.Book = &boarddv1.Book{Uuid: clean(j.Book.UUID), Name: clean(j.Book.Name)}
	}
	answer.Timeout, answer.Unique = toDuration(j.Timeout), toUnique(&j.Unique)
	if j.Batch != "" {
		name := clean(j.Batch)
		answer.Batch = &name
	}
	if a := j.AsItWas; a != nil {
		answer.AsItWas = &boarddv1.AsItWas{Format: a.Format, Record: a.Record, Sha256: a.SHA256}
	}
}

// hasRare reports whether addRare has anything to add.
func hasRare(j *job.Job) bool {
	return len(j.Operations)+len(j.After)+len(j.Attempts)+len(j.Reasons)+len(j.Log) > 0 || j.Book != (job.Book{}) || j.Timeout != 0 ||
		j.Unique.Key != "" || j.Batch != "" || j.AsItWas != nil
}

func toAttempts(list []job.Attempt) (attempts []*boarddv1.Attempt) {
	for _, a := range list {
		attempts = append(attempts, &boarddv1.Attempt{
			Owner: clean(a.Owner), BegunAt: toTime(a.Begun), EndedAt: toTime(a.Ended), Lease: toDuration(a.Lease), Reason: clean(a.Reason),
		})
	}
	return attempts
}

// madeJob is a job's public form with room for its times, so that they cost no
// memory each.
type madeJob struct {
	job   boarddv1.Job
	times times
}

// times are the times of one answer. Equal ones that follow each other are one.
type times struct {
	room [3]timestamppb.Timestamp
	used int
	last time.Time
	made *timestamppb.Timestamp // of last
}

// at is toTime for what is only read.
func (s *times) at(t time.Time) *timestamppb.Timestamp {
	switch {
	case t.IsZero():
		return nil
	case s.made != nil && t.Equal(s.last):
	case s.used < len(s.room):
		s.last, s.made = t, &s.room[s.used]
		s.used++
		fill(s.made, t)
	default:
		s.last, s.made = t, toTime(t)
	}
	return s.made
}

func toLabels(labels []job.Label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[clean(l.Key)] = clean(l.Value)
	}
	return m
}

// toTime is nil for the zero time. A time that the API cannot write becomes the
// last one that it can.
func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	answer := new(timestamppb.Timestamp)
	fill(answer, t)
	return answer
}

func fill(answer *timestamppb.Timestamp, t time.Time) {
	answer.Seconds, answer.Nanos = t.Unix(), int32(t.Nanosecond())
	if answer.CheckValid() != nil {
		answer.Seconds, answer.Nanos = lastTime.Unix(), int32(lastTime.Nanosecond())
	}
}

var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// toDuration is nil for 0, which stands for none.
func toDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// toInt64 says the largest number that the API has for a larger one.
func toInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func toEvent(e job.Event) *boarddv1.Event {
	return &boarddv1.Event{
		Type: boarddv1.EventType_Enum(e.Type), Job: toJob(e.Job), At: toTime(e.At), Reason: clean(e.Reason), Cursor: e.Cursor,
		CancelRequested: e.CancelRequested,
	}
}

// fromID reads a uuid.
func fromID(path, text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return job.ID{}, invalid(path, "%v", err)
	}
	return id, nil
}

// fromRef reads the three fields of a claim that requests have.
func fromRef(c *boarddv1.Claim) (board.Ref, error) {
	id, err := fromID("uuid", c.GetUuid())
	return board.Ref{ID: id, Owner: c.GetOwner(), Token: c.GetToken()}, err
}

// fromPosting reads a new job. What the board checks by itself is left to it.
func fromPosting(n *boarddv1.NewJob) (job.Posting, error) {
	p := job.Posting{
		Name: n.GetName(), Details: n.GetDetails(), Labels: job.LabelsOf(n.GetLabels()), MaxAttempts: n.GetMaxAttempts(),
		Book:       job.Book{UUID: n.GetBook().GetUuid(), Name: n.GetBook().GetName()},
		Operations: fromOperations(n.GetOperations()), Batch: n.GetBatch(),
	}
	if n.GetMaxAttempts() < 0 {
		return p, invalid("maxAttempts", "want 0 (the board's) or more, got %d", n.GetMaxAttempts())
	}
	var err error
	if p.After, err = fromAfter(n.GetAfter()); err != nil {
		return p, err
	}
	if n.GetUuid() != "" {
		if p.ID, err = fromID("uuid", n.GetUuid()); err != nil {
			return p, err
		}
	}
	if p.Priority, err = fromPriority(n.GetPriority()); err != nil {
		return p, err
	}
	if n.NotBefore != nil {
		if err := n.GetNotBefore().CheckValid(); err != nil {
			return p, invalid("notBefore", "want a time from the year 1 to 9999")
		}
		p.NotBefore = n.GetNotBefore().AsTime()
	}
	if p.Timeout, err = fromDuration("timeout", n.GetTimeout(), job.MinLease); err != nil {
		return p, err
	}
	if p.Unique, err = fromUnique(n.GetUnique()); err != nil {
		return p, err
	}
	if n.DetailsRaw != nil {
		if n.Details != nil {
			return p, invalid("detailsRaw", "want either details or detailsRaw, got both")
		}
		p.Raw, err = fromRaw(n.GetDetailsRaw())
	}
	return p, err
}

func fromUnique(u *boarddv1.Unique) (unique job.Unique, err error) {
	if u == nil {
		return unique, nil
	}
	if u.GetKey() == "" {
		return unique, invalid("unique.key", "want a key of 1 to %d bytes", job.MaxUniqueKey)
	}
	if unique.Window, err = fromDuration("unique.window", u.GetWindow(), job.MinUniqueWindow); err != nil {
		return unique, err
	}
	if u.GetOnConflict() < 0 || int(u.GetOnConflict()) > int(job.Reject) {
		return unique, invalid("unique.onConflict", "want KEEP, REPLACE or REJECT, got %d", u.GetOnConflict())
	}
	unique.Key, unique.OnConflict = u.GetKey(), job.OnConflict(u.GetOnConflict()) //nolint:gosec // it is in the range
	return unique, nil
}

func toUnique(u *job.Unique) *boarddv1.Unique {
	if u.Key == "" {
		return nil
	}
	return &boarddv1.Unique{Key: clean(u.Key), Window: toDuration(u.Window)}
}

func fromPriority(p boarddv1.Priority_Enum) (job.Priority, error) {
	if p == boarddv1.Priority_UNSPECIFIED {
		return job.Normal, nil
	}
	shifted := int(p) - priorityShift
	if shifted < int(job.VeryHigh) || shifted > int(job.VeryLow) {
		return 0, invalid("priority", "there is no priority with the number %d", p)
	}
	return job.Priority(shifted), nil
}

func fromRaw(r *boarddv1.Raw) (*job.Raw, error) {
	names := []string{job.JSON.String(), job.Msgpack.String()}
	i := slices.Index(names, r.GetEncoding())
	if i < 0 {
		hint := ""
		if len(r.GetEncoding()) <= 64 {
			hint = nearest.Hint(r.GetEncoding(), names)
		}
		return nil, invalid("detailsRaw.encoding", "want one of %s, got %q%s", strings.Join(names, ", "), clip(r.GetEncoding()), hint)
	}
	return &job.Raw{Encoding: job.Encoding(i), Data: r.GetData()}, nil
}

// fromDuration reads a duration that is absent or at least so long.
func fromDuration(path string, d *durationpb.Duration, least time.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil { // only the binary form can say such a thing
		return 0, invalid(path, "want a duration of at most 10,000 years whose seconds and nanoseconds have one sign, got %d s and %d ns",
			d.GetSeconds(), d.GetNanos())
	}
	got := d.AsDuration()
	if got < least {
		return 0, invalid(path, "want at least %s, got %s", seconds(least), seconds(got))
	}
	return got, nil
}

// seconds writes a duration as requests do.
func seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// clip shortens a stranger's text for a message.
func clip(s string) string { return shorten.Text(s) }
