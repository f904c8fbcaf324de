package board

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// exportLine is one line of an exported board, with one of its fields.
type exportLine struct {
	Job      *exportedJob      `json:"job,omitempty"`
	Document *exportedDocument `json:"document,omitempty"`
}

// exportedJob is a job as an export has it. Posting, Status, Final and Attached are the
// board's own records, which it reads again in any later version.
type exportedJob struct {
	UUID     string    `json:"uuid"`
	Name     string    `json:"name,omitempty"`
	State    string    `json:"state"`
	Outcome  string    `json:"outcome,omitempty"`
	Priority string    `json:"priority"`
	BookUUID string    `json:"bookUuid,omitempty"`
	BookName string    `json:"bookName,omitempty"`
	Created  time.Time `json:"createdAt"`
	Ended    time.Time `json:"endedAt,omitzero"`
	Owner    string    `json:"owner,omitempty"` // who held it

	NotBefore time.Time `json:"notBefore,omitzero"`
	Held      bool      `json:"held,omitempty"`

	Details    *string `json:"details,omitempty"` // JSON as text, so that it stays byte for byte
	DetailsRaw []byte  `json:"detailsRaw,omitempty"`
	Encoding   string  `json:"encoding"`

	Digest   []byte            `json:"digest"`
	Posting  []byte            `json:"posting,omitempty"`
	Status   []byte            `json:"status,omitempty"`
	Final    []byte            `json:"final,omitempty"`
	Attached map[string][]byte `json:"attached,omitempty"`
}

// exportedDocument is a document as an export has it: a book, a schedule, or how far one is.
type exportedDocument struct {
	Space string `json:"space"`
	Name  string `json:"name"`
	Data  []byte `json:"data"`
}

// exported is a record as a line.
func exported(r *driver.Record) *exportedJob {
	p := &r.Posting
	e := &exportedJob{
		UUID: p.ID.String(), Name: p.Name, State: r.State.String(), Priority: p.Priority.String(), BookUUID: p.Book.UUID, BookName: p.Book.Name,
		Created: p.CreatedAt.UTC(), Ended: r.EndedAt.UTC(), NotBefore: r.NotBefore.UTC(), Held: r.Held, Encoding: p.Encoding.String(),
		Digest: p.Digest[:], Posting: p.Extra, Status: r.Status, Final: r.Final,
	}
	if r.State == job.Complete {
		e.Outcome = r.Outcome.String()
	}
	if r.Holder != nil {
		e.Owner = r.Holder.Owner
	}
	switch {
	case p.Details == nil:
	case p.Encoding == job.JSON && utf8.Valid(p.Details):
		text := string(p.Details)
		e.Details = &text
	default:
		e.DetailsRaw = p.Details
	}
	for _, a := range r.Attached {
		if e.Attached == nil {
			e.Attached = map[string][]byte{}
		}
		e.Attached[a.Name] = a.Data
	}
	return e
}

// named returns the value that has a name, as its String gives it.
func named[T interface {
	~uint8 | ~int8
	String() string
}](what, name string, values ...T) (T, error) {
	names := make([]string, len(values))
	for i, v := range values {
		if v.String() == name {
			return v, nil
		}
		names[i] = v.String()
	}
	return 0, job.Errorf(job.Invalid, "job.%s: want %s, got %.80q", what, strings.Join(names, " or "), name)
}

// posting returns what was posted.
func (e *exportedJob) posting() (p *driver.Posting, state job.State, err error) {
	p = &driver.Posting{Name: e.Name, Book: job.Book{UUID: e.BookUUID, Name: e.BookName}, Extra: e.Posting}
	if p.ID, err = job.ParseID(e.UUID); err != nil {
		return nil, 0, job.Errorf(job.Invalid, "job.uuid: want the text of a uuid, got %.80q", e.UUID)
	}
	if state, err = named("state", e.State, job.Unclaimed, job.Claimed, job.Trashed, job.Complete); err != nil {
		return nil, 0, err
	}
	if p.Priority, err = named("priority", e.Priority, job.VeryHigh, job.High, job.Normal, job.Low, job.VeryLow); err != nil {
		return nil, 0, err
	}
	if p.Encoding, err = named("encoding", e.Encoding, job.JSON, job.Msgpack); err != nil {
		return nil, 0, err
	}
	if p.Details = e.DetailsRaw; e.Details != nil {
		p.Details = []byte(*e.Details)
	}
	if _, err := record.ReadExtra(e.Posting); err != nil {
		return nil, 0, job.Errorf(job.Invalid, "job.posting: %v", err)
	}
	if _, err := record.ReadStatus(e.Status); err != nil {
		return nil, 0, job.Errorf(job.Invalid, "job.status: %v", err)
	}
	switch {
	case len(e.Digest) != len(p.Digest):
		return nil, 0, job.Errorf(job.Invalid, "job.digest: want %d bytes, got %d", len(p.Digest), len(e.Digest))
	case e.Created.IsZero() && state != job.Complete:
		return nil, 0, job.Errorf(job.Invalid, "job.createdAt: want a time")
	case e.Ended.IsZero() && (state == job.Complete || state == job.Trashed):
		return nil, 0, job.Errorf(job.Invalid, "job.endedAt: want a time, as the job is %v", state)
	}
	if p.Digest = [16]byte(e.Digest); p.Digest == [16]byte{} { // another program posted it
		p.Digest = digest(p)
	}
	return p, state, nil
}

// outcome returns how the job ended.
func (e *exportedJob) outcome() (job.Outcome, error) {
	return named("outcome", e.Outcome, job.Consumed, job.Canceled, job.Failed)
}
