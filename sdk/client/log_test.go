package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// desk is a server that keeps one job's log and operations, and fails as a test
// says.
type desk struct {
	boarddv1connect.UnimplementedBoardServiceHandler

	mu       sync.Mutex
	entries  []string
	calls    int
	last     string // request id
	cancel   bool
	gate     chan struct{} // if not nil, appends wait until it is closed
	fail     func(call int) error
	statuses []string
}

func (d *desk) AppendLog(_ context.Context, r *connect.Request[boarddv1.AppendLogRequest]) (*connect.Response[boarddv1.AppendLogResponse], error) {
	if d.gate != nil {
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if r.Msg.RequestId != d.last {
		d.last = r.Msg.RequestId
		for _, e := range r.Msg.Entries {
			d.entries = append(d.entries, e.Type+" "+e.Message)
		}
	}
	if d.fail != nil {
		if err := d.fail(d.calls); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&boarddv1.AppendLogResponse{LastSerial: int64(len(d.entries)), CancelRequested: d.cancel}), nil
}

func (d *desk) StartOperation(_ context.Context, r *connect.Request[boarddv1.StartOperationRequest]) (*connect.Response[boarddv1.StartOperationResponse], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.statuses = append(d.statuses, fmt.Sprint(r.Msg.Index, " ", r.Msg.Status))
	return connect.NewResponse(&boarddv1.StartOperationResponse{Status: r.Msg.Status, CancelRequested: d.cancel}), nil
}

func (d *desk) FinishOperation(_ context.Context, r *connect.Request[boarddv1.FinishOperationRequest]) (*connect.Response[boarddv1.FinishOperationResponse], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.statuses = append(d.statuses, strings.TrimSpace(fmt.Sprint(r.Msg.Index, " ", r.Msg.Status, " ", string(r.Msg.Result))))
	return connect.NewResponse(&boarddv1.FinishOperationResponse{Status: r.Msg.Status}), nil
}

// GetLog gives three entries on each connection, and breaks off before the tenth.
func (d *desk) GetLog(_ context.Context, r *connect.Request[boarddv1.GetLogRequest], s *connect.ServerStream[boarddv1.LogEntry]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	for serial := r.Msg.NewerThan + 1; serial <= 10; serial++ {
		if serial > r.Msg.NewerThan+3 {
			return connect.NewError(connect.CodeUnavailable, errors.New("going down"))
		}
		if err := s.Send(&boarddv1.LogEntry{Serial: serial}); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) board(t *testing.T) *client.Board {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(boarddv1connect.NewBoardServiceHandler(d))
	c, err := client.New(client.Config{HTTPClient: handled{mux}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Board("b")
}

// handled calls a handler without a network.
type handled struct{ handler http.Handler }

func (h handled) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

var held = &client.Claim{Uuid: "11111111-1111-4111-8111-111111111111", Token: "t"}

func TestLogWriter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", client.MaxLogLine) // twice as many bytes
	for name, tt := range map[string]struct {
		write []string
		want  []string
	}{
		"nothing":      {nil, nil},
		"lines":        {[]string{"one\ntw", "o\n", "\nthree"}, []string{"out one", "out two", "out ", "out three"}},
		"windows":      {[]string{"one\r\n"}, []string{"out one"}},
		"no text":      {[]string{"a\xffb\x00c\n"}, []string{"out a\uFFFDb\uFFFDc"}},
		"longest line": {[]string{strings.Repeat("x", client.MaxLogLine) + "\n"}, []string{"out " + strings.Repeat("x", client.MaxLogLine)}},
		"too long":     {[]string{long + "\nnext\n"}, []string{"out " + strings.Repeat("é", (client.MaxLogLine-len(" [cut]"))/2) + " [cut]", "out next"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{}
				w := d.board(t).LogWriter(t.Context(), held, 0, nil)
				out := w.Lines("out")
				for _, part := range tt.write {
					if n, err := out.Write([]byte(part)); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, d.entries); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// What comes while a call is under way goes with the next one; beyond a bound it
// is left out, and that is said.
func TestLogWriterGathers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})} // the server is slow
		w := d.board(t).LogWriter(t.Context(), held, 0, nil)
		out := w.Lines("out")
		_, _ = out.Write([]byte("first\n"))
		synctest.Wait()
		line := strings.Repeat("x", 1023)
		for range client.MaxLogWaiting/1024 + 50 {
			_, _ = out.Write([]byte(line + "\n"))
		}
		close(d.gate)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		lines, left := 0, 0
		for _, e := range d.entries {
			if e == "out "+line {
				lines++
			}
			if n, _ := fmt.Sscanf(e, "left out %d lines were left out", &left); n == 1 && e != d.entries[len(d.entries)-1] {
				t.Error("the mark is not where the lines are missing")
			}
		}
		if lines+left != client.MaxLogWaiting/1024+50 || left == 0 || lines < client.MaxLogWaiting/1024-1 || d.calls > 8 {
			t.Errorf("%d lines were sent and %d left out, in %d calls", lines, left, d.calls)
		}
	})
}

// An answer that was lost is no line twice; a claim that has ended ends the log.
func TestLogWriterFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{fail: func(call int) error {
			if call == 1 {
				return connect.NewError(connect.CodeUnavailable, errors.New("the answer is lost"))
			}
			return nil
		}}
		w := d.board(t).LogWriter(t.Context(), held, 0, nil)
		_, _ = w.Lines("out").Write([]byte("one\n"))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"out one"}, d.entries); diff != "" {
			t.Error(diff)
		}
		d = &desk{fail: func(int) error {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("the claim has ended"))
		}}
		w = d.board(t).LogWriter(t.Context(), held, 0, nil)
		out := w.Lines("out")
		_, _ = out.Write([]byte("one\n"))
		synctest.Wait()
		_, _ = out.Write([]byte("two\n"))
		if err := w.Close(); job.KindOf(err) != job.Precondition {
			t.Error(err)
		}
		if d.calls != 1 {
			t.Errorf("%d calls, want 1", d.calls)
		}
	})
}

// Lines that could not be sent for as long as a call is repeated are counted, each of them, and
// a log that lacks its end is told of.
func TestLogWriterLosesLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		d := &desk{fail: func(int) error {
			if away.Load() {
				return connect.NewError(connect.CodeUnavailable, errors.New("away"))
			}
			return nil
		}}
		w := d.board(t).LogWriter(t.Context(), held, 0, nil)
		out := w.Lines("out")
		lose := func() {
			away.Store(true)
			_, _ = out.Write(bytes.Repeat([]byte("x\n"), 500))
			time.Sleep(5 * time.Minute)
			away.Store(false)
		}
		lose()
		_, _ = out.Write([]byte("y\n"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(d.entries); n < 2 || !strings.HasPrefix(d.entries[n-2], "left out 500 lines") || d.entries[n-1] != "out y" {
			t.Errorf("the log ends with %q", d.entries[max(0, n-2):])
		}
		// What stood for lines that were left out is left out itself.
		lose()
		away.Store(true)
		_, _ = out.Write([]byte("z\n"))
		time.Sleep(5 * time.Minute)
		away.Store(false)
		_, _ = out.Write([]byte("y\n"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(d.entries); n < 2 || !strings.HasPrefix(d.entries[n-2], "left out 501 lines") {
			t.Errorf("the log ends with %q", d.entries[max(0, n-2):])
		}
		away.Store(true)
		_, _ = out.Write([]byte("last\n"))
		if err := w.Close(); job.KindOf(err) != job.Unavailable {
			t.Errorf("%v, want that its end was lost", err)
		}
	})
}

func TestLogWriterHearsOfCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{cancel: true}
		heard := 0
		w := d.board(t).LogWriter(t.Context(), held, 0, func() { heard++ })
		out := w.Lines("out")
		for range 3 {
			_, _ = out.Write([]byte("one\n"))
			synctest.Wait()
		}
		if err := w.Close(); err != nil || heard != 1 {
			t.Errorf("%v, heard %d times", err, heard)
		}
	})
}

// A log that breaks off goes on where it was.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, follow := range []bool{false, true} {
			d := &desk{}
			last := int64(0)
			for e, err := range d.board(t).Log(t.Context(), held.Uuid, 0, follow) {
				if err != nil || e.GetSerial() != last+1 {
					t.Fatal(e, err)
				}
				last = e.GetSerial()
			}
			if last != 10 || d.calls != 4 {
				t.Errorf("follow %v: up to %d in %d connections", follow, last, d.calls)
			}
		}
	})
}

func TestOperate(t *testing.T) {
	t.Parallel()
	steps := func(statuses ...boarddv1.OperationStatus_Enum) *client.Claim {
		c := &client.Claim{Uuid: held.Uuid, Token: "t", Job: &client.Job{}}
		for i, s := range statuses {
			c.Job.Operations = append(c.Job.Operations, &client.Operation{Index: int32(i), Status: s})
		}
		return c
	}
	const q, s = boarddv1.OperationStatus_QUEUED, boarddv1.OperationStatus_SUCCESS
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		claim  *client.Claim
		cancel bool
		fail   map[int32]error
		want   []string
		err    error
	}{
		"all":      {claim: steps(q, q), want: []string{"0 RUNNING", `0 SUCCESS "r0"`, "1 RUNNING", `1 SUCCESS "r1"`}},
		"the rest": {claim: steps(s, s, q), want: []string{"2 RUNNING", `2 SUCCESS "r2"`}},
		"done":     {claim: steps(s)},
		"none":     {claim: steps()},
		"broken":   {claim: steps(q, q, q), fail: map[int32]error{1: broken}, want: []string{"0 RUNNING", `0 SUCCESS "r0"`, "1 RUNNING"}, err: broken},
		"trash":    {claim: steps(q, q), fail: map[int32]error{0: client.ErrTrash}, want: []string{"0 RUNNING", `0 ERROR "r0"`}, err: client.ErrTrash},
		"canceled": {claim: steps(q, q), cancel: true, want: []string{"0 RUNNING"}, err: client.ErrCancelRequested},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &desk{cancel: tt.cancel}
			err := d.board(t).Operate(t.Context(), tt.claim, func(_ context.Context, op *client.Operation) ([]byte, error) {
				return fmt.Appendf(nil, `"r%d"`, op.GetIndex()), tt.fail[op.GetIndex()]
			})
			if !errors.Is(err, tt.err) || err == nil != (tt.err == nil) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, d.statuses); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A handler that is told to stop in the middle has that for its error, and what it
// finished is reported all the same.
func TestOperateStops(t *testing.T) {
	t.Parallel()
	d := &desk{}
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &client.Claim{Job: &client.Job{Operations: []*client.Operation{{Index: 0}, {Index: 1}}}}
	err := d.board(t).Operate(ctx, c, func(context.Context, *client.Operation) ([]byte, error) {
		cancel(client.ErrStopping)
		return nil, nil
	})
	if !errors.Is(err, client.ErrStopping) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"0 RUNNING", "0 SUCCESS"}, d.statuses); diff != "" {
		t.Error(diff)
	}
}

// A handler that is told to stop in its last operation, and finishes it, has done its job.
func TestOperateIsDone(t *testing.T) {
	t.Parallel()
	d := &desk{}
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &client.Claim{Job: &client.Job{Operations: []*client.Operation{{Index: 0, Status: boarddv1.OperationStatus_SUCCESS}, {Index: 1}}}}
	err := d.board(t).Operate(ctx, c, func(context.Context, *client.Operation) ([]byte, error) {
		cancel(client.ErrTimeout)
		return nil, nil
	})
	if diff := cmp.Diff([]string{"1 RUNNING", "1 SUCCESS"}, d.statuses); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}
