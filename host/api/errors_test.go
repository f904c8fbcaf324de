package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// kinds are all that the job package has.
func kinds() []job.Kind {
	var all []job.Kind
	for k := range job.Kind(255) {
		if k.String() != "INVALID_KIND" {
			all = append(all, k)
		}
	}
	return all
}

// TestNumbersAgree guards the conversions that only change the type.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if _, ok := boarddv1.Code_Enum_value[k.String()]; !ok {
			t.Errorf("the API has no code for %s", k)
		}
		if k <= job.OutcomeUnknown && boarddv1.Code_Enum(k).String() != k.String() {
			t.Errorf("%s is %s in the API", k, boarddv1.Code_Enum(k))
		}
	}
	for n, name := range boarddv1.State_Enum_name {
		if job.State(n).String() != name {
			t.Errorf("state %d is %s and %s", n, name, job.State(n))
		}
	}
	for n, name := range boarddv1.Outcome_Enum_name {
		if job.Outcome(n).String() != name {
			t.Errorf("outcome %d is %s and %s", n, name, job.Outcome(n))
		}
	}
	for n, name := range boarddv1.EventType_Enum_name {
		if job.EventType(n).String() != name {
			t.Errorf("event %d is %s and %s", n, name, job.EventType(n))
		}
	}
	for p := job.VeryHigh; p <= job.VeryLow; p++ {
		if got := toJob(&job.Job{Priority: p}).GetPriority().String(); got != p.String() {
			t.Errorf("priority %s is %s in the API", p, got)
		}
		if back, err := fromPriority(toJob(&job.Job{Priority: p}).GetPriority()); err != nil || back != p {
			t.Errorf("priority %s comes back as %s, %v", p, back, err)
		}
	}
	for _, wrong := range []boarddv1.Priority_Enum{-1, 6, 99} {
		if _, err := fromPriority(wrong); !errors.Is(err, job.Invalid) {
			t.Errorf("priority %d: %v", wrong, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	past, cancel := context.WithCancel(t.Context())
	cancel()
	secret := errors.New("dial tcp 10.1.2.3:6379: connection refused")
	for _, c := range []struct {
		err     error
		code    connect.Code
		message string
	}{
		{&job.Error{Kind: job.Unavailable, Err: secret}, connect.CodeUnavailable, "the board's store cannot be reached now; nothing was changed"},
		{&job.Error{Kind: job.Unavailable, Message: "wait a bit", Err: secret}, connect.CodeUnavailable, "wait a bit"},
		{&job.Error{Op: "post", Kind: job.Aborted, Err: &job.Error{Kind: job.Aborted, Message: "inner words", Err: secret}}, connect.CodeAborted, "inner words"},
		{fmt.Errorf("wrapped: %w", job.Errorf(job.AlreadyExists, "there is one")), connect.CodeAlreadyExists, "there is one"},
		{&job.Error{Kind: job.Internal, Message: "secret of the house", Err: secret}, connect.CodeInternal, "a defect of the server"},
		{&job.Error{Kind: job.Corrupt, Message: "secret of the house", Err: secret}, connect.CodeInternal, "a record in the store cannot be read"},
		{secret, connect.CodeInternal, "a defect of the server"},
		{context.Canceled, connect.CodeCanceled, "the call was ended before it was done"},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, "the call was ended before it was done"},
		{past.Err(), connect.CodeCanceled, "the call was ended before it was done"},
		{job.Errorf(job.QuotaExceeded, "too many"), connect.CodeResourceExhausted, "too many"},
		{job.Errorf(job.Unsupported, ""), connect.CodeUnimplemented, "the store behind this board cannot do this"},
		{job.Errorf(job.OutcomeUnknown, ""), connect.CodeUnavailable, "the store did not tell"},
		{job.Errorf(job.Invalid, "bad \xff text"), connect.CodeInvalidArgument, "bad \uFFFD text"},
	} {
		got := callError(t.Context(), c.err)
		if got.Code() != c.code || !strings.HasPrefix(got.Message(), c.message) || strings.Contains(got.Message(), "10.1.2.3") {
			t.Errorf("%v: %s %s", c.err, got.Code(), got.Message())
		}
		if (got.Meta().Get("Retry-After") != "") != (c.code == connect.CodeResourceExhausted) {
			t.Errorf("%v: headers %v", c.err, got.Meta())
		}
		detail, err := got.Details()[0].Value()
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := detail.(*boarddv1.Error); !ok || e.GetRetryable() != job.KindOf(c.err).Retryable() || e.GetCode() == boarddv1.Code_OK {
			t.Errorf("%v: detail %v", c.err, detail)
		}
	}
}

func TestItemCodesAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if k == job.NoKind {
			continue
		}
		e := itemError(&job.Error{Kind: k})
		if e.GetCode() == boarddv1.Code_OK || e.GetCode() > boarddv1.Code_OUTCOME_UNKNOWN && k != job.Corrupt || e.GetMessage() == "" {
			t.Errorf("%s is %v", k, e)
		}
	}
	if itemError(nil) != nil {
		t.Error("nothing wrong is an error")
	}
}

// TestStrangersRecords reads what another program may have left in a store: one
// such job must not make a whole listing unreadable.
func TestStrangersRecords(t *testing.T) {
	t.Parallel()
	answer := &boarddv1.ListJobsResponse{Jobs: []*boarddv1.Job{toJob(&job.Job{
		Name: "\xff", Owner: "\xff", LastReason: "\xff", Reasons: []string{"\xff"}, Details: []byte(`{"a":NaN}`), Sequence: 1<<64 - 1,
		Labels: []job.Label{{Key: "\xff", Value: "\xff"}}, Book: job.Book{UUID: "\xff"},
		NotBefore: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), CreatedAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
	})}}
	for _, c := range []codec{{"json"}, {"proto"}} {
		if _, err := c.Marshal(answer); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if raw := answer.GetJobs()[0].GetDetailsRaw(); answer.GetJobs()[0].Details != nil || string(raw.GetData()) != `{"a":NaN}` {
		t.Errorf("the details became %v", answer)
	}
	entity := toEntity(board.Entity{Kind: "\xff", Metadata: []byte("nonsense")})
	if _, err := (codec{"json"}).Marshal(entity); err != nil {
		t.Error(err)
	}
}

func TestFieldOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"name: want a name": "name", "jobs[3].details: no": "jobs[3].details", "no field here": "", "the word: is none": "", "": "",
	} {
		if got := fieldOf(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// FuzzCodec reads any bytes as a request: they are never refused, and what is
// wrong is found again.
func FuzzCodec(f *testing.F) {
	f.Add(true, []byte{})
	f.Add(false, []byte(`{"board":"a"}`))
	f.Add(false, []byte(`{"bord":"a"}`))
	m := &boarddv1.CountJobsRequest{}
	setMistake(m, "a", "b")
	data, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, data)
	f.Fuzz(func(t *testing.T, binary bool, data []byte) {
		c := codec{"json"}
		if binary {
			c = codec{"proto"}
		}
		m := &boarddv1.PostJobsRequest{}
		if err := c.Unmarshal(data, m); err != nil {
			t.Fatalf("refused: %v", err)
		}
		if err := mistake(m); err != nil {
			if !errors.Is(err, job.Invalid) || err.Error() == "" && !binary {
				t.Fatalf("the mistake is %v", err)
			}
			return
		}
		if _, err := c.Marshal(m); err != nil && binary == c.IsBinary() && binary {
			t.Fatalf("read, but not written: %v", err)
		}
	})
}
