package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// decodeResult reads what the script answers to one op.
func decodeResult(raw string, op *driver.Op, at scene) driver.Result {
	u := &unpacker{b: []byte(raw)}
	kind := u.u8()
	r := driver.Result{Kind: job.Kind(kind), Repeated: u.u8() == 1, Position: driver.Position(u.u64()), Version: u.u64()}
	r.At, r.NotBefore = u.time(), u.time()
	r.Remaining, r.Lease = milliseconds(u.u64()), milliseconds(u.u64())
	r.Message, r.Owner = u.text(), u.text()
	if kind == trouble {
		return driver.Failed(troubled(r.Message))
	}
	switch {
	case kind == early:
		n, _ := strconv.ParseInt(r.Message, 10, 64) // the script wrote it
		r, _ = transition.Early(op, func(string) int64 { return n })
		return r
	case op.Kind == driver.Tally && r.Kind == job.NoKind:
		return tallied(r.Message, op)
	case r.Kind == job.QuotaExceeded && transition.OfGroup(r.Message):
		return transition.Full(r.Message)
	}
	about := subject(op)
	if kind == takenBy {
		r.Kind = job.AlreadyExists
		r.Taken, _ = job.ParseID(r.Owner) // the script wrote it
		about, r.Owner = r.Taken, ""
	}
	if op.Replaces != nil && !ofPost(r.Kind) {
		r.Taken, about = op.Replaces.Job, op.Replaces.Job
	}
	r.Record = u.record(about, at, 0)
	if op.Kind == driver.Post && r.Repeated && r.Record != nil {
		r.At = r.Record.Posting.CreatedAt
	}
	r.Claims = u.claims(op, at)
	r.Skipped = u.gone(at)
	if u.short {
		return driver.Failed(job.Errorf(job.OutcomeUnknown, "the script's answer cannot be read"))
	}
	return r
}

// ofPost reports whether an answer is about a Post itself, and not about the job that it
// replaces.
func ofPost(k job.Kind) bool {
	return k == job.NoKind || k == job.AlreadyExists || k == job.QuotaExceeded || k == job.Precondition
}

// tallied reads what a group counted before the op, and says what the op made of it.
func tallied(counts string, op *driver.Op) driver.Result {
	u := &unpacker{b: []byte(counts)}
	now := map[string]int64{}
	for _, key := range transition.GroupKeys(op.Group) {
		now[key] = int64(u.u64())
	}
	_, r := transition.Count(op, func(key string) int64 { return now[key] })
	return r
}

// troubled says what became of an op that failed in the middle of the script.
func troubled(message string) error {
	switch {
	case strings.HasPrefix(message, "CORRUPT "):
		return job.Errorf(job.Corrupt, "%s", strings.TrimPrefix(message, "CORRUPT "))
	case isCorrupt(message):
		return job.Errorf(job.Corrupt, "a key of the job has another type than TaskFlow and boardd give it: %s", message)
	case refused(message):
		return job.Errorf(job.Unavailable, "Redis refuses: %s", message)
	}
	return job.Errorf(job.OutcomeUnknown, "the op failed within the script: %s", message)
}

func milliseconds(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }

// record reads a job, which may be none.
func (u *unpacker) record(id job.ID, at scene, parts driver.Parts) *driver.Record {
	if u.u8() == 0 {
		return nil
	}
	s := storedJob{id: id.String(), state: job.State(u.u8()), left: milliseconds(u.u64())}
	s.posting, s.meta = u.blob(), u.blob()
	s.owner, s.modified = u.short16(), u.short16()
	s.past, s.final = u.blob(), u.blob()
	s.attached = u.attachments()
	r, err := s.record(at, parts)
	if err != nil {
		return nil
	}
	return r
}

func (u *unpacker) short16() []byte {
	if n := u.u16(); n > 0 {
		return u.take(n)
	}
	return nil
}

func (u *unpacker) attachments() []driver.Attachment {
	n := u.u32()
	if n == 0 || n > len(u.b) {
		return nil
	}
	list := make([]driver.Attachment, n)
	for i := range list {
		list[i] = driver.Attachment{Name: u.text(), Data: u.take(u.u32())}
	}
	sortAttachments(list)
	return list
}

func sortAttachments(list []driver.Attachment) {
	slices.SortFunc(list, func(a, b driver.Attachment) int { return strings.Compare(a.Name, b.Name) })
}

// subject is the job that an op is about; none for a claim.
func subject(op *driver.Op) job.ID {
	if op.Kind == driver.Post {
		return op.Posting.ID
	}
	return op.Job
}

// claims reads the claims that were made, or given again.
func (u *unpacker) claims(op *driver.Op, at scene) []driver.Claimed {
	n := u.u16()
	if n == 0 || n > len(u.b) {
		return nil
	}
	parts := driver.Parts(0)
	if op.Claim != nil {
		parts = op.Claim.Parts
	}
	list := make([]driver.Claimed, n)
	for i := range list {
		c := &list[i]
		c.Job = u.id()
		c.Token, c.Lease, c.Version = u.token(), milliseconds(u.u64()), u.u64()
		c.Position, c.At = driver.Position(u.u64()), u.time()
		c.Record = u.record(c.Job, at, parts)
	}
	return list
}

// gone reads the candidates that were passed over.
func (u *unpacker) gone(at scene) []driver.Skipped {
	n := u.u16()
	if n == 0 || n > len(u.b) {
		return nil
	}
	list := make([]driver.Skipped, n)
	for i := range list {
		g := &list[i]
		g.Job = u.id()
		g.Kind, g.Owner, g.Message = job.Kind(u.u8()), u.text(), u.text()
		g.Record = u.record(g.Job, at, 0)
	}
	return list
}
