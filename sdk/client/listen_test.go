package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// heard runs a worker, whose lease is so long that only its stream can tell it
// anything, on one job until its handler's context ends, and returns why it did
// and what the streams asked for. say is told when the handler has begun.
func heard(t *testing.T, say func(f *fakeBoard)) (watches []string, why error) {
	t.Helper()
	fake := newFake()
	fake.lease, fake.events = time.Hour, make(chan *boarddv1.Event)
	fake.over = make(chan struct{})
	server := fake.serve()
	defer server.Close()
	defer close(fake.over) // a server may not notice that its client has gone
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	post(t, board, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var cause error
	w := client.Worker{Board: board, Owner: "me", MaxJobs: 1, Handler: func(ctx context.Context, _ *client.Claim) error {
		say(fake)
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}}
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return fake.watches, cause
}

// told is an event about the board's only job.
func (f *fakeBoard) told(of boarddv1.EventType_Enum, cancel bool) *boarddv1.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &boarddv1.Event{Type: of, Job: &boarddv1.Job{Uuid: f.jobs[0].Uuid}, Cursor: "1", CancelRequested: cancel}
}

// settled waits for the extension that the beginning of a stream brings about, so
// that what comes next is heard by its event alone.
func (f *fakeBoard) settled() {
	f.events <- &boarddv1.Event{Type: boarddv1.EventType_HEARTBEAT, Cursor: "17"}
	for f.extended() == 0 {
		time.Sleep(time.Millisecond)
	}
}

// requestCancel has each extension say that the job is to be canceled.
func requestCancel(f *fakeBoard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[0].Labels = map[string]string{"cancel": "yes"}
}

func TestWorkerHearsAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say     func(f *fakeBoard)
		want    error
		watches []string
	}{
		"to be canceled": {func(f *fakeBoard) {
			f.settled()
			requestCancel(f)
			f.events <- f.told(boarddv1.EventType_OPERATION, true)
		}, client.ErrCancelRequested, []string{"me from "}},
		"taken away": {func(f *fakeBoard) {
			f.settled()
			f.steal("a")
			f.events <- f.told(boarddv1.EventType_ABANDONED, false)
		}, job.LeaseLost, []string{"me from "}},
		"when the stream begins": {func(f *fakeBoard) {
			requestCancel(f)
			f.events <- &boarddv1.Event{Type: boarddv1.EventType_HEARTBEAT, Cursor: "1"}
		}, client.ErrCancelRequested, []string{"me from "}},
		"after a cut": {func(f *fakeBoard) {
			f.settled()
			f.events <- nil
			requestCancel(f)
			for f.extended() == 1 { // a connection that is being given up may take one
				select {
				case f.events <- f.told(boarddv1.EventType_OPERATION, true):
				case <-time.After(10 * time.Millisecond):
				}
			}
		}, client.ErrCancelRequested, []string{"me from ", "me from 17"}},
		"forgotten": {func(f *fakeBoard) {
			f.settled()
			requestCancel(f)
			f.events <- &boarddv1.Event{Type: boarddv1.EventType_RESYNC, Cursor: "2000"}
		}, client.ErrCancelRequested, []string{"me from "}},
		"the first extension fails": {func(f *fakeBoard) {
			requestCancel(f)
			failing := 3
			f.refuseWith(func(op string) error {
				if op == "extend" && failing > 0 {
					failing--
					return connect.NewError(connect.CodeUnavailable, errors.New("no"))
				}
				return nil
			})
			f.events <- f.told(boarddv1.EventType_OPERATION, true)
		}, client.ErrCancelRequested, []string{"me from "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watches, cause := heard(t, test.say)
			if !errors.Is(cause, test.want) {
				t.Errorf("the handler was ended by %v, want %v", cause, test.want)
			}
			if diff := cmp.Diff(test.watches, watches); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is no news of its claims costs a worker no call; it asks once when its
// stream begins.
func TestWorkerIgnoresItsOwn(t *testing.T) {
	t.Parallel()
	fake := newFake()
	fake.lease, fake.events = time.Hour, make(chan *boarddv1.Event)
	fake.over = make(chan struct{})
	server := fake.serve()
	defer server.Close()
	defer close(fake.over) // a server may not notice that its client has gone
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	post(t, board, "a")
	w := client.Worker{Board: board, MaxJobs: 1, Handler: func(context.Context, *client.Claim) error {
		for _, kind := range []boarddv1.EventType_Enum{boarddv1.EventType_CLAIMED, boarddv1.EventType_EXTENDED, boarddv1.EventType_OPERATION} {
			fake.events <- fake.told(kind, false)
		}
		other := fake.told(boarddv1.EventType_OPERATION, true)
		other.Job.Uuid = "b"
		fake.events <- other
		fake.events <- fake.told(boarddv1.EventType_CLAIMED, false) // the one before was taken
		return nil
	}}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := fake.count("extend"); n > 1 || !slices.Equal(fake.endings(), []string{"a consumed"}) {
		t.Errorf("%d extensions, endings %q", n, fake.endings())
	}
}
