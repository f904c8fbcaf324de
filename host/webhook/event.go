package webhook

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// envelope is the body of a request.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the event
	Data      any       `json:"data"`
}

// jobData is what a request says of a job. What the job is to do is not in it: who may read
// it asks the board.
type jobData struct {
	Board     string            `json:"board"`
	UUID      string            `json:"uuid"`
	Name      string            `json:"name,omitempty"` // empty: nothing is left of the job but its end
	State     string            `json:"state"`
	Outcome   string            `json:"outcome,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Attempt   int32             `json:"attempt"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt *time.Time        `json:"createdAt,omitempty"`
}

// waitingData is what a request says of a board whose oldest job waits.
type waitingData struct {
	Board         string    `json:"board"`
	OldestReadyAt time.Time `json:"oldestReadyAt"`
	Waited        string    `json:"waited"`
	Ready         int64     `json:"ready"`
}

// delivery is the details of a job that a sender claims.
type delivery struct {
	Webhook string          `json:"webhook"`
	After   string          `json:"after,omitempty"` // the delivery about the same job that goes before, if it may still be open
	Body    json.RawMessage `json:"body"`
}

// kindOf returns what an event of a board is about, if it is of a kind that is told.
func kindOf(e *job.Event) (Kind, bool) {
	if e.Job == nil {
		return 0, false
	}
	switch e.Type {
	case job.TrashedEvent:
		if e.Exhausted {
			return Exhausted, true
		}
		return Trashed, true
	case job.ConsumedEvent, job.CanceledEvent:
		return Ended, true
	case job.ForeignChange: // by TaskFlow, say, which only shows where it left the job
		switch e.Job.State {
		case job.Trashed:
			return Trashed, true
		case job.Complete:
			return Ended, true
		case job.Unknown, job.Unclaimed, job.Claimed:
		}
	default:
	}
	return 0, false
}

// bodyOf returns what is sent of an event of a job.
func bodyOf(board string, k Kind, e *job.Event) ([]byte, error) {
	d := jobData{
		Board: board, UUID: e.Job.ID.String(), Name: e.Job.Name, State: job.Trashed.String(), Reason: e.Reason,
		Attempt: e.Job.Attempt,
	}
	if k == Ended {
		d.State = job.Complete.String()
		if e.Job.Outcome != job.NoOutcome {
			d.Outcome = e.Job.Outcome.String()
		}
	}
	if !e.Job.CreatedAt.IsZero() {
		d.CreatedAt = &e.Job.CreatedAt
	}
	for _, l := range e.Job.Labels {
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		d.Labels[l.Key] = l.Value
	}
	at := e.At
	if e.Type == job.ForeignChange && !e.Job.EndedAt.IsZero() {
		at = e.Job.EndedAt // the other one may be that of an earlier change
	}
	return json.Marshal(envelope{Type: k.String(), Timestamp: at.UTC(), Data: d})
}

// deliveryID is the ID of what is told of one event: the same on every server, and another one
// for each hook. place tells apart the events of one kind that a job has.
func deliveryID(hook *Hook, about string, k Kind, place string) job.ID {
	sum := sha256.Sum256([]byte(strings.Join([]string{"webhook", hook.Key(), k.String(), about, place}, "\x00")))
	id := job.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 (RFC 9562)
	return id
}

// posting returns a delivery as a job.
func posting(hook *Hook, id job.ID, k Kind, about string, after string, body []byte) (job.Posting, error) {
	details, err := json.Marshal(delivery{Webhook: hook.Key(), After: after, Body: body})
	if err != nil {
		return job.Posting{}, err
	}
	labels := map[string]string{"webhook": hook.Key(), "event": k.String()}
	if about != "" {
		labels["job"] = about
	}
	return job.Posting{ID: id, Name: hook.Key(), Details: details, Labels: job.LabelsOf(labels)}, nil
}

// placeOf tells an event apart from others of its kind about the same job: by when it was, which a
// job takes along to another store, and not by its place in the changes of one. A change that
// another program made has no time that all servers agree on; it ends a job once.
func placeOf(k Kind, e *job.Event) string {
	switch {
	case e.Type != job.ForeignChange:
		at := e.Job.EndedAt
		if at.IsZero() {
			at = e.At
		}
		return strconv.FormatInt(at.UnixMicro(), 10)
	case k == Ended:
		return ""
	}
	return strconv.Itoa(int(e.Job.Attempt))
}
