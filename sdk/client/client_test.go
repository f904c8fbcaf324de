package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
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

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]client.Config{
		"address without scheme": {Addr: "127.0.0.1:7422"},
		"address without host":   {Addr: "http://"},
		"other scheme":           {Addr: "redis://127.0.0.1"},
		"no token file":          {TokenFile: empty + "-not"},
		"empty token file":       {TokenFile: empty},
		"no CA file":             {CAFile: empty + "-not"},
		"CA without certificate": {CAFile: empty},
		"key without cert":       {KeyFile: empty},
	} {
		if _, err := client.New(config); !errors.Is(err, job.Invalid) {
			t.Errorf("%s: %v, want INVALID", name, err)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	detailed := func(code connect.Code, e *boarddv1.Error) error {
		err := connect.NewError(code, errors.New("plain text"))
		detail, failed := connect.NewErrorDetail(e)
		if failed != nil {
			t.Fatal(failed)
		}
		err.AddDetail(detail)
		return err
	}
	for name, test := range map[string]struct {
		answer  error
		kind    job.Kind
		message string
	}{
		"detail": {
			detailed(connect.CodeInvalidArgument, &boarddv1.Error{Code: boarddv1.Code_INVALID, Message: "no such field", Field: "jobs[0].nam"}),
			job.Invalid, "count: jobs[0].nam: no such field",
		},
		"detail beats code": {
			detailed(connect.CodeFailedPrecondition, &boarddv1.Error{Code: boarddv1.Code_CORRUPT}), job.Corrupt, "count: plain text",
		},
		"code alone":     {connect.NewError(connect.CodePermissionDenied, errors.New("not you")), job.PermissionDenied, "count: not you"},
		"unimplemented":  {connect.NewError(connect.CodeUnimplemented, errors.New("no")), job.Unsupported, "count: no"},
		"not classified": {errors.New("oops"), job.Internal, "count: oops"},
	} {
		fake := newFake()
		fake.refuse = func(string) error { return test.answer }
		_, err := fake.board(t, client.Config{}).Count(t.Context())
		if job.KindOf(err) != test.kind || err.Error() != test.message {
			t.Errorf("%s: %v %q, want %v %q", name, job.KindOf(err), err, test.kind, test.message)
		}
		if got := fake.count("count"); got != 1 {
			t.Errorf("%s: %d calls, want 1", name, got)
		}
	}
}

// TestTextThatIsNone: what cannot be encoded is the caller's mistake, and no defect that is
// tried again.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Config{Addr: "http://127.0.0.1:1"}) // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _, err = c.Board("b").ListPage(t.Context(), client.ListOptions{Filter: "name = \xff"}, "")
	if !errors.Is(err, job.Invalid) || err.Error() != "list: the request cannot be sent: string field contains invalid UTF-8" {
		t.Errorf("got %v, want that the request cannot be sent", err)
	}
}

// What was sent before the answer was lost is what is sent again.
func TestRepeatsWithTheSameNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		failing := 3
		fake.refuse = func(string) error {
			if failing == 0 {
				return nil
			}
			failing--
			return connect.NewError(connect.CodeUnavailable, errors.New("not now"))
		}
		posting := &client.NewJob{Name: "a"}
		jobs, err := board.Post(t.Context(), posting)
		if err != nil {
			t.Fatal(err)
		}
		if posting.Uuid == "" || jobs[0].Uuid != posting.Uuid {
			t.Errorf("posting has uuid %q and the job %q, want the same", posting.Uuid, jobs[0].Uuid)
		}
		if fake.count("post") != 4 {
			t.Errorf("%d posts, want 4", fake.count("post"))
		}
		if _, err := board.Post(t.Context(), posting); err != nil {
			t.Fatal(err)
		}
		if n := len(slices.Collect(keys(board.List(t.Context(), client.ListOptions{})))); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
	})
}

func keys[K, V any](seq func(func(K, V) bool)) func(func(K) bool) {
	return func(yield func(K) bool) {
		seq(func(k K, _ V) bool { return yield(k) })
	}
}

// lossy loses the answers of the first calls after they were carried out.
type lossy struct {
	inner connect.HTTPClient
	lost  int
	err   error
}

func (l *lossy) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.inner.Do(r)
	if l.lost > 0 {
		l.lost--
		return nil, l.err
	}
	return answer, err
}

func TestClaimIsRepeatedWithItsRequestID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		post(t, fake.board(t, client.Config{}), "a", "b", "c")
		c, err := client.New(client.Config{HTTPClient: &lossy{inner: transportOf(fake), lost: 2, err: errors.New("connection reset")}})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := c.Board("default").Claim(t.Context(), client.ClaimOptions{Owner: "w"})
		if err != nil || len(claims) != 1 || claims[0].Job.Name != "a" {
			t.Fatalf("claims %v, error %v", claims, err)
		}
		if ids := slices.Compact(fake.requests); len(ids) != 1 || ids[0] == "" {
			t.Errorf("request ids %q, want one", ids)
		}
	})
}

func TestGivesUpRepeating(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   client.Config
		answer   error
		attempts func(n int) bool
		kind     job.Kind
	}{
		"never repeats":  {client.Config{RetryFor: -1}, errUnavailable, func(n int) bool { return n == 1 }, job.Unavailable},
		"for a while":    {client.Config{RetryFor: 5 * time.Second}, errUnavailable, func(n int) bool { return n > 3 && n < 30 }, job.Unavailable},
		"quota is final": {client.Config{}, connect.NewError(connect.CodeResourceExhausted, errors.New("full")), func(n int) bool { return n == 1 }, job.QuotaExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.refuse = func(string) error { return test.answer }
				_, err := fake.board(t, test.config).Count(t.Context())
				if job.KindOf(err) != test.kind {
					t.Errorf("%v, want %v", err, test.kind)
				}
				if n := fake.count("count"); !test.attempts(n) {
					t.Errorf("%d attempts", n)
				}
			})
		})
	}
}

var errUnavailable = connect.NewError(connect.CodeUnavailable, errors.New("not now"))

// A server that takes a call and never answers is left for another try.
func TestHungServerIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		hung := 1
		hang := hangs{inner: transportOf(fake), first: &hung}
		c, err := client.New(client.Config{HTTPClient: hang, CallTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Board("default").Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("took %v, want a little more than the timeout", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hung = 1
		if _, err := c.Board("default").Count(ctx); !errors.Is(err, job.Interrupted) {
			t.Errorf("%v, want INTERRUPTED", err)
		}
	})
}

type hangs struct {
	inner connect.HTTPClient
	first *int
}

func (h hangs) Do(r *http.Request) (*http.Response, error) {
	if *h.first > 0 {
		*h.first--
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.inner.Do(r)
}

// A change that was sent and never answered may have been made; one for which
// no connection came about was not.
func TestLostAnswersAreUnknown(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		call func(*client.Board) error
		err  error
		want job.Kind
	}{
		"change, cut":     {consumeOne, io.ErrUnexpectedEOF, job.OutcomeUnknown},
		"change, refused": {consumeOne, refused, job.Unavailable},
		"reading, cut":    {countOnce, io.ErrUnexpectedEOF, job.Unavailable},
	} {
		c, err := client.New(client.Config{HTTPClient: &lossy{inner: transportOf(newFake()), lost: 1, err: test.err}, RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		if err := test.call(c.Board("default")); job.KindOf(err) != test.want {
			t.Errorf("%s: %v (%v), want %v", name, job.KindOf(err), err, test.want)
		}
	}
}

func consumeOne(b *client.Board) error {
	return b.Consume(context.Background(), &client.Claim{Uuid: client.NewUUID(), Token: "t"})
}

func countOnce(b *client.Board) error {
	_, err := b.Count(context.Background())
	return err
}

func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	fake := newFake()
	fake.token = "Bearer old"
	board := fake.board(t, client.Config{TokenFile: file})
	if _, err := board.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("new")
	fake.token = "Bearer new"
	if _, err := board.Count(t.Context()); err != nil {
		t.Errorf("after the token changed: %v", err)
	}
	fake.token = "Bearer newer"
	if _, err := board.Count(t.Context()); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("%v, want UNAUTHENTICATED", err)
	}
}

// heldBack holds calls with one token until all that are expected are there.
type heldBack struct {
	next connect.HTTPClient
	with string
	here *sync.WaitGroup
}

func (h heldBack) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == h.with {
		h.here.Done()
		h.here.Wait()
	}
	return h.next.Do(r)
}

// All calls that were under way with the old token are made again with the new one, though
// only the first of them finds that the file has changed.
func TestTokenFileIsReadAgainForEachCall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := newFake()
	fake.token = "Bearer new"
	var here sync.WaitGroup
	c, err := client.New(client.Config{TokenFile: file, HTTPClient: heldBack{transportOf(fake), "Bearer old", &here}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := os.WriteFile(file, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	board := c.Board("default")
	count := func() error {
		_, err := board.Count(t.Context())
		return err
	}
	watch := func() error {
		for _, err := range board.Watch(t.Context(), "1") {
			return err
		}
		return nil
	}
	calls := []func() error{count, count, watch, watch}
	here.Add(len(calls))
	var over sync.WaitGroup
	for i, call := range calls {
		over.Go(func() {
			if err := call(); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	over.Wait()
	if n := fake.count("count"); n != 4 {
		t.Errorf("%d tries of the two counts, want 4", n)
	}
}

func TestFailuresKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	board := newFake().board(t, client.Config{})
	jobs, err := board.Post(t.Context(), &client.NewJob{Name: "a"}, &client.NewJob{}, &client.NewJob{Name: "c"})
	if !errors.Is(err, job.Invalid) {
		t.Errorf("%v, want INVALID", err)
	}
	if jobs[0].GetName() != "a" || jobs[1] != nil || jobs[2].GetName() != "c" {
		t.Errorf("jobs %v", jobs)
	}
	each := client.Each(err, 3)
	if each[0] != nil || each[1] == nil || each[2] != nil {
		t.Errorf("errors %v", each)
	}
	whole := errors.New("all of it")
	if diff := cmp.Diff([]error{whole, whole}, client.Each(whole, 2), cmp.Comparer(errors.Is)); diff != "" {
		t.Error(diff)
	}
	missing := client.NewUUID()
	_, err = board.Get(t.Context(), client.GetOptions{}, missing)
	if want := "get: job " + missing + ": no such job"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestListGoesThroughThePages(t *testing.T) {
	t.Parallel()
	fake := newFake()
	board := fake.board(t, client.Config{})
	post(t, board, "a", "b", "c", "d", "e")
	var names []string
	for j, err := range board.List(t.Context(), client.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, j.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, names); diff != "" {
		t.Error(diff)
	}
	for _, err := range board.List(t.Context(), client.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if n := fake.count("list"); n != 4 {
		t.Errorf("%d pages were asked for, want 4", n)
	}
}

func TestWatchGoesOnFromItsCursor(t *testing.T) {
	t.Parallel()
	fake := newFake()
	server := fake.serve()
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var names []string
	for event, err := range c.Board("default").Watch(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, event.GetJob().GetName())
		if len(names) == 7 {
			break
		}
	}
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("job-", i+11))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", "10", "13", "16"}, fake.watches); diff != "" {
		t.Error(diff)
	}
}

func TestWatchEndsWhenRefused(t *testing.T) {
	t.Parallel()
	fake := newFake()
	fake.refuse = func(string) error { return connect.NewError(connect.CodeNotFound, errors.New("no such board")) }
	server := fake.serve()
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for event, err := range c.Board("default").Watch(t.Context(), "") {
		if event != nil || !errors.Is(err, job.NotFound) {
			t.Errorf("%v, %v, want NOT_FOUND", event, err)
		}
	}
}

func post(tb testing.TB, board *client.Board, names ...string) {
	tb.Helper()
	var postings []*client.NewJob
	for _, name := range names {
		postings = append(postings, &client.NewJob{Name: name, Details: []byte(`{}`)})
	}
	if _, err := board.Post(tb.Context(), postings...); err != nil {
		tb.Fatal(err)
	}
}

// forgetful does what it is told once, and refuses it then.
type forgetful struct {
	*fakeBoard
	done bool
}

func (f *forgetful) once(err *boarddv1.Error) *boarddv1.Error {
	if !f.done {
		f.done = true
		return nil
	}
	return err
}

func (f *forgetful) PurgeJobs(context.Context, *connect.Request[boarddv1.PurgeJobsRequest]) (*connect.Response[boarddv1.PurgeJobsResponse], error) {
	gone := f.once(&boarddv1.Error{Code: boarddv1.Code_NOT_FOUND, Message: "no such job"})
	return connect.NewResponse(&boarddv1.PurgeJobsResponse{Results: []*boarddv1.Result{{Error: gone}}}), nil
}

func (f *forgetful) CancelJobs(context.Context, *connect.Request[boarddv1.CancelJobsRequest]) (*connect.Response[boarddv1.CancelJobsResponse], error) {
	canceled := f.once(&boarddv1.Error{}) == nil
	return connect.NewResponse(&boarddv1.CancelJobsResponse{Results: []*boarddv1.CancelResult{{Canceled: canceled, Message: "it waits no longer"}}}), nil
}

func (f *forgetful) PostJobs(context.Context, *connect.Request[boarddv1.PostJobsRequest]) (*connect.Response[boarddv1.PostJobsResponse], error) {
	later := f.once(&boarddv1.Error{Code: boarddv1.Code_UNAVAILABLE, Message: "nothing was changed"})
	return connect.NewResponse(&boarddv1.PostJobsResponse{Results: []*boarddv1.JobResult{{Error: later}}}), nil
}

func (f *forgetful) ConsumeJobs(context.Context, *connect.Request[boarddv1.ConsumeJobsRequest]) (*connect.Response[boarddv1.ConsumeJobsResponse], error) {
	later := f.once(&boarddv1.Error{Code: boarddv1.Code_UNAVAILABLE, Message: "nothing was changed"})
	return connect.NewResponse(&boarddv1.ConsumeJobsResponse{Results: []*boarddv1.Result{{Error: later}}}), nil
}

func (f *forgetful) ExtendClaims(context.Context, *connect.Request[boarddv1.ExtendClaimsRequest]) (*connect.Response[boarddv1.ExtendClaimsResponse], error) {
	later := f.once(&boarddv1.Error{Code: boarddv1.Code_UNAVAILABLE, Message: "nothing was changed"})
	return connect.NewResponse(&boarddv1.ExtendClaimsResponse{Results: []*boarddv1.ExtendResult{{Error: later}}}), nil
}

func (f *forgetful) PauseBoard(context.Context, *connect.Request[boarddv1.PauseBoardRequest]) (*connect.Response[boarddv1.PauseBoardResponse], error) {
	if f.once(&boarddv1.Error{}) == nil {
		return connect.NewResponse(&boarddv1.PauseBoardResponse{}), nil
	}
	return nil, connect.NewError(connect.CodeResourceExhausted, errors.New("too many calls"))
}

// What a server does not recognise when it comes again is refused because it was done, and
// what it does recognise may not be served when it comes again. A call that was tried twice does not say then that nothing was changed.
func TestRefusedSinceItWasDone(t *testing.T) {
	t.Parallel()
	id := "6a0de329-b8ac-49b2-8df7-028258cd8a78"
	for name, do := range map[string]func(*client.Board) error{
		"purge":   func(b *client.Board) error { return b.Purge(t.Context(), id) },
		"post":    func(b *client.Board) error { _, err := b.Post(t.Context(), &client.NewJob{}); return err },
		"consume": func(b *client.Board) error { return b.Consume(t.Context(), &client.Claim{Uuid: id}) },
		"extend": func(b *client.Board) error {
			_, err := b.Extend(t.Context(), 0, &client.Claim{Uuid: id})
			return err
		},
		"cancel": func(b *client.Board) error {
			_, err := b.Cancel(t.Context(), false, id)
			return err
		},
		"pause": func(b *client.Board) error {
			_, err := b.Pause(t.Context(), "")
			return err
		},
	} {
		_, handler := boarddv1connect.NewBoardServiceHandler(&forgetful{fakeBoard: newFake()})
		_, passed := boarddv1connect.NewBoardServiceHandler(&forgetful{fakeBoard: newFake()}, connect.WithInterceptors(passing(t)))
		for by, transport := range map[string]connect.HTTPClient{
			"the network":             &lossy{inner: inProcess{handler}, lost: 1, err: errors.New("connection reset")},
			"a server that passes it": inProcess{passed},
		} {
			c, err := client.New(client.Config{HTTPClient: transport})
			if err != nil {
				t.Fatal(err)
			}
			if err := do(c.Board("default")); !errors.Is(err, job.OutcomeUnknown) {
				t.Errorf("%s, with an answer lost by %s: %v, want OUTCOME_UNKNOWN", name, by, err)
			}
		}
	}
}

// passing is a server that passes calls on and loses the first answer, and says so.
func passing(t *testing.T) connect.UnaryInterceptorFunc {
	detail, err := connect.NewErrorDetail(&boarddv1.Error{Code: boarddv1.Code_OUTCOME_UNKNOWN, Message: "the server that has the board did not answer"})
	if err != nil {
		t.Fatal(err)
	}
	lost := connect.NewError(connect.CodeUnknown, errors.New("the answer was lost"))
	lost.AddDetail(detail)
	var once sync.Once
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			answer, err := next(ctx, r)
			once.Do(func() { answer, err = nil, lost })
			return answer, err
		}
	}
}
