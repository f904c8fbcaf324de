package webhook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestKinds: of which events a webhook is told, as what.
func TestKinds(t *testing.T) {
	t.Parallel()
	in := func(s job.State) *job.Job { return &job.Job{ID: job.ID{1}, State: s} }
	for name, test := range map[string]struct {
		event job.Event
		want  string
	}{
		"posted":                 {job.Event{Type: job.Posted, Job: in(job.Unclaimed)}, ""},
		"posted, and shown late": {job.Event{Type: job.Posted, Job: in(job.Complete)}, ""},
		"consumed":               {job.Event{Type: job.ConsumedEvent, Job: in(job.Complete)}, "job.ended"},
		"canceled":               {job.Event{Type: job.CanceledEvent, Job: in(job.Complete)}, "job.ended"},
		"trashed":                {job.Event{Type: job.TrashedEvent, Job: in(job.Trashed)}, "job.trashed"},
		"exhausted":              {job.Event{Type: job.TrashedEvent, Job: in(job.Trashed), Exhausted: true}, "job.exhausted"},
		"restored":               {job.Event{Type: job.Restored, Job: in(job.Unclaimed)}, ""},
		"purged":                 {job.Event{Type: job.PurgedEvent, Job: in(job.Complete)}, ""},
		"TaskFlow consumed it":   {job.Event{Type: job.ForeignChange, Job: in(job.Complete)}, "job.ended"},
		"TaskFlow trashed it":    {job.Event{Type: job.ForeignChange, Job: in(job.Trashed)}, "job.trashed"},
		"TaskFlow claimed it":    {job.Event{Type: job.ForeignChange, Job: in(job.Claimed)}, ""},
		"nothing happened":       {job.Event{Type: job.Heartbeat}, ""},
	} {
		k, ok := kindOf(&test.event)
		if ok != (test.want != "") || ok && k.String() != test.want {
			t.Errorf("%s: got %v %s, want %q", name, ok, k, test.want)
		}
	}
}

// TestDeliveryIDs: one event has one ID for a hook on every server, and no other event or hook
// has it.
func TestDeliveryIDs(t *testing.T) {
	t.Parallel()
	one, other := &Hook{Board: "a", Name: "b"}, &Hook{Board: "a", Name: "c"}
	at := func(typ job.EventType, when int64, attempt int32) *job.Event {
		return &job.Event{Type: typ, At: time.UnixMicro(when), Job: &job.Job{ID: job.ID{7}, Attempt: attempt}}
	}
	moved := at(job.TrashedEvent, 9, 1) // brought into another store later
	moved.Job.EndedAt, moved.Cursor = time.UnixMicro(5), "1.12"
	id := func(h *Hook, k Kind, e *job.Event) job.ID { return deliveryID(h, e.Job.ID.String(), k, placeOf(k, e)) }
	first := id(one, Trashed, at(job.TrashedEvent, 5, 1))
	if first != id(one, Trashed, at(job.TrashedEvent, 5, 1)) || first[6]>>4 != 8 || first[8]>>6 != 2 {
		t.Errorf("%s", first)
	}
	for name, another := range map[string]job.ID{
		"hook": id(other, Trashed, at(job.TrashedEvent, 5, 1)), "kind": id(one, Ended, at(job.ConsumedEvent, 5, 1)),
		"time": id(one, Trashed, at(job.TrashedEvent, 6, 1)),
	} {
		if another == first {
			t.Errorf("another %s has the same ID", name)
		}
	}
	if id(one, Trashed, moved) != first {
		t.Error("it has another ID in another store")
	}
	if id(one, Ended, at(job.ForeignChange, 5, 1)) != id(one, Ended, at(job.ForeignChange, 9, 1)) {
		t.Error("what another program did has a place of its own on each server")
	}
	if id(one, Trashed, at(job.ForeignChange, 5, 1)) == id(one, Trashed, at(job.ForeignChange, 5, 2)) {
		t.Error("two attempts of another program are one event")
	}
}

// TestBody: what is sent is what is promised, with nothing of what the job is to do.
func TestBody(t *testing.T) {
	t.Parallel()
	e := &job.Event{Type: job.TrashedEvent, At: time.Date(2026, 11, 26, 1, 2, 3, 4000, time.UTC), Reason: "odd", Job: &job.Job{
		ID: job.ID{1}, Name: "n", Attempt: 2, Details: []byte(`{"password":"geheim"}`), Labels: []job.Label{{Key: "k", Value: "v"}}, CreatedAt: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC),
	}}
	body, err := bodyOf("b", Trashed, e)
	const want = `{"type":"job.trashed","timestamp":"2026-11-26T01:02:03.000004Z","data":{"board":"b","uuid":"01000000-0000-0000-0000-000000000000","name":"n","state":"TRASHED","reason":"odd","attempt":2,"labels":{"k":"v"},"createdAt":"2026-11-25T00:00:00Z"}}`
	if err != nil || string(body) != want {
		t.Errorf("%s\n%v", body, err)
	}
	p, err := posting(&Hook{Board: "b", Name: "h"}, job.ID{2}, Trashed, "about", "before", body)
	var d delivery
	if err != nil || json.Unmarshal(p.Details, &d) != nil || string(d.Body) != want || d.After != "before" || p.Name != "b/h" {
		t.Errorf("%+v %v", p, err)
	}
}
