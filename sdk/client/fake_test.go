package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// fakeBoard is a board in memory that behaves as the API says, as far as the
// tests of the client need it. It counts time with the clock of the test.
type fakeBoard struct {
	modern bool // it knows Work
	boarddv1connect.UnimplementedBoardServiceHandler

	lease   time.Duration // granted where none is asked for
	backoff time.Duration // the board's own
	token   string        // "Bearer ..." that is demanded; empty: none

	mu       sync.Mutex
	jobs     []*boarddv1.Job   // in claim order
	tokens   map[string]string // of present claims, by uuid
	ends     map[string]string // by claim token
	claims   map[string][]*boarddv1.Claim
	nextID   int
	calls    map[string]int
	log      []string // endings
	extends  [][]string
	refuse   func(op string) error // asked before each call
	poison   error                 // of a call that posts a job of this name
	most     int                   // claims of one answer; 0: as many as were asked for
	changed  chan struct{}
	requests []string // request ids of claims
	watches  []string // cursors asked for
	entities []*boarddv1.RegisterEntityRequest

	notices chan *boarddv1.WorkNotice
	events  chan *boarddv1.Event // of the stream of a worker
	over    chan struct{}        // closed when the test ends; its streams end then
}

func newFake() *fakeBoard {
	return &fakeBoard{
		modern: modern, lease: 30 * time.Second, tokens: map[string]string{}, ends: map[string]string{},
		claims: map[string][]*boarddv1.Claim{}, calls: map[string]int{}, changed: make(chan struct{}),
	}
}

// inProcess carries calls to a handler without a socket, so that they may be
// made under a fake clock.
type inProcess struct{ handler http.Handler }

func (p inProcess) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	served := r.Clone(r.Context())
	served.Body = io.NopCloser(bytes.NewReader(body))
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		p.handler.ServeHTTP(recorder, served)
	}()
	select {
	case <-done:
		return recorder.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func transportOf(f *fakeBoard) connect.HTTPClient {
	_, handler := boarddv1connect.NewBoardServiceHandler(f)
	return inProcess{handler}
}

// board returns a client's view of the fake that needs no socket.
func (f *fakeBoard) board(tb testing.TB, c client.Config) *client.Board {
	tb.Helper()
	c.HTTPClient = transportOf(f)
	cl, err := client.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return cl.Board("default")
}

// serve serves the fake on a socket.
func (f *fakeBoard) serve() *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle(boarddv1connect.NewBoardServiceHandler(f))
	return httptest.NewServer(mux)
}

// begin counts a call and lets the test refuse it. The lock is held on return
// if there is no error.
func (f *fakeBoard) begin(op string, header http.Header) error {
	f.mu.Lock()
	f.calls[op]++
	refuse, demanded := f.refuse, f.token
	f.mu.Unlock()
	if demanded != "" && header.Get("Authorization") != demanded {
		return connect.NewError(connect.CodeUnauthenticated, errors.New("no such token"))
	}
	if refuse != nil {
		if err := refuse(op); err != nil {
			return err
		}
	}
	f.mu.Lock()
	return nil
}

// refuseWith makes every call ask first.
func (f *fakeBoard) refuseWith(refuse func(op string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

func (f *fakeBoard) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// extended returns how many calls of ExtendClaims were answered.
func (f *fakeBoard) extended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.extends)
}

// endings returns how claims ended, oldest first.
func (f *fakeBoard) endings() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}

// steal ends the claim on a job as its loss does.
func (f *fakeBoard) steal(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		if j.Name == name {
			f.tokens[j.Uuid], j.Owner = "somebody else's", "thief"
		}
	}
}

func (f *fakeBoard) PostJobs(_ context.Context, r *connect.Request[boarddv1.PostJobsRequest]) (*connect.Response[boarddv1.PostJobsResponse], error) {
	if err := f.begin("post", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	answer := &boarddv1.PostJobsResponse{}
	if slices.ContainsFunc(r.Msg.Jobs, func(p *boarddv1.NewJob) bool { return p.Name == "poison" }) {
		return nil, f.poison
	}
	for _, p := range r.Msg.Jobs {
		answer.Results = append(answer.Results, f.post(p))
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return connect.NewResponse(answer), nil
}

func (f *fakeBoard) post(p *boarddv1.NewJob) *boarddv1.JobResult {
	if p.Name == "" {
		return &boarddv1.JobResult{Error: &boarddv1.Error{Code: boarddv1.Code_INVALID, Message: "a job needs a name", Field: "name"}}
	}
	if j := f.job(p.Uuid); j != nil {
		return &boarddv1.JobResult{Job: proto.CloneOf(j)}
	}
	j := &boarddv1.Job{
		Uuid: p.Uuid, Name: p.Name, State: boarddv1.State_UNCLAIMED, Details: p.Details, Labels: p.Labels,
		Priority: boarddv1.Priority_NORMAL, MaxAttempts: p.MaxAttempts,
	}
	f.jobs = append(f.jobs, j)
	return &boarddv1.JobResult{Job: proto.CloneOf(j)}
}

func (f *fakeBoard) job(uuid string) *boarddv1.Job {
	for _, j := range f.jobs {
		if j.Uuid == uuid {
			return j
		}
	}
	return nil
}

func (f *fakeBoard) GetJobs(_ context.Context, r *connect.Request[boarddv1.GetJobsRequest]) (*connect.Response[boarddv1.GetJobsResponse], error) {
	if err := f.begin("get", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	answer := &boarddv1.GetJobsResponse{}
	for _, uuid := range r.Msg.Uuids {
		result := &boarddv1.JobResult{Job: proto.CloneOf(f.job(uuid))}
		if result.Job == nil {
			result.Error = &boarddv1.Error{Code: boarddv1.Code_NOT_FOUND, Message: "no such job"}
		}
		answer.Results = append(answer.Results, result)
	}
	return connect.NewResponse(answer), nil
}

// ListJobs gives pages of two jobs, whatever was asked for.
func (f *fakeBoard) ListJobs(_ context.Context, r *connect.Request[boarddv1.ListJobsRequest]) (*connect.Response[boarddv1.ListJobsResponse], error) {
	if err := f.begin("list", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(r.Msg.PageToken)
	to := min(from+2, len(f.jobs))
	answer := &boarddv1.ListJobsResponse{}
	for _, j := range f.jobs[from:to] {
		answer.Jobs = append(answer.Jobs, proto.CloneOf(j))
	}
	if to < len(f.jobs) {
		answer.NextPageToken = strconv.Itoa(to)
	}
	return connect.NewResponse(answer), nil
}

func (f *fakeBoard) CountJobs(_ context.Context, r *connect.Request[boarddv1.CountJobsRequest]) (*connect.Response[boarddv1.CountJobsResponse], error) {
	if err := f.begin("count", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	answer := &boarddv1.CountJobsResponse{}
	for _, j := range f.jobs {
		if j.State == boarddv1.State_UNCLAIMED {
			answer.Ready++
		}
	}
	return connect.NewResponse(answer), nil
}

func (f *fakeBoard) GetBoard(_ context.Context, r *connect.Request[boarddv1.GetBoardRequest]) (*connect.Response[boarddv1.GetBoardResponse], error) {
	if err := f.begin("board", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return connect.NewResponse(&boarddv1.GetBoardResponse{Board: &boarddv1.Board{
		Name: r.Msg.Board, Lease: durationpb.New(f.lease), Backoff: durationpb.New(f.backoff), Ready: true,
	}}), nil
}

func (f *fakeBoard) ClaimJobs(ctx context.Context, r *connect.Request[boarddv1.ClaimJobsRequest]) (*connect.Response[boarddv1.ClaimJobsResponse], error) {
	timer := time.NewTimer(r.Msg.Wait.AsDuration())
	defer timer.Stop()
	for expired := r.Msg.Wait == nil; ; {
		if err := f.begin("claim", r.Header()); err != nil {
			return nil, err
		}
		f.requests = append(f.requests, r.Msg.RequestId)
		answer, changed := f.claim(r.Msg), f.changed
		f.mu.Unlock()
		if len(answer.Claims) > 0 || expired {
			return connect.NewResponse(answer), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		case <-timer.C:
			expired = true
		}
	}
}

func (f *fakeBoard) claim(r *boarddv1.ClaimJobsRequest) *boarddv1.ClaimJobsResponse {
	if claims, ok := f.claims[r.RequestId]; ok {
		return &boarddv1.ClaimJobsResponse{Claims: claims}
	}
	answer := &boarddv1.ClaimJobsResponse{}
	lease := r.Lease
	if lease == nil {
		lease = durationpb.New(f.lease)
	}
	for _, j := range f.jobs {
		if j.State != boarddv1.State_UNCLAIMED || len(answer.Claims) >= int(max(r.Max, 1)) || f.most > 0 && len(answer.Claims) >= f.most {
			continue
		}
		f.nextID++
		token := fmt.Sprintf("token-%d", f.nextID)
		j.State, j.Owner = boarddv1.State_CLAIMED, r.Owner
		j.Attempt++
		f.tokens[j.Uuid] = token
		answer.Claims = append(answer.Claims, &boarddv1.Claim{
			Uuid: j.Uuid, Owner: r.Owner, Token: token, Lease: lease, Attempt: j.Attempt,
			Job: &boarddv1.Job{Uuid: j.Uuid, Name: j.Name, Details: j.Details, Labels: j.Labels, Attempt: j.Attempt},
		})
	}
	if len(answer.Claims) > 0 {
		f.claims[r.RequestId] = answer.Claims
	}
	return answer
}

// end ends claims; the same end again is answered as at first. An abandoned job
// goes to the trash, so that a test sees one attempt at a time.
func (f *fakeBoard) end(claims []*boarddv1.Claim, how string, state boarddv1.State_Enum) []*boarddv1.Result {
	var results []*boarddv1.Result
	for _, c := range claims {
		result, j := &boarddv1.Result{}, f.job(c.Uuid)
		switch {
		case f.ends[c.Token] == how:
		case j == nil:
			result.Error = &boarddv1.Error{Code: boarddv1.Code_NOT_FOUND, Message: "no such job"}
		case f.tokens[c.Uuid] != c.Token:
			result.Error = &boarddv1.Error{Code: boarddv1.Code_LEASE_LOST, Message: "the claim ended", Owner: j.Owner}
		default:
			delete(f.tokens, c.Uuid)
			f.ends[c.Token] = how
			j.State, j.Owner = state, ""
			f.log = append(f.log, j.Name+" "+how)
		}
		results = append(results, result)
	}
	return results
}

func (f *fakeBoard) ConsumeJobs(_ context.Context, r *connect.Request[boarddv1.ConsumeJobsRequest]) (*connect.Response[boarddv1.ConsumeJobsResponse], error) {
	if err := f.begin("consume", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	how := "consumed"
	if r.Msg.Outcome != boarddv1.Outcome_NONE {
		how += " as " + r.Msg.Outcome.String()
	}
	results := f.end(r.Msg.Claims, how, boarddv1.State_COMPLETE)
	return connect.NewResponse(&boarddv1.ConsumeJobsResponse{Results: results}), nil
}

func (f *fakeBoard) AbandonJobs(_ context.Context, r *connect.Request[boarddv1.AbandonJobsRequest]) (*connect.Response[boarddv1.AbandonJobsResponse], error) {
	if err := f.begin("abandon", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	how := "abandoned: " + r.Msg.Reason
	if r.Msg.RetryAfter != nil {
		how += ", after " + r.Msg.RetryAfter.AsDuration().String()
	}
	if r.Msg.RefundAttempt {
		how += ", refunded"
	}
	results := f.end(r.Msg.Claims, how, boarddv1.State_TRASHED)
	return connect.NewResponse(&boarddv1.AbandonJobsResponse{Results: results}), nil
}

func (f *fakeBoard) TrashJobs(_ context.Context, r *connect.Request[boarddv1.TrashJobsRequest]) (*connect.Response[boarddv1.TrashJobsResponse], error) {
	if err := f.begin("trash", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	results := f.end(r.Msg.Claims, "trashed: "+r.Msg.Reason, boarddv1.State_TRASHED)
	return connect.NewResponse(&boarddv1.TrashJobsResponse{Results: results}), nil
}

func (f *fakeBoard) ExtendClaims(_ context.Context, r *connect.Request[boarddv1.ExtendClaimsRequest]) (*connect.Response[boarddv1.ExtendClaimsResponse], error) {
	if err := f.begin("extend", r.Header()); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	answer, names := &boarddv1.ExtendClaimsResponse{}, []string(nil)
	for _, c := range r.Msg.Claims {
		result := &boarddv1.ExtendResult{Error: &boarddv1.Error{Code: boarddv1.Code_LEASE_LOST, Message: "the claim ended"}}
		if j := f.job(c.Uuid); j != nil && f.tokens[c.Uuid] == c.Token {
			result = &boarddv1.ExtendResult{Lease: durationpb.New(f.lease), CancelRequested: j.Labels["cancel"] == "yes"}
			names = append(names, j.Name)
		}
		answer.Results = append(answer.Results, result)
	}
	f.extends = append(f.extends, names)
	return connect.NewResponse(answer), nil
}

// WatchBoard sends three events after the cursor, then ends the stream; without a
// cursor it sends only where the present is. A worker's stream has the events that
// the test says.
func (f *fakeBoard) WatchBoard(ctx context.Context, r *connect.Request[boarddv1.WatchBoardRequest], s *connect.ServerStream[boarddv1.Event]) error {
	if r.Msg.Owner != "" {
		return f.tell(ctx, r, s)
	}
	if err := f.begin("watch", r.Header()); err != nil {
		return err
	}
	f.watches = append(f.watches, r.Msg.From)
	f.mu.Unlock()
	if r.Msg.From == "" {
		if err := s.Send(&boarddv1.Event{Type: boarddv1.EventType_HEARTBEAT, Cursor: "10"}); err != nil {
			return err
		}
		return connect.NewError(connect.CodeUnavailable, errors.New("going down"))
	}
	from, _ := strconv.Atoi(r.Msg.From)
	for i := from + 1; i <= from+3; i++ {
		event := &boarddv1.Event{Type: boarddv1.EventType_POSTED, Cursor: strconv.Itoa(i), Job: &boarddv1.Job{Name: fmt.Sprint("job-", i)}}
		if err := s.Send(event); err != nil {
			return err
		}
	}
	return connect.NewError(connect.CodeUnavailable, errors.New("going down"))
}

// tell sends the events of f.events until the worker goes; a nil one cuts the
// stream.
func (f *fakeBoard) tell(ctx context.Context, r *connect.Request[boarddv1.WatchBoardRequest], s *connect.ServerStream[boarddv1.Event]) error {
	if err := f.begin("listen", r.Header()); err != nil {
		return err
	}
	f.watches = append(f.watches, r.Msg.Owner+" from "+r.Msg.From)
	f.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.over:
			return nil
		case event := <-f.events:
			if event == nil {
				return connect.NewError(connect.CodeUnavailable, errors.New("cut"))
			}
			if err := s.Send(event); err != nil {
				return err
			}
		}
	}
}

// Work does in one call what the others do, where the fake is modern; else it is not known.
func (f *fakeBoard) Work(ctx context.Context, r *connect.Request[boarddv1.WorkRequest]) (*connect.Response[boarddv1.WorkResponse], error) {
	f.mu.Lock()
	modern := f.modern
	f.mu.Unlock()
	if !modern {
		return f.UnimplementedBoardServiceHandler.Work(ctx, r)
	}
	q := r.Msg
	for _, e := range q.Endings {
		if after := e.RetryAfter.AsDuration(); after < 0 || after > job.MaxNotBeforeDays*24*time.Hour || e.Reason == "poison" {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("one of the endings is wrong"))
		}
	}
	answer := &boarddv1.WorkResponse{}
	if len(q.Extend) > 0 {
		claims := make([]*boarddv1.Claim, len(q.Extend))
		for i, e := range q.Extend {
			claims[i] = &boarddv1.Claim{Uuid: e.Uuid, Token: e.Token}
		}
		extended, err := f.ExtendClaims(ctx, with(r, &boarddv1.ExtendClaimsRequest{Claims: claims}))
		if err != nil {
			return nil, err
		}
		for i, x := range extended.Msg.Results {
			answer.Extended = append(answer.Extended, &boarddv1.WorkExtended{
				Uuid: claims[i].Uuid, Token: claims[i].Token, Lease: x.Lease, CancelRequested: x.CancelRequested, Error: x.Error,
			})
		}
	}
	for _, e := range q.Endings {
		results, err := f.endOne(ctx, r, e)
		if err != nil {
			return nil, err
		}
		answer.Ended = append(answer.Ended, &boarddv1.WorkEnded{Uuid: e.Uuid, Token: e.Token, Error: results[0].Error})
	}
	wait := q.Wait
	if len(q.Endings)+len(q.Extend) > 0 {
		wait = nil
	}
	if q.Max == 0 {
		if wait != nil {
			return f.tellNotices(ctx, r, answer)
		}
		return connect.NewResponse(answer), nil
	}
	given, err := f.ClaimJobs(ctx, with(r, &boarddv1.ClaimJobsRequest{Owner: q.Owner, Max: q.Max + q.Ahead, Lease: q.Lease, Wait: wait, RequestId: q.RequestId}))
	if err != nil {
		return nil, err
	}
	for i, c := range given.Msg.Claims {
		c.Ahead = i >= int(q.Max)
	}
	answer.Claims = given.Msg.Claims
	return connect.NewResponse(answer), nil
}

// with is another request by the same caller.
func with[A, B any](r *connect.Request[A], message *B) *connect.Request[B] {
	q := connect.NewRequest(message)
	q.Header().Set("Authorization", r.Header().Get("Authorization"))
	return q
}

func (f *fakeBoard) endOne(ctx context.Context, r *connect.Request[boarddv1.WorkRequest], e *boarddv1.WorkEnding) ([]*boarddv1.Result, error) {
	claims := []*boarddv1.Claim{{Uuid: e.Uuid, Token: e.Token}}
	switch e.How {
	case boarddv1.How_ABANDON:
		a, err := f.AbandonJobs(ctx, with(r, &boarddv1.AbandonJobsRequest{Claims: claims, Reason: e.Reason, RetryAfter: e.RetryAfter, RefundAttempt: e.RefundAttempt}))
		if err != nil {
			return nil, err
		}
		return a.Msg.Results, nil
	case boarddv1.How_TRASH:
		a, err := f.TrashJobs(ctx, with(r, &boarddv1.TrashJobsRequest{Claims: claims, Reason: e.Reason}))
		if err != nil {
			return nil, err
		}
		return a.Msg.Results, nil
	}
	outcome := boarddv1.Outcome_NONE
	if e.How == boarddv1.How_CANCEL {
		outcome = boarddv1.Outcome_CANCELED
	}
	a, err := f.ConsumeJobs(ctx, with(r, &boarddv1.ConsumeJobsRequest{Claims: claims, Outcome: outcome}))
	if err != nil {
		return nil, err
	}
	return a.Msg.Results, nil
}

// tellNotices waits for the notices that the test says; a nil one cuts the connection.
func (f *fakeBoard) tellNotices(ctx context.Context, r *connect.Request[boarddv1.WorkRequest], answer *boarddv1.WorkResponse) (*connect.Response[boarddv1.WorkResponse], error) {
	if err := f.begin("notices", r.Header()); err != nil {
		return nil, err
	}
	f.mu.Unlock()
	timer := time.NewTimer(r.Msg.Wait.AsDuration())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case n := <-f.notices:
		if n == nil {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("cut"))
		}
		answer.Notices = append(answer.Notices, n)
	case <-timer.C:
	}
	return connect.NewResponse(answer), nil
}
