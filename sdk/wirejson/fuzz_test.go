package wirejson_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

// shapes are messages that between them have every form of field.
func shapes() []proto.Message {
	return []proto.Message{
		&boarddv1.PostJobsRequest{}, &boarddv1.ClaimJobsRequest{}, &boarddv1.Claim{}, &boarddv1.JobResult{},
		&boarddv1.WhoAmIResponse{}, &boarddv1.ExplainJobResponse{}, &boarddv1.Event{},
	}
}

// FuzzUnmarshal reads any text as each of the shapes. What is taken must be
// JSON, and must survive being written and read again.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range golden {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"jobs":[{"details":{"a":[1.5e-3,"\u00e9\ud83d\ude00"]},"labels":{"a":"b"},"notBefore":"2026-01-02T03:04:05.5Z"}]}`))
	f.Add([]byte(`{"lease":"-0.5s","workerLabels":{"":""},"max":1e2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, m := range shapes() {
			lenient := m.ProtoReflect().New().Interface()
			lenientErr := wirejson.UnmarshalLenient(text, lenient)
			if err := wirejson.Unmarshal(text, m); err != nil {
				continue
			}
			if !json.Valid(text) {
				t.Fatalf("taken, but not JSON: %q", text)
			}
			if lenientErr != nil {
				t.Fatalf("taken by the strict reader only: %v", lenientErr)
			}
			again(t, m)
		}
	})
}

func again(t *testing.T, m proto.Message) {
	t.Helper()
	written, err := wirejson.Marshal(m)
	if err != nil {
		t.Fatalf("%v cannot be written: %v", m, err)
	}
	if !json.Valid(written) {
		t.Fatalf("written, but not JSON: %q", written)
	}
	back := m.ProtoReflect().New().Interface()
	if err := wirejson.Unmarshal(written, back); err != nil {
		t.Fatalf("%s cannot be read: %v", written, err)
	}
	if proto.Equal(m, back) {
		return
	}
	// A marked field that held the JSON null is the one thing that is read as
	// absent.
	once, err := wirejson.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back, protocmp.Transform()); len(once) == len(written) && diff != "" {
		t.Fatalf("%s is read differently (-want +got):\n%s", written, diff)
	}
}

// FuzzMarshal writes any message that can be sent in binary, and reads it.
func FuzzMarshal(f *testing.F) {
	for i, m := range shapes() {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, data)
	}
	for _, c := range golden {
		data, err := proto.Marshal(c.message)
		if err != nil {
			f.Fatal(err)
		}
		for i := range shapes() {
			f.Add(i, data)
		}
	}
	f.Fuzz(func(t *testing.T, shape int, data []byte) {
		all := shapes()
		m := all[(shape%len(all)+len(all))%len(all)]
		if proto.Unmarshal(data, m) != nil {
			return
		}
		text, err := wirejson.Marshal(m)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("written, but not JSON: %q", text)
		}
		back := m.ProtoReflect().New().Interface()
		if err := wirejson.UnmarshalLenient(text, back); err != nil {
			t.Fatalf("%s cannot be read: %v", text, err)
		}
	})
}
