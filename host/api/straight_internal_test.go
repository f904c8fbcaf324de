package api

import (
	"math"
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
		var got boarddv1.Job
		if err := proto.Unmarshal(appendStepField(nil, &step), &got); err != nil || !proto.Equal(&got, want) {
			t.Errorf("%s: got %v (%v), want %v", name, &got, err, want)
		}
		if again := appendStepField(nil, &step); string(again) != string(written) {
			t.Errorf("%s: got %x, want %x", name, again, written)
		}
	}
}

// TestJobsInBinaryForm compares what is written of jobs with what boarddv1 makes of
// them.
func TestJobsInBinaryForm(t *testing.T) {
	t.Parallel()
	var jobs []*job.Job
	for _, labels := range [][]job.Label{
		nil,
		{{Key: "a", Value: ""}},
		{{Key: "gpu", Value: "a100"}, {Key: "zone", Value: "größer"}},
		{{Key: "bad\xff", Value: "\xfe"}},
		{{Key: "long", Value: strings.Repeat("x", 300)}},
		nil,
	} {
		jobs = append(jobs, &job.Job{ID: job.ID{1}, Name: "n", Labels: labels, CreatedAt: time.Now()})
	}
	for _, binary := range []bool{false, true} {
		s := straight{binary: binary}
		form := s.jobs(len(jobs))
		for i, j := range jobs {
			written, err := codec{"proto"}.Marshal(form(j))
			var got boarddv1.Job
			if err == nil {
				err = proto.Unmarshal(written, &got)
			}
			if want := toJob(j); err != nil || !proto.Equal(&got, want) {
				t.Errorf("job %d: got %v (%v), want %v", i, &got, err, want)
			}
		}
	}
}
