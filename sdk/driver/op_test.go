package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestFailedAndErr(t *testing.T) {
	t.Parallel()
	id := job.ID{15: 7}
	for _, tc := range []struct {
		name string
		err  error
		want *job.Error
	}{
		{"the owner is kept", &job.Error{Kind: job.NotOwner, Message: "held", Owner: "w"}, &job.Error{Job: id, Kind: job.NotOwner, Message: "held", Owner: "w"}},
		{"the cause becomes text", &job.Error{Kind: job.Unavailable, Err: io.EOF}, &job.Error{Job: id, Kind: job.Unavailable, Message: "UNAVAILABLE: EOF"}},
		{"only the outermost owner", fmt.Errorf("x: %w", &job.Error{Kind: job.NotOwner, Message: "held", Owner: "w"}), &job.Error{Job: id, Kind: job.NotOwner, Message: "x: held"}},
		{"a context", context.Canceled, &job.Error{Job: id, Kind: job.Interrupted, Message: "context canceled"}},
		{"a stranger", io.EOF, &job.Error{Job: id, Kind: job.Internal, Message: "EOF"}},
	} {
		result := driver.Failed(tc.err)
		err := result.Err(&driver.Op{Job: id})
		got, ok := errors.AsType[*job.Error](err)
		if !ok {
			t.Errorf("%s: %v is no job.Error", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if err := (&driver.Result{}).Err(&driver.Op{Job: id}); err != nil {
		t.Errorf("an op that was done: %v", err)
	}
}

func TestEach(t *testing.T) {
	t.Parallel()
	ops := []driver.Op{{Job: job.ID{1}}, {Job: job.ID{2}}, {Job: job.ID{3}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done []job.ID
	results := driver.Each(ctx, ops, func(_ context.Context, op *driver.Op) driver.Result {
		done = append(done, op.Job)
		if len(done) == 2 {
			cancel() // the one under way is finished, the next is not begun
		}
		return driver.Result{Repeated: len(done) == 2}
	})
	if diff := cmp.Diff([]job.ID{{1}, {2}}, done); diff != "" {
		t.Errorf("done: %s", diff)
	}
	if len(results) != len(ops) {
		t.Fatalf("%d results of %d ops", len(results), len(ops))
	}
	if results[0].Kind != job.NoKind || results[0].Repeated || !results[1].Repeated || results[2].Kind != job.Interrupted {
		t.Errorf("got %+v", results)
	}
	if got := driver.Each(t.Context(), nil, nil); len(got) != 0 {
		t.Errorf("no ops: %v", got)
	}
}
