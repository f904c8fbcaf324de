package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

type method[Req, Resp any] func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error)

// call makes one call of the API, and makes it again while the server is not
// reachable. That is safe because every change that a request asks for is named
// by it: by a uuid, a claim's token or a request id. wait is what the request asks
// the server to wait for.
func call[Req, Resp any](ctx context.Context, c *Client, op string, wait time.Duration, do method[Req, Resp], request *Req) (*Resp, error) {
	answer, _, err := tried(ctx, c, op, wait, do, request)
	return answer, err
}

// tried is call, and says whether the answer to an earlier try was lost, which may have
// made the change.
func tried[Req, Resp any](ctx context.Context, c *Client, op string, wait time.Duration, do method[Req, Resp], request *Req) (resp *Resp, unsure bool, err error) {
	deadline := time.Now().Add(c.retryFor + wait)
	reloaded, hurried := false, false
	for attempt := 0; ; attempt++ {
		began := time.Now()
		answer, way, changes, err := attemptCall(ctx, c, wait, do, request)
		if err == nil {
			c.note(began, nil)
			return answer.Msg, unsure, nil
		}
		failed := callError(op, err)
		if ctx.Err() != nil {
			return nil, unsure, gaveUp(op, ctx.Err())
		}
		if failed.Kind == job.Interrupted && !connect.IsWireError(err) {
			failed = &job.Error{Op: op, Kind: job.Unavailable, Message: "the server did not answer in time", Err: err}
		}
		lost := !connect.IsWireError(err) && !dialing(err) || failed.Kind == job.OutcomeUnknown // the server's own, or one behind it
		unsure = unsure || changes && lost
		if failed.Kind == job.Unavailable && unsure {
			failed.Kind = job.OutcomeUnknown
		}
		if wait > 0 {
			began = time.Now() // the server was to wait, and may have done it
		}
		if repeatable(failed.Kind, err) {
			c.note(began, failed)
		} else {
			c.note(began, nil)
		}
		if hurried = !hurried && way.again(failed.Kind, err); hurried {
			attempt-- // the addresses that were given have not been tried
			continue
		}
		if failed.Kind == job.Unauthenticated && !reloaded {
			reloaded = true
			if c.credentials.renew(way.token) {
				continue
			}
		}
		pause := c.pause(attempt, err)
		if !repeatable(failed.Kind, err) || time.Now().Add(pause).After(deadline) {
			return nil, unsure, inDoubt(failed, unsure)
		}
		if err := sleep.For(ctx, pause); err != nil {
			return nil, unsure, inDoubt(failed, unsure)
		}
	}
}

// inDoubt is the error of a call of which an earlier try may have made the change: that a
// later one was refused says nothing of it.
func inDoubt(failed *job.Error, unsure bool) *job.Error {
	switch failed.Kind {
	case job.OutcomeUnknown, job.Interrupted, job.Internal:
		return failed
	}
	if !unsure {
		return failed
	}
	return &job.Error{Op: failed.Op, Kind: job.OutcomeUnknown, Message: "the answer to an earlier try was lost, which may have done it; a later one was refused", Err: failed}
}

// pause is how long to wait after a failed attempt, from 0: not at all as long as
// another server was not asked yet.
func (c *Client) pause(attempt int, err error) time.Duration {
	round, n := attempt/len(c.servers.addrs), attempt%len(c.servers.addrs)
	if n+1 < len(c.servers.addrs) {
		return 0
	}
	pause := backoff(round, 50*time.Millisecond, 2*time.Second)
	if after, ok := retryAfter(err); ok {
		pause = max(pause, after)
	}
	return pause
}

// attemptCall makes a call once. changes says whether it asks for a change.
func attemptCall[Req, Resp any](ctx context.Context, c *Client, wait time.Duration, do method[Req, Resp], request *Req) (answer *connect.Response[Resp], way *way, changes bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout+wait)
	defer cancel()
	ctx, way = onWay(ctx, boardOf(request))
	signed := connect.NewRequest(request)
	way.token = c.credentials.sign(signed.Header())
	answer, err = do(ctx, signed)
	return answer, way, signed.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects, err
}

// boardOf returns the board that a request names, or "".
func boardOf(request any) string {
	if r, ok := request.(interface{ GetBoard() string }); ok {
		return r.GetBoard()
	}
	return ""
}

// dialing reports whether err stands for a connection that was never made, so
// that the server can't have carried out anything.
func dialing(err error) bool {
	if _, ok := errors.AsType[*unmade](err); ok {
		return true
	}
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// repeatable says whether a failed attempt is worth another one: the server was
// away, or its answer was lost or did not come in time.
func repeatable(kind job.Kind, err error) bool {
	if _, ok := errors.AsType[*unmade](err); ok {
		return false
	}
	return kind == job.Unavailable || kind == job.Interrupted || kind == job.OutcomeUnknown
}

// cut reports whether err is about the connection and not about an answer.
func cut(err error) bool {
	var network net.Error
	return connect.CodeOf(err) == connect.CodeUnavailable ||
		errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// retryAfter returns what the server asked for in its Retry-After header.
func retryAfter(err error) (time.Duration, bool) {
	var answer *connect.Error
	if !errors.As(err, &answer) {
		return 0, false
	}
	seconds, parseErr := strconv.Atoi(answer.Meta().Get("Retry-After"))
	if parseErr != nil || seconds < 0 {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}

// backoff returns the pause after the given attempt, from 0: first, doubled for
// each attempt up to most, and up to a half of it taken off by chance so that
// many clients don't come back at the same moment.
func backoff(attempt int, first, most time.Duration) time.Duration {
	pause := doubled(attempt, first, most)
	return pause - rand.N(pause/2+1)
}

func doubled(times int, first, most time.Duration) time.Duration {
	pause := first
	for range times {
		if pause >= most/2 {
			return most
		}
		pause *= 2
	}
	return min(pause, most)
}
