package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/fleet"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// passing passes calls on to the servers of the fleet that have their boards open. A nil
// one passes nothing on.
type passing struct {
	host     *host.Host
	peers    *peers
	stopping <-chan struct{}
}

func newPassing(h *host.Host, p *peers, stopping <-chan struct{}) *passing {
	return &passing{host: h, peers: p, stopping: stopping}
}

// route returns who is to be asked for a board before this server, the best one first. A
// call that was passed on is never passed on again.
func (p *passing) route(ctx context.Context, call string, of about) []fleet.Seen {
	session, ok := ctx.Value(sessionKey{}).(*host.Session)
	if p == nil || !ok || of.board == "" || passedOn(ctx) != nil || !session.May(call, of.board) {
		return nil // what the caller may not do is told to it here
	}
	if _, err := session.Principal().CheckAdmin(call, of.tenant, of.board); err != nil {
		return nil // likewise
	}
	if m := p.host.Member(); m == nil || m.Key().None() {
		return nil
	}
	return p.host.Route(ctx, of.at(session))
}

// attempt is a call that is passed on.
type attempt struct {
	call     string
	caller   json.RawMessage
	remote   string
	header   http.Header
	changes  bool // it asks for a change
	repeats  bool // it may be made again although it may have been done
	onlyWait bool // ended before its time, it has done nothing
}

func (p *passing) attempt(ctx context.Context, spec connect.Spec, message any) attempt {
	a := attempt{call: callOf(spec), header: http.Header{}}
	if session, ok := ctx.Value(sessionKey{}).(*host.Session); ok {
		a.caller, _ = json.Marshal(session.Principal().Pass()) // it has no value that could fail
	}
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		a.remote = q.remote
		a.header.Set(requestHeader, q.id)
	}
	p.host.Tracer().Inject(ctx, a.header)
	a.changes = spec.IdempotencyLevel != connect.IdempotencyNoSideEffects
	a.repeats = !a.changes || isNamed(message)
	a.onlyWait = waitsFor(message)
	return a
}

// isNamed reports whether what a request changes is named by it, so that it may be made
// again: the answer to the second one says what came of the first one. Jobs without a uuid
// are given one, where the request does not become too large by that.
func isNamed(message any) bool {
	switch m := message.(type) {
	case *boarddv1.PostJobsRequest:
		return nameJobs(m)
	case *boarddv1.ClaimJobsRequest:
		return m.GetRequestId() != ""
	case *boarddv1.WorkRequest:
		return m.GetRequestId() != "" || m.GetMax() == 0 && m.GetAhead() == 0
	case *boarddv1.TrashJobsRequest:
		return len(m.GetUuids()) == 0
	case *boarddv1.ExtendClaimsRequest, *boarddv1.ConsumeJobsRequest, *boarddv1.AbandonJobsRequest, *boarddv1.RegisterEntityRequest,
		*boarddv1.PauseBoardRequest, *boarddv1.ResumeBoardRequest:
		return true
	case *boarddv1.AppendLogRequest:
		return m.GetRequestId() != ""
	case *boarddv1.ShadowPolicyRequest:
		return !m.GetStop()
	}
	return false
}

// nameJobs gives jobs without a uuid one, and reports whether all have one then.
func nameJobs(m *boarddv1.PostJobsRequest) bool {
	var unnamed []*boarddv1.NewJob
	for _, j := range m.GetJobs() {
		if j.GetUuid() == "" {
			unnamed = append(unnamed, j)
		}
	}
	if len(unnamed) > 0 && proto.Size(m)+uuidBytes*len(unnamed) > MaxRequest {
		return false
	}
	for _, j := range unnamed {
		j.Uuid = newUUID()
	}
	return true
}

// uuidBytes is what a uuid adds to a posting at most: its text, that field's tag and length, and one
// byte more for the length of the posting itself.
const uuidBytes = 36 + 2 + 1

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var id job.ID
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// waitsFor reports whether a request waits, and does nothing else as long as it does.
func waitsFor(message any) bool {
	if m, ok := message.(*boarddv1.WorkRequest); ok && len(m.GetEndings())+len(m.GetExtend()) > 0 {
		return false
	}
	m, ok := message.(interface{ GetWait() *durationpb.Duration })
	return ok && m.GetWait().AsDuration() > 0
}

// unary passes a call on, if its board is another server's, and else has it made here. It is
// made here at last where nobody else can be reached.
func (p *passing) unary(ctx context.Context, r connect.AnyRequest, of about, here connect.UnaryFunc) (connect.AnyResponse, error) {
	if passable[r.Spec().Procedure] == nil {
		return here(ctx, r)
	}
	servers := p.route(ctx, callOf(r.Spec()), of)
	if len(servers) == 0 {
		return here(ctx, r)
	}
	a := p.attempt(ctx, r.Spec(), r.Any())
	calling, release := ctx, func() {}
	if a.onlyWait {
		calling, release = untilStop(ctx, p.stopping)
	}
	defer release()
	var must, unsure bool // see fleet.Passed; a server may have made the change
	for _, s := range servers {
		o := p.peers.of(s)
		if !o.enter(ctx) {
			must = true
			continue
		}
		answer, err := o.calls[r.Spec().Procedure](o.with(calling, &a, must), r.Any(), a.header)
		o.under.Add(-1)
		if err == nil {
			p.passed(ctx, s)
			o.answers(answer.Header())
			return afterLost(ctx, unsure, answer, nil)
		}
		if ended := ended(ctx, calling); ended != nil {
			return nil, ended
		}
		switch next := o.failed(err, &a); next {
		case askAgain:
			unsure = unsure || a.changes
			must = must || o.away.Load()
		case askNext:
			must = must || o.away.Load()
		case doubtful:
			return nil, job.Errorf(job.OutcomeUnknown, "the server that has the board was lost before it answered; perhaps it has done what was asked")
		case answered:
			p.passed(ctx, s)
			return afterLost(ctx, unsure, nil, foreign(err, o))
		}
	}
	answer, err := here(ctx, r)
	return afterLost(ctx, unsure, answer, err)
}

// ended is the error of a call that its caller, its time or this server's end ended.
func ended(ctx, calling context.Context) error {
	switch {
	case ctx.Err() != nil:
		return &job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)}
	case calling.Err() != nil:
		return context.Cause(calling)
	}
	return nil
}

// passed counts a call that another server has answered. It is that server's call in the
// metrics, too.
func (p *passing) passed(ctx context.Context, s fleet.Seen) {
	p.peers.forwarded.add(s.Advertise)
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		q.passed = true
	}
}

// enter lets a call to another server begin. It frees the call's seat: from here on it
// waits for somebody else's work.
func (o *peer) enter(ctx context.Context) bool {
	if o.away.Load() {
		return false
	}
	if o.under.Add(1) > MaxPassed || waits(ctx) != nil {
		o.under.Add(-1)
		return false
	}
	return true
}

// with returns the context of a call to another server.
func (o *peer) with(ctx context.Context, a *attempt, must bool) context.Context {
	return context.WithValue(ctx, passKey{}, fleet.Passed{Caller: a.caller, Remote: a.remote, Must: must})
}

// next is what follows from an error.
type next int

const (
	answered next = iota // it is the call's answer
	askNext              // nothing was done
	askAgain             // nobody knows what was done, and it can be asked for again
	doubtful             // nobody knows what was done
)

// failed decides what follows from an error of a call to another server.
func (o *peer) failed(err error, a *attempt) next {
	if _, ok := errors.AsType[*unsent](err); ok {
		o.away.Store(true)
		return askNext
	}
	var answer *connect.Error
	if connect.IsWireError(err) && errors.As(err, &answer) {
		switch answer.Meta().Get(answerHeader) {
		case answerNotMine:
			return askNext
		case answerMoved:
			switch {
			case a.onlyWait:
				return askNext
			case a.repeats:
				return askAgain
			}
		}
		return answered
	}
	o.away.Store(true)
	if a.repeats {
		return askAgain
	}
	return doubtful
}

// foreign is the error that another server answered with, as this one's callers are told
// of it.
func foreign(err error, o *peer) error {
	var from *connect.Error
	if !errors.As(err, &from) {
		return err
	}
	answer := connect.NewError(from.Code(), errors.New(from.Message()))
	for _, d := range from.Details() {
		answer.AddDetail(d)
	}
	if after := from.Meta().Get("Retry-After"); after != "" {
		answer.Meta().Set("Retry-After", after)
	}
	o.answers(answer.Meta())
	copyMoved(from, answer)
	return answer
}

// copyMoved says of an error what another server has said of it: whose the board is now.
func copyMoved(from, to *connect.Error) {
	for _, name := range []string{movedHeader, thereHeader} {
		if text := from.Meta().Get(name); text != "" {
			to.Meta().Set(name, text)
		}
	}
}

// lost is the error of a stream that has begun and whose server was lost or has the board no
// more: it says where to go on.
func (p *passing) lost(ctx context.Context, err error, of about) error {
	answer := callError(ctx, job.Errorf(job.Unavailable, "the board has moved to another server: ask again from where you are"))
	var from *connect.Error
	if errors.As(err, &from) && connect.IsWireError(err) && from.Meta().Get(movedHeader) != "" {
		copyMoved(from, answer)
	} else if next := p.next(ctx, of); next != nil {
		next.has(answer.Meta())
	}
	return answer
}

// next returns the server to which a board has moved from here, as far as that is known;
// nil: it is this server's, or another one's that cannot be reached.
func (p *passing) next(ctx context.Context, of about) *peer {
	session, ok := ctx.Value(sessionKey{}).(*host.Session)
	if p == nil || !ok || of.board == "" {
		return nil
	}
	for _, s := range p.host.Route(context.WithoutCancel(ctx), of.at(session)) {
		if o := p.peers.of(s); !o.away.Load() {
			return o
		}
	}
	return nil
}

// passer makes a call of one kind to one server.
type passer func(ctx context.Context, message any, header http.Header) (connect.AnyResponse, error)

// passerOf makes a passer of a call with these messages.
func passerOf[Req, Resp any]() func(connect.HTTPClient, string, ...connect.ClientOption) passer {
	return func(c connect.HTTPClient, url string, o ...connect.ClientOption) passer {
		client := connect.NewClient[Req, Resp](c, url, o...)
		return func(ctx context.Context, message any, header http.Header) (connect.AnyResponse, error) {
			m, ok := message.(*Req)
			if !ok {
				return nil, job.Internal
			}
			r := connect.NewRequest(m)
			maps.Copy(r.Header(), header)
			answer, err := client.CallUnary(ctx, r)
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(answer.Msg), nil // without the headers that were for this server
		}
	}
}

// passStream passes a call with a stream of answers on, if its board is another server's. A
// stream that has begun ends as if the server had stopped where the other one is lost: its
// caller goes on from what it has seen.
func passStream[Req, Resp any](ctx context.Context, p *passing, procedure string, m *Req, to *connect.ServerStream[Resp]) (done bool, err error) {
	call, of := procedure[strings.LastIndexByte(procedure, '/')+1:], aboutOf(m)
	servers := p.route(ctx, call, of)
	if len(servers) == 0 {
		return false, nil
	}
	a := p.attempt(ctx, connect.Spec{Procedure: procedure, IdempotencyLevel: connect.IdempotencyNoSideEffects}, m)
	calling, release := untilStop(ctx, p.stopping)
	defer release()
	must := false
	for _, s := range servers {
		o := p.peers.of(s)
		if !o.enter(ctx) {
			must = true
			continue
		}
		begun, err := follow(o.with(calling, &a, must), o, &a, procedure, m, to)
		o.under.Add(-1)
		if begun {
			p.passed(ctx, s)
		}
		if ended := ended(ctx, calling); ended != nil {
			return true, ended
		}
		if err == nil {
			return true, nil
		}
		if begun && isReset(err) { // which says nothing of the server
			return true, p.lost(ctx, err, of)
		}
		next := o.failed(err, &a)
		if next == answered {
			return true, foreign(err, o)
		}
		if begun {
			return true, p.lost(ctx, err, of)
		}
		must = must || o.away.Load()
	}
	return false, nil
}

// reset is the form of net/http's error of one stream of a connection that goes on, which has
// no public name: errors.As finds it by its fields.
type reset struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error is there for errors.As alone.
func (reset) Error() string { return "the stream was reset" }

// isReset reports whether only the one stream was ended by its other end.
func isReset(err error) bool {
	_, ok := errors.AsType[reset](err)
	return ok
}

// follow passes a stream's messages on until it ends. begun says that there was one.
func follow[Req, Resp any](ctx context.Context, o *peer, a *attempt, procedure string, m *Req, to *connect.ServerStream[Resp]) (begun bool, err error) {
	client := connect.NewClient[Req, Resp](&http.Client{Transport: o}, o.seen.Advertise+procedure, connect.WithCodec(boarddv1.Binary{}), connect.WithAcceptCompression("gzip", nil, nil))
	r := connect.NewRequest(m)
	maps.Copy(r.Header(), a.header)
	from, err := client.CallServerStream(ctx, r)
	if err != nil {
		return false, err
	}
	defer func() { _ = from.Close() }()
	if from.ResponseHeader().Get(answerHeader) == answerTaken {
		begun = true
		o.answers(to.ResponseHeader())
		if err := sendOne(ctx, func() error { return to.Send(nil) }); err != nil { // the headers
			return true, err
		}
	}
	for from.Receive() {
		if err := sendOne(ctx, func() error { return to.Send(from.Msg()) }); err != nil {
			return true, err
		}
	}
	return begun, from.Err()
}
