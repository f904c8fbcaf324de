package wire

import (
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// OpTo fills m, an empty message, with op.
func OpTo(m *pb.Op, tag uint32, op *driver.Op) {
	m.Tag = tag
	m.Kind = pb.OpKind(op.Kind)
	m.Job = idBytes(&op.Job)
	m.Request = nonceBytes(&op.Request)
	m.Must = pb.Must(op.Precondition)
	m.Token = tokenBytes(op.Token)
	m.Owner = op.Owner
	m.Version = op.Version
	if op.Posting != nil {
		m.Posting = postingTo(op.Posting)
	}
	if op.Claim != nil {
		m.Claim = claimTo(op.Claim)
	}
	m.Lease = int64(op.Lease)
	m.NoExpiry = op.NoExpiry
	m.Most = int64(op.Most)
	if e := op.Ending; e != nil {
		m.Ending = &pb.Ending{
			Outcome: pb.Outcome(e.Outcome), Keep: int64(e.Keep), Data: e.Data,
			KeepPosting: e.KeepPosting, KeepAttached: e.KeepAttached,
		}
	}
	m.Status = present(op.Status)
	m.Attach = attachmentsTo(op.Attach)
	if h := op.Hold; h != nil {
		m.Hold = &pb.Hold{Until: Nanos(h.Until), Wait: int64(h.For), Always: h.Always}
	}
	m.Limits = limitsTo(op.Limits)
	m.Keys = keysTo(op.Keys)
	if op.Replaces != nil {
		m.Replaces = &pb.Op{}
		OpTo(m.Replaces, 0, op.Replaces)
	}
	if i := op.Import; i != nil {
		m.Import = &pb.Import{Created: Nanos(i.CreatedAt), Ended: Nanos(i.EndedAt), Move: nonceBytes(&i.Move)}
		if i.Then != nil {
			m.Import.Then = &pb.Op{}
			OpTo(m.Import.Then, 0, i.Then)
		}
	}
	m.Inbox = op.Inbox
	m.Group, m.Emptied, m.Close, m.Forget = op.Group, op.Emptied, op.Close, op.Forget
	m.Event = pb.Event(op.Event)
	m.Reason = op.Reason
}

// OpFrom reads an op. The tag is the caller's to read.
func OpFrom(m *pb.Op) (driver.Op, error) {
	var r reader
	op := driver.Op{
		Kind:         driver.OpKind(r.enum(int32(m.Kind), int(driver.Tally), "the kind of an op")),
		Job:          r.bytes16(m.Job, "a job's id"),
		Request:      r.bytes16(m.Request, "a request's id"),
		Precondition: driver.Precondition(r.enum(int32(m.Must), int(driver.Free), "must")),
		Token:        r.token(m.Token),
		Owner:        m.Owner,
		Version:      m.Version,
		Lease:        time.Duration(r.amount(m.Lease, "a lease")),
		NoExpiry:     m.NoExpiry,
		Most:         time.Duration(r.amount(m.Most, "how long a claim may stand")),
		Status:       optional(m.Status),
		Attach:       attachmentsFrom(m.Attach),
		Limits:       limitsFrom(m.Limits),
		Inbox:        m.Inbox,
		Group:        m.Group,
		Emptied:      m.Emptied,
		Close:        m.Close,
		Forget:       m.Forget,
		Event:        r.event(int32(m.Event)),
		Reason:       m.Reason,
	}
	if m.Posting != nil {
		p := r.posting(m.Posting)
		op.Posting = &p
	}
	if m.Claim != nil {
		op.Claim = r.claim(m.Claim)
	}
	if e := m.Ending; e != nil {
		op.Ending = &driver.Ending{
			Outcome: r.outcome(int32(e.Outcome)), Keep: time.Duration(r.amount(e.Keep, "keep")), Data: e.Data,
			KeepPosting: e.KeepPosting, KeepAttached: e.KeepAttached,
		}
	}
	if h := m.Hold; h != nil {
		op.Hold = &driver.Hold{Until: Time(h.Until), For: time.Duration(r.amount(h.Wait, "a wait")), Always: h.Always}
	}
	op.Keys = r.keys(m.Keys)
	if m.Replaces != nil && r.err == nil {
		other, err := OpFrom(m.Replaces)
		op.Replaces, r.err = &other, err
	}
	if i := m.Import; i != nil && r.err == nil {
		op.Import = &driver.Import{CreatedAt: Time(i.Created), EndedAt: Time(i.Ended), Move: r.bytes16(i.Move, "a move's id")}
		if i.Then != nil {
			then, err := OpFrom(i.Then)
			op.Import.Then, r.err = &then, err
		}
	}
	return op, r.err
}

func keysTo(list []driver.Key) []*pb.Key {
	if len(list) == 0 {
		return nil
	}
	out := make([]*pb.Key, len(list))
	for i, k := range list {
		out[i] = &pb.Key{Name: k.Name, Open: k.Open, Wait: int64(k.For), Number: k.Number}
	}
	return out
}

func (r *reader) keys(list []*pb.Key) []driver.Key {
	if len(list) == 0 {
		return nil
	}
	out := make([]driver.Key, len(list))
	for i, k := range list {
		out[i] = driver.Key{Name: k.Name, Open: k.Open, For: time.Duration(r.amount(k.Wait, "for how long a key is had")), Number: k.Number}
	}
	return out
}

func claimTo(c *driver.ClaimSpec) *pb.ClaimSpec {
	m := &pb.ClaimSpec{
		Count: int64(c.Count), Owner: c.Owner, Lease: int64(c.Lease), NoExpiry: c.NoExpiry,
		Parts: uint32(c.Parts), Remember: c.Remember, More: c.More,
	}
	if len(c.Candidates) == 0 {
		return m
	}
	messages := make([]pb.Candidate, len(c.Candidates))
	m.Candidates = make([]*pb.Candidate, len(c.Candidates))
	for i := range c.Candidates {
		from, to := &c.Candidates[i], &messages[i]
		to.Job = idBytes(&from.Job)
		to.Version = from.Version
		to.Nonce = nonceBytes(&from.Nonce)
		to.Status = present(from.Status)
		to.Limits = limitsTo(from.Limits)
		to.Rates = ratesTo(from.Rates)
		to.Most = int64(from.Most)
		m.Candidates[i] = to
	}
	return m
}

func (r *reader) claim(m *pb.ClaimSpec) *driver.ClaimSpec {
	c := &driver.ClaimSpec{
		Count: int(r.amount(m.Count, "a claim's count")), Owner: m.Owner, Lease: time.Duration(r.amount(m.Lease, "a lease")),
		NoExpiry: m.NoExpiry, Parts: r.parts(m.Parts), Remember: m.Remember, More: m.More,
	}
	if len(m.Candidates) == 0 {
		return c
	}
	c.Candidates = make([]driver.Candidate, len(m.Candidates))
	for i, from := range m.Candidates {
		c.Candidates[i] = driver.Candidate{
			Job: r.bytes16(from.Job, "a candidate's id"), Version: from.Version, Nonce: r.bytes16(from.Nonce, "a nonce"),
			Status: optional(from.Status), Limits: limitsFrom(from.Limits), Rates: r.rates(from.Rates),
			Most: time.Duration(r.amount(from.Most, "how long a claim may stand")),
		}
	}
	return c
}

func attachmentsTo(list []driver.Attachment) []*pb.Attachment {
	if len(list) == 0 {
		return nil
	}
	out := make([]*pb.Attachment, len(list))
	for i, a := range list {
		out[i] = &pb.Attachment{Name: a.Name, Data: a.Data, Remove: a.Delete}
	}
	return out
}

func attachmentsFrom(list []*pb.Attachment) []driver.Attachment {
	if len(list) == 0 {
		return nil
	}
	out := make([]driver.Attachment, len(list))
	for i, a := range list {
		out[i] = driver.Attachment{Name: a.Name, Data: slices.Clip(a.Data), Delete: a.Remove}
	}
	return out
}

func limitsTo(list []driver.Limit) []*pb.Limit {
	if len(list) == 0 {
		return nil
	}
	out := make([]*pb.Limit, len(list))
	for i, l := range list {
		out[i] = &pb.Limit{Key: l.Key, Weight: l.Weight, Max: l.Max}
	}
	return out
}

func limitsFrom(list []*pb.Limit) []driver.Limit {
	if len(list) == 0 {
		return nil
	}
	out := make([]driver.Limit, len(list))
	for i, l := range list {
		out[i] = driver.Limit{Key: l.Key, Weight: l.Weight, Max: l.Max}
	}
	return out
}

func (r *reader) event(n int32) job.EventType {
	return job.EventType(r.enum(n, int(job.Resync), "an event"))
}

func (r *reader) outcome(n int32) job.Outcome {
	return job.Outcome(r.enum(n, int(job.Purged), "an outcome"))
}

func (r *reader) state(n int32) job.State { return job.State(r.enum(n, int(job.Trashed), "a state")) }

func (r *reader) encoding(n int32) job.Encoding {
	return job.Encoding(r.enum(n, int(job.Msgpack), "an encoding"))
}

func (r *reader) parts(p uint32) driver.Parts {
	if p > math.MaxUint8 {
		r.fail("parts is %d, want at most %d", p, math.MaxUint8)
		return 0
	}
	return driver.Parts(p)
}

func ratesTo(list []driver.Rate) []*pb.Rate {
	if len(list) == 0 {
		return nil
	}
	out := make([]*pb.Rate, len(list))
	for i, l := range list {
		out[i] = &pb.Rate{Key: l.Key, Per: int64(l.Per), Max: l.Max}
	}
	return out
}

func (r *reader) rates(list []*pb.Rate) []driver.Rate {
	if len(list) == 0 {
		return nil
	}
	out := make([]driver.Rate, len(list))
	for i, l := range list {
		out[i] = driver.Rate{Key: l.Key, Per: time.Duration(r.amount(l.Per, "a rate's period")), Max: l.Max}
	}
	return out
}
