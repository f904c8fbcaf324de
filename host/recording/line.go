// Package recording keeps what happened on a board for a while, so that it can be
// gone through again with other policies (package replay).
//
// A recording is a folder of segments. Each is a file of JSON objects, one on each
// line, of which docs/policies.md tells what they say. A segment begins with what
// is open then, so that it makes sense without those before it. The format is for
// people and other programs, too: nothing in it is only for boardd.
package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Format is the number of the format that this package writes. It reads those before
// it, too: the first one does not say when claims were decided.
const Format = 2

// What a line says, as its field "event".
const (
	Begin = "begin" // a segment begins
	Open  = "open"  // at the beginning: a job that stands open
	Post  = "post"  // a job was posted, given back, or changed, and stands open
	Claim = "claim" // a job was claimed
	Gone  = "gone"  // a job left the line
	Gap   = "gap"   // what follows does not follow on what stands before
	Lost  = "lost"  // jobs were claimed of which nothing is known
)

// Line is one line of a recording.
type Line struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`

	// Of Begin.
	Format  int    `json:"format,omitempty"`
	Board   string `json:"board,omitempty"`   // TENANT/NAME
	Omitted int64  `json:"omitted,omitempty"` // open jobs that have no line: the last ones in the order

	UUID string `json:"uuid,omitempty"` // of Gone
	Job  *Job   `json:"job,omitempty"`  // of Open, Post and Claim
	By   *Taker `json:"by,omitempty"`   // of Claim; nil: nothing is known of who claimed

	// Of Claim: when the board chose the job for this claim, by its own clock. Zero: at
	// the time of the line, as far as is known.
	Decided time.Time `json:"decided,omitzero"`

	// Of Lost: how many claims are not recorded. They were made between Since and the
	// time of the line.
	Claims int64     `json:"claims,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Job is what a recording has of a job: of its details only the facts that a
// policy of the board named.
type Job struct {
	UUID              string            `json:"uuid"`
	Name              string            `json:"name"`
	Priority          string            `json:"priority,omitempty"` // empty: NORMAL
	OperationPriority int32             `json:"operationPriority,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Facts             map[string]any    `json:"facts,omitempty"` // by TYPE:PATH, such as int:/frames; null: it is absent
	CreatedAt         time.Time         `json:"createdAt"`
	NotBefore         time.Time         `json:"notBefore,omitzero"`
	Sequence          uint64            `json:"sequence,omitempty"`
	Attempt           int32             `json:"attempt,omitempty"`
	MaxAttempts       int32             `json:"maxAttempts,omitempty"`
}

// Taker is who claimed a job.
type Taker struct {
	Worker map[string]string `json:"worker,omitempty"` // its labels
	Names  []string          `json:"names,omitempty"`
	Filter string            `json:"filter,omitempty"`
	Chosen bool              `json:"chosen,omitempty"` // the job was named by the claim
}

// factName is what a fact is called in a recording.
func factName(s policy.FactSpec) string { return string(s.Type) + ":" + s.Path }

// lineOf writes down what happened.
func lineOf(h *board.Happening, open bool) Line {
	l := Line{At: h.At.UTC()}
	switch h.What {
	case board.Lost:
		l.Event, l.Claims, l.Since = Lost, 1, l.At
		return l
	case board.Gone:
		l.Event, l.UUID = Gone, h.Job.ID.String()
		return l
	case board.Taken:
		if l.Event = Claim; !h.Decided.IsZero() && !h.Decided.Equal(h.At) {
			l.Decided = h.Decided.UTC()
		}
		if by := h.By; by != nil {
			l.By = &Taker{Worker: labelsOf(by.Worker), Names: by.Names, Filter: by.Filter, Chosen: by.Chosen}
		}
	case board.Stands:
		l.Event = Post
		if open {
			l.Event = Open
		}
	}
	l.Job = jobOf(&h.Job, h.Specs)
	return l
}

func jobOf(j *policy.Job, specs []policy.FactSpec) *Job {
	made := &Job{
		UUID: j.ID.String(), Name: j.Name, OperationPriority: j.OperationPriority, Labels: labelsOf(j.Labels),
		CreatedAt: j.CreatedAt.UTC(), Sequence: j.Sequence, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts,
	}
	if !j.NotBefore.IsZero() {
		made.NotBefore = j.NotBefore.UTC()
	}
	if j.Priority != job.Normal {
		made.Priority = j.Priority.String()
	}
	if len(j.Facts) == len(specs) {
		for i, s := range specs {
			if made.Facts == nil {
				made.Facts = map[string]any{}
			}
			made.Facts[factName(s)] = j.Facts[i]
		}
	}
	return made
}

func labelsOf(labels []job.Label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Key] = l.Value
	}
	return m
}

// Labels returns labels as policies have them.
func Labels(m map[string]string) []job.Label {
	list := make([]job.Label, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, job.Label{Key: k, Value: m[k]})
	}
	return list
}

// check says what is wrong with a line.
func (l *Line) check() error {
	needsJob := l.Event == Open || l.Event == Post || l.Event == Claim
	switch {
	case l.At.IsZero():
		return fmt.Errorf("at: it is missing; want a time such as 2026-01-31T09:00:00Z")
	case l.Event == Begin && (l.Format < 1 || l.Format > Format):
		return fmt.Errorf("format: %d: this boardd knows 1 to %d", l.Format, Format)
	case l.Event == Gone && l.UUID == "":
		return fmt.Errorf("uuid: it is missing")
	case needsJob && l.Job == nil:
		return fmt.Errorf("job: it is missing")
	case needsJob:
		_, err := l.Job.read()
		return err
	case l.Event == Gone:
		_, err := job.ParseID(l.UUID)
		return err
	case l.Claims < 0:
		return fmt.Errorf("claims: %d: want 0 or more", l.Claims)
	case l.Event == Begin || l.Event == Gap || l.Event == Lost:
		return nil
	}
	return fmt.Errorf("event: %.40q: want one of %s", l.Event, strings.Join([]string{Begin, Open, Post, Claim, Gone, Lost, Gap}, ", "))
}

// read returns the job as policies have it, without its facts.
func (j *Job) read() (policy.Job, error) {
	made := policy.Job{
		Name: j.Name, Priority: job.Normal, OperationPriority: j.OperationPriority, Labels: Labels(j.Labels),
		CreatedAt: j.CreatedAt, NotBefore: j.NotBefore, Sequence: j.Sequence, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts,
	}
	var err error
	if made.ID, err = job.ParseID(j.UUID); err != nil {
		return made, fmt.Errorf("uuid: %w", err)
	}
	if j.Priority != "" {
		var ok bool
		if made.Priority, ok = job.ParsePriority(j.Priority); !ok {
			return made, fmt.Errorf("priority: %.40q: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW", j.Priority)
		}
	}
	return made, nil
}

// Read returns the job as policies have it, without its facts. It was checked when
// its line was parsed.
func (j *Job) Read() policy.Job {
	made, _ := j.read()
	return made
}

// Values returns the values of facts, and which of them nobody recorded.
func (j *Job) Values(specs []policy.FactSpec) (values []policy.Fact, missing []int) {
	values = make([]policy.Fact, len(specs))
	for i, s := range specs {
		v, known := j.Facts[factName(s)]
		if !known {
			missing = append(missing, i)
		}
		values[i] = factOf(s.Type, v)
	}
	return values, missing
}

// factOf reads a fact's value; one of another type counts as absent.
func factOf(t policy.FactType, v any) policy.Fact {
	switch v := v.(type) {
	case bool:
		if t == policy.BoolFact {
			return v
		}
	case string:
		if t == policy.StringFact {
			return v
		}
		if at, err := time.Parse(time.RFC3339Nano, v); t == policy.TimeFact && err == nil {
			return at
		}
	case json.Number:
		if n, err := v.Int64(); t == policy.IntFact && err == nil {
			return n
		}
		if f, err := v.Float64(); t == policy.FloatFact && err == nil {
			return f
		}
	}
	return nil
}
