package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

type passedKey struct{}

// passedOn returns what another server says with the call of this context, or nil: then
// no other server has passed it on.
func passedOn(ctx context.Context) *fleet.Passed {
	p, _ := ctx.Value(passedKey{}).(*fleet.Passed)
	return p
}

// open looks whether a request comes from another server of the fleet, and reads its
// body. What is sealed is looked at before anything of the body is read, and room, which may be
// nil, finds room for it; a body that is another one than was sealed, and a message that was
// seen before, are refused.
func (g *gate) open(w http.ResponseWriter, r *http.Request, room func(*fleet.Passed) error) (*fleet.Passed, *http.Request, error) {
	m := g.host.Member()
	if m == nil {
		return nil, r, job.Errorf(job.Unauthenticated, "this server is in no fleet")
	}
	p, proof, err := m.Key().Open(r.Header.Get(peerHeader))
	switch {
	case err != nil:
		return nil, r, err
	case p.To != m.Boot() || p.Call != r.URL.Path:
		return nil, r, job.Errorf(job.Unauthenticated, "this call was sealed for another server, or for another call")
	case !m.Fresh(p.From, p.Number):
		return nil, r, job.Errorf(job.Unauthenticated, "this call was passed on before, or by a server that is not known here")
	}
	w.Header().Set(proofHeader, proof) // of a refusal, too: who is busy is not away
	if room != nil {
		if err := room(&p); err != nil {
			return nil, r, err
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, hardLimit+1))
	if err != nil || fleet.DigestOf(body) != p.Body {
		return nil, r, job.Errorf(job.Unauthenticated, "the body of this call is not the one that was sealed")
	}
	if own := m.Key().SealPublic(proof, g.host.Settings().Fleet.Public); own != "" {
		w.Header().Set(ownHeader, own)
	}
	r = r.WithContext(context.WithValue(r.Context(), passedKey{}, &p))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if q, ok := r.Context().Value(requestKey{}).(*request); ok {
		q.remote = p.Remote
	}
	return &p, r, nil
}

// takePassed is authenticate for a call that another server has let in and passes on. The
// other one has counted it and puts it into its audit log; roles are looked at again.
func (g *gate) takePassed(w http.ResponseWriter, r *http.Request, next http.Handler) {
	var caller tenant.Passed
	var busy error
	held := &portion{budget: &g.passed}
	defer held.shrink(0)
	p, r, err := g.open(w, r, func(p *fleet.Passed) error {
		if err := json.Unmarshal(p.Caller, &caller); err != nil {
			return job.Errorf(job.Unauthenticated, "the call was passed on for nobody")
		}
		held.tenant = caller.Tenant
		if size := roomFor(r.ContentLength, false); size > MaxUncounted {
			busy = held.reserve(r.Context(), int(size))
		}
		return busy
	})
	if busy != nil {
		w.Header().Set("Retry-After", "1")
		g.refuse(w, r, http.StatusServiceUnavailable, busy)
		return
	}
	if err != nil {
		g.refuseLogin(w, r, err)
		return
	}
	if g.draining.Load() {
		w.Header().Set(answerHeader, answerNotMine)
		g.refuse(w, r, http.StatusServiceUnavailable, errStopping)
		return
	}
	if g.peers.stale(r.Header, time.Now()) { // whoever asks still, asks somebody else
		w.Header().Set(answerHeader, answerNotMine)
		g.refuse(w, r, http.StatusServiceUnavailable, errStale)
		return
	}
	session := g.host.PassedSession(caller)
	if err := session.Check(path.Base(r.URL.Path)); err != nil {
		g.refuseRecorded(w, r, session, audit.Record{
			Call: path.Base(r.URL.Path), Result: callError(r.Context(), err).Code().String(), Remote: p.Remote, Request: w.Header().Get(requestHeader),
		}, err)
		return
	}
	g.seated(w, r, session, held, next)
}

var errStale = error(job.Errorf(job.Unavailable, "this server stood still, and may have been given the call before that"))

// fleetPage answers what servers ask each other.
func (s *Server) fleetPage(w http.ResponseWriter, r *http.Request) {
	_, r, err := s.gate.open(w, r, nil)
	if err != nil {
		s.gate.refuseLogin(w, r, err)
		return
	}
	h := s.gate.host
	switch r.URL.Path {
	case standPath:
		told(s, w, r, func(ctx context.Context, q host.Look) any { return h.Stand(ctx, q) })
	case rememberPath:
		told(s, w, r, func(_ context.Context, boards []host.Remembered) any {
			h.Remember(boards)
			return struct{}{}
		})
	case findPath:
		told(s, w, r, func(ctx context.Context, q host.Find) any { return h.Find(ctx, q) })
	default:
		told(s, w, r, func(ctx context.Context, q hasOpen) any { return hasOpen{Open: h.HasOpen(ctx, q.Boards, q.Warm)} })
	}
}

// told answers one question of another server.
func told[Question any](s *Server, w http.ResponseWriter, r *http.Request, say func(context.Context, Question) any) {
	var question Question
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		s.gate.refuse(w, r, http.StatusBadRequest, job.Errorf(job.Invalid, "this is nothing that a server asks"))
		return
	}
	answer, _ := json.Marshal(say(r.Context(), question)) // it has no value that could fail
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a server that has gone needs no answer
}

// mine returns nil if this server serves the board of a call, as it does unless another
// server has passed the call on and still another one is to have the board.
func (o *observer) mine(ctx context.Context, of about) error {
	p := passedOn(ctx)
	session, ok := ctx.Value(sessionKey{}).(*host.Session)
	if p == nil || !ok || of.board == "" || o.host.Takes(ctx, of.at(session), p.Must) {
		return nil
	}
	err := callError(ctx, job.Errorf(job.Unavailable, "the board %s is not open on this server", clip(of.board)))
	err.Meta().Set(answerHeader, answerNotMine)
	return err
}

// markMoved says of the error of a call whose board has moved, or moves since this server
// ends, whose the board is now, so that its caller goes on there at once. A server that
// passed the call on may ask there itself.
func (o *observer) markMoved(ctx context.Context, of about, cause error, answer *connect.Error) {
	if !host.Moved(cause) && !errors.Is(cause, errStopping) {
		return
	}
	if passedOn(ctx) != nil {
		answer.Meta().Set(answerHeader, answerMoved)
	}
	if next := o.passing.next(ctx, of); next != nil {
		next.has(answer.Meta())
	}
}
