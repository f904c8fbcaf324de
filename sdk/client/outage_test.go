package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/client"
)

// logged has a logger that keeps its lines, without their time and the jobs' uuids.
func logged() (logger *slog.Logger, lines func() []string) {
	var out bytes.Buffer // a handler of slog's writes one line at a time
	h := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "job":
			return slog.Attr{}
		case "stack":
			a.Value = slog.StringValue(fmt.Sprint(strings.Contains(a.Value.String(), "outage_test.go")))
		}
		return a
	}})
	return slog.New(h), func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
}

// A worker says once that its server is away, and once that it is back.
func TestWorkerSaysThatItsServerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.refuse = func(string) error { return errUnavailable }
		logger, lines := logged()
		w := client.Worker{Board: fake.board(t, client.Config{}), MaxJobs: 2, Handler: fails(nil), Logger: logger}
		done := make(chan error)
		go func() { done <- w.Run(t.Context()) }()
		time.Sleep(10 * time.Minute)
		fake.refuseWith(nil)
		post(t, w.Board, "a")
		time.Sleep(time.Minute)
		fake.refuseWith(func(string) error { return errUnavailable })
		time.Sleep(time.Second) // for which it is not worth a word
		fake.refuseWith(nil)
		post(t, w.Board, "b")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := lines()
		if len(got) != 2 || !strings.Contains(got[0], "cannot be reached") || !strings.Contains(got[1], "answers again") {
			t.Errorf("logged:\n%s\nwant one line for that it is away and one for that it is back", strings.Join(got, "\n"))
		}
	})
}

// A worker says once that its server refuses for now.
func TestWorkerSaysThatItIsRefusedForNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		logger, lines := logged()
		w := client.Worker{Board: fake.board(t, client.Config{}), MaxJobs: 1, Handler: fails(nil), Logger: logger}
		fake.refuse = func(op string) error {
			if op == "claim" || op == "work" {
				return connect.NewError(connect.CodeResourceExhausted, errors.New("too many"))
			}
			return nil
		}
		done := make(chan error)
		go func() { done <- w.Run(t.Context()) }()
		time.Sleep(10 * time.Minute)
		fake.refuseWith(nil)
		post(t, w.Board, "a")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "refuses for now") {
			t.Errorf("logged:\n%s\nwant one line", strings.Join(got, "\n"))
		}
	})
}

// Without a Report, a line is logged for each job that failed, and none for any other.
func TestWorkerLogsWhatFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler func(context.Context, *client.Claim) error
		report  func(client.Report)
		want    string
	}{
		"done":        {handler: fails(nil)},
		"again":       {handler: fails(client.ErrRetry)},
		"canceled":    {handler: fails(client.ErrCancelRequested)},
		"failed":      {handler: fails(errors.New("oops")), want: `level=WARN msg="a job failed" name=a attempt=1 ending=ABANDONED error=oops`},
		"trashed":     {handler: fails(client.ErrTrash), want: `level=WARN msg="a job failed" name=a attempt=1 ending=TRASHED error=trash`},
		"is reported": {handler: fails(errors.New("oops")), report: func(client.Report) {}},
		"panicked": {
			handler: func(context.Context, *client.Claim) error { panic("no") }, report: func(client.Report) {},
			want: `level=ERROR msg="the handler of a job panicked" name=a attempt=1 ending=ABANDONED error="the handler panicked: no" stack=true`,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := newFake()
			board := fake.board(t, client.Config{})
			post(t, board, "a")
			logger, lines := logged()
			w := client.Worker{Board: board, Handler: test.handler, MaxJobs: 1, Logger: logger, Report: test.report}
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, lines()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

// A worker that was given no logger writes to slog's own.
func TestWorkerLogsByDefault(t *testing.T) { //nolint:paralleltest // slog's own logger is the whole process's
	logger, lines := logged()
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	fake := newFake()
	board := fake.board(t, client.Config{})
	post(t, board, "a")
	w := client.Worker{Board: board, Handler: fails(client.ErrTrash), MaxJobs: 1}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`level=WARN msg="a job failed" name=a attempt=1 ending=TRASHED error=trash`}, lines()); diff != "" {
		t.Error(diff)
	}
}
