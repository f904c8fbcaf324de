package api

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// TestStepsInBinaryForm compares what is written of operations with what boarddv1 makes
// of them.
func TestStepsInBinaryForm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.UTC).UnixMicro()
	for name, step := range map[string]board.Step{
		"nothing":           {},
		"all":               {Index: 255, Name: []byte("pack"), Input: []byte(`{"a":1}`), Priority: 19, Status: job.OpError, Result: []byte(`"bad"`), StartedAt: now, ExecutedAt: now + 1, EndedAt: now + 2e6},
		"first of all":      {Index: 1, Priority: job.MinOperationPriority, Status: job.OpQueued},
		"no text":           {Name: []byte("a\xffb")},
		"long":              {Name: make([]byte, 300), Input: make([]byte, job.MaxOperationInput)},
		"before 1970":       {StartedAt: -1},
		"beyond all clocks": {EndedAt: math.MaxInt64},
	} {
		at := func(us int64) (t time.Time) {
			if us != 0 {
				t = time.UnixMicro(us)
			}
			return t
		}
		want := &boarddv1.Job{Operations: toOperations([]job.Operation{{
			Index: step.Index, Name: string(step.Name), Input: step.Input, Priority: step.Priority, Status: step.Status, Result: step.Result,
			StartedAt: at(step.StartedAt), ExecutedAt: at(step.ExecutedAt), EndedAt: at(step.EndedAt),
		}})}
		written, err := proto.Marshal(want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var w protowriter
		w.step(&step)
		var got boarddv1.Job
		if err := proto.Unmarshal(w.b, &got); err != nil || !proto.Equal(&got, want) {
			t.Errorf("%s: got %v (%v), want %v", name, &got, err, want)
		}
		if string(w.b) != string(written) {
			t.Errorf("%s: got %x, want %x", name, w.b, written)
		}
	}
}

// TestJobsInBinaryForm compares what is written of jobs with what boarddv1 makes of
// them: of empty ones, of ones with each field, and of all.
func TestJobsInBinaryForm(t *testing.T) {
	t.Parallel()
	all := job.Job{}
	jobs := []*job.Job{{}}
	for i := range reflect.TypeFor[job.Job]().NumField() {
		one := job.Job{}
		for _, j := range []*job.Job{&one, &all} {
			fillField(t, reflect.ValueOf(j).Elem().Field(i))
		}
		jobs = append(jobs, &one)
	}
	both := all
	both.RawDetails = nil
	jobs = append(jobs, &all, &both,
		&job.Job{Details: []byte("{}"), Labels: []job.Label{{Key: "a", Value: ""}}},
		&job.Job{Details: []byte("{bad"), Labels: []job.Label{{Key: "bad\xff", Value: "\xfe"}}},
		&job.Job{Details: []byte{}, Labels: []job.Label{{Key: "long", Value: strings.Repeat("x", 20_000)}}},
		&job.Job{Priority: job.VeryLow, Sequence: math.MaxUint64, OperationPriority: -20, CreatedAt: time.Unix(1<<40, 0), NotBefore: time.Unix(-5, 7)},
	)
	form := newStraight("application/proto", len(jobs))
	var results []*boarddv1.JobResult
	for _, j := range jobs {
		results = append(results, &boarddv1.JobResult{})
		form.jobResult(results[len(results)-1], j)
	}
	written, err := codec{"proto"}.Marshal(&boarddv1.PostJobsResponse{Results: results})
	var got boarddv1.PostJobsResponse
	if err == nil {
		err = proto.Unmarshal(written, &got)
	}
	if err != nil || len(got.GetResults()) != len(jobs) {
		t.Fatalf("%d jobs of %d, %v", len(got.GetResults()), len(jobs), err)
	}
	for i, j := range jobs {
		if want := toJob(j); !proto.Equal(got.GetResults()[i].GetJob(), want) {
			t.Errorf("job %d: got %v, want %v", i, got.GetResults()[i].GetJob(), want)
		}
	}
}

// fillField gives a field of a job something that is not zero.
func fillField(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)))
		return
	case time.Duration:
		v.SetInt(int64(90*time.Second + 5))
		return
	case []byte:
		v.SetBytes([]byte(`{"a":"b"}`))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillField(t, field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillField(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillField(t, v.Index(i))
		}
		if v.Type() == reflect.TypeFor[[]job.Label]() {
			v.Index(1).Field(0).SetString("another")
		}
	case reflect.Array:
		for i := range v.Len() {
			fillField(t, v.Index(i))
		}
	case reflect.String:
		v.SetString("größer")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("a field of type %s", v.Type())
	}
}
