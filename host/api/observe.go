package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/sdk/job"
)

// observer stands around every call: it turns errors into Connect's, panics
// into errors, counts, and writes the log. It never writes what a job holds, a
// secret or a claim's token.
type observer struct {
	logger  *slog.Logger
	metrics *metrics
	streams atomic.Int64 // open now
	host    *host.Host
	tracer  *trace.Tracer   // nil: nobody looks
	changes map[string]bool // the calls that change something

	refusals *refusalLog
	work     *budget
	passing  *passing // nil: every call is made here
}

// callWithin is how long a call may take that brings no deadline of its own. It
// is longer than the longest wait.
const callWithin = 2 * time.Minute

// maxStreamsOpen is how many streams may be open at once on the whole server.
const maxStreamsOpen = 10_000

type requestKey struct{}

// request is what the gate knows of an HTTP request.
type request struct {
	id     string
	remote string
	begun  time.Time
	code   string // how the call ended, once it has; empty: well
	passed bool   // another server has made the call
}

var _ connect.Interceptor = (*observer)(nil)

// WrapUnary stands around a call with one answer.
func (o *observer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (answer connect.AnyResponse, err error) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(ctx, callWithin)
		defer cancel()
		var of about
		ctx, idle := board.WithIdle(ctx)
		defer func() {
			err = o.finish(ctx, r.Spec(), of, begun, idle.Time(), err, recover())
			if failed := o.audit(ctx, r, answer, err); failed != nil && err == nil {
				answer, err = nil, callError(ctx, failed)
			}
		}()
		message, ok := r.Any().(proto.Message)
		if !ok {
			return nil, job.Internal
		}
		if err := mistake(message); err != nil {
			return nil, err
		}
		shrinks(ctx, func() int { return proto.Size(message) })
		of = aboutOf(message)
		if o.changes[callOf(r.Spec())] {
			if err := o.host.Auditor().CanRecord(); err != nil {
				return nil, err
			}
		}
		if err := works(ctx, o.work, itemsOf(message)); err != nil {
			return nil, err
		}
		if err := o.mine(ctx, of); err != nil {
			return nil, err
		}
		return o.within(ctx, r, of, next)
	}
}

// within makes the call, in a span of its own if anybody looks: what is not within
// it was spent on the way here.
func (o *observer) within(ctx context.Context, r connect.AnyRequest, of about, next connect.UnaryFunc) (connect.AnyResponse, error) {
	t := o.tracer
	if t == nil {
		return o.here(ctx, r, of, next)
	}
	ctx, span := t.Start(ctx, "board "+callOf(r.Spec()), trace.Attribute{Key: "boardd.board", Text: clip(of.board)})
	if s, ok := ctx.Value(sessionKey{}).(*host.Session); ok {
		span.Set(trace.Attribute{Key: "boardd.tenant", Text: s.Tenant()})
	}
	answer, err := o.here(ctx, r, of, next)
	code := ""
	if err != nil {
		code = strings.ToLower(job.KindOf(err).String())
	}
	span.End(code)
	return answer, err
}

// here makes the call, or has the server make it that has the board open.
func (o *observer) here(ctx context.Context, r connect.AnyRequest, of about, next connect.UnaryFunc) (connect.AnyResponse, error) {
	if o.passing != nil {
		return o.passing.unary(ctx, r, of, next)
	}
	return next(ctx, r)
}

// WrapStreamingHandler stands around a call with a stream of answers.
func (o *observer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		begun := time.Now()
		c := &checkedConn{StreamingHandlerConn: conn, ctx: ctx}
		c.begins = func(request any) error {
			if err := o.mine(ctx, c.of); err != nil {
				return err
			}
			if passedOn(ctx) != nil {
				conn.ResponseHeader().Set(answerHeader, answerTaken)
				return nil
			}
			return o.auditVisit(ctx, conn.Spec(), c.of.board, request)
		}
		open := o.streams.Add(1)
		defer func() {
			o.streams.Add(-1)
			err = o.finish(ctx, conn.Spec(), c.of, begun, 0, err, recover())
			_ = o.auditStream(ctx, conn.Spec(), c.of.board, err) // a refusal is an error already
			endSoon(ctx)
		}()
		if open > maxStreamsOpen {
			return job.Errorf(job.QuotaExceeded, "%d streams are open, which is the most that this server keeps: poll with ListEvents", maxStreamsOpen)
		}
		if err := waits(ctx); err != nil {
			return err
		}
		return next(ctx, c)
	}
}

// WrapStreamingClient is for clients, of which there are none here.
func (o *observer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// checkedConn refuses requests with a mistake.
type checkedConn struct {
	connect.StreamingHandlerConn

	ctx    context.Context //nolint:containedctx // the call's, for what Receive gives back of its room
	of     about
	begins func(request any) error // called when the request was read
}

// Receive reads the request.
func (c *checkedConn) Receive(message any) error {
	if err := c.StreamingHandlerConn.Receive(message); err != nil {
		return err
	}
	m, ok := message.(proto.Message)
	if !ok {
		return job.Internal
	}
	c.of = aboutOf(message)
	shrinks(c.ctx, func() int { return proto.Size(m) })
	if err := mistake(m); err != nil {
		return err
	}
	return c.begins(message)
}

// finish makes the error that the client sees, and notes the end of the call, of which
// it was idle for a part.
func (o *observer) finish(ctx context.Context, spec connect.Spec, of about, begun time.Time, idle time.Duration, err error, panicked any) error {
	var stack string
	if panicked != nil {
		if panicked == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so too
			panic(panicked)
		}
		err = &job.Error{Kind: job.Internal, Message: "a panic"}
		stack = string(debug.Stack())
	}
	if ended, ok := errors.AsType[*host.Ended](context.Cause(ctx)); ok && err != nil && panicked == nil {
		err = ended
	}
	took := time.Since(begun)
	call := callOf(spec)
	code := "ok"
	answer := err
	if err != nil {
		var connectErr *connect.Error
		if !errors.As(err, &connectErr) || panicked != nil {
			connectErr = callError(ctx, err)
		}
		answer, code = detailed(connectErr), connectErr.Code().String()
		o.markMoved(ctx, of, err, connectErr)
		if r, ok := ctx.Value(requestKey{}).(*request); ok {
			r.code = code
			if spec.StreamType != connect.StreamTypeUnary { // whose error comes long after its headers
				connectErr.Meta().Set(requestHeader, r.id)
			}
		}
	}
	if r, ok := ctx.Value(requestKey{}).(*request); !ok || !r.passed { // else it is the other server's
		o.metrics.call(call, code, took-idle)
	}
	o.log(ctx, call, of.board, code, took, err, panicked, stack)
	return answer
}

func (o *observer) log(ctx context.Context, call, board, code string, took time.Duration, err error, panicked any, stack string) {
	level := slog.LevelDebug
	switch code {
	case connect.CodeInternal.String(), connect.CodeUnknown.String(), connect.CodeDataLoss.String():
		level = slog.LevelError
	case connect.CodeUnauthenticated.String(), connect.CodePermissionDenied.String():
		if s, ok := ctx.Value(sessionKey{}).(*host.Session); ok && o.refusals.allow(callerOf(s)) {
			level = slog.LevelInfo
		}
	}
	if !o.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("call", call), slog.String("code", code), slog.Duration("took", took)}
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		attrs = append(attrs, slog.String("request", r.id), slog.String("remote", r.remote))
	}
	if s, ok := ctx.Value(sessionKey{}).(*host.Session); ok {
		who := s.WhoAmI()
		attrs = append(attrs, slog.String("tenant", who.Tenant), slog.String("token", who.TokenName))
	}
	if board != "" {
		attrs = append(attrs, slog.String("board", clip(board)))
	}
	if id := trace.ID(ctx); id != "" {
		attrs = append(attrs, slog.String("trace", id))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if panicked != nil {
		attrs = append(attrs, slog.Any("panic", panicked), slog.String("stack", stack))
	}
	o.logger.LogAttrs(ctx, level, "call", attrs...)
}
