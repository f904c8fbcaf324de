package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/job"
)

// service answers the calls of BoardService. Who calls is in the context, put
// there by the gate; errors become Connect's in the interceptor.
type service struct {
	host     *host.Host
	stopping <-chan struct{} // closed when calls that wait should end
	metrics  *workMetrics
	passing  *passing // nil: every call is made here
}

var _ boarddv1connect.BoardServiceHandler = (*service)(nil)

type sessionKey struct{}

// sessionOf returns who calls.
func sessionOf(ctx context.Context) (*host.Session, error) {
	if s, ok := ctx.Value(sessionKey{}).(*host.Session); ok {
		return s, nil
	}
	return nil, job.Errorf(job.Unauthenticated, "this call needs a token: send the header Authorization: Bearer SECRET")
}

// boardOf returns the board of a call.
func (s *service) boardOf(ctx context.Context, name, call string) (*board.Board, error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	return session.Board(ctx, name, call)
}

// sifted is the items of a batch that could be read, and what was wrong with
// the others.
type sifted[T any] struct {
	good []T
	errs []error // by index of the request; nil for the good ones
}

func sift[In, T any](items []In, read func(In) (T, error)) sifted[T] {
	s := sifted[T]{good: make([]T, 0, len(items)), errs: make([]error, len(items))}
	for i, item := range items {
		value, err := read(item)
		if err != nil {
			s.errs[i] = err
			continue
		}
		s.good = append(s.good, value)
	}
	return s
}

// merge puts the results of the good items back in between the others.
func merge[T, R any](s sifted[T], results []R, failed func(error) R) []R {
	all := make([]R, len(s.errs))
	for i, err := range s.errs {
		switch {
		case err != nil:
			all[i] = failed(err)
		case len(results) == 0: // fewer than were asked for: nobody knows
			all[i] = failed(job.OutcomeUnknown)
		default:
			all[i], results = results[0], results[1:]
		}
	}
	return all
}

func toResults[T any](s sifted[T], errs []error) []*boarddv1.Result {
	results := make([]*boarddv1.Result, len(errs))
	for i, err := range errs {
		results[i] = &boarddv1.Result{Error: itemError(err)}
	}
	return merge(s, results, func(err error) *boarddv1.Result { return &boarddv1.Result{Error: itemError(err)} })
}

func siftIDs(texts []string) sifted[job.ID] {
	return sift(texts, func(text string) (job.ID, error) { return fromID("uuid", text) })
}

// margin is how long before a call's deadline its wait ends, so that the empty
// answer arrives in time.
const margin = 100 * time.Millisecond

// waitOf reads how long a call may wait.
func waitOf(ctx context.Context, d *durationpb.Duration) (time.Duration, error) {
	wait, err := fromDuration("wait", d, 0)
	if err != nil {
		return 0, err
	}
	wait = min(wait, board.MaxWait)
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = max(0, min(wait, left-max(margin, left/20)))
	}
	return wait, nil
}

// waiting runs a call that may wait. When the server stops, the call is ended
// and, where again is not nil, made once more without waiting.
func (s *service) waiting(ctx context.Context, wait time.Duration, call func(context.Context, time.Duration) error, readOnly bool) error {
	if wait == 0 {
		return call(ctx, 0)
	}
	soon, stop := waitsSoon(ctx)
	defer stop()
	waitCtx, release := s.untilStop(soon)
	defer release()
	err := call(waitCtx, wait)
	if ended, ok := errors.AsType[*host.Ended](context.Cause(ctx)); ok && readOnly {
		return ended // not an empty answer, as if the time were over
	}
	if (err != nil || readOnly) && ctx.Err() == nil && errors.Is(context.Cause(waitCtx), errCrowded) {
		return errCrowded // an empty answer would be asked for again at once
	}
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(waitCtx), errStopping) {
		return err
	}
	if readOnly {
		return call(ctx, 0)
	}
	return errStopping
}

// untilStop returns a context that ends with errStopping when the server stops.
func (s *service) untilStop(ctx context.Context) (context.Context, func()) {
	return untilStop(ctx, s.stopping)
}

func untilStop(ctx context.Context, stopping <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stopping:
			cancel(errStopping)
		case <-done:
		}
	})
	return ctx, func() {
		close(done)
		wg.Wait()
		cancel(nil)
	}
}

// errStopping ends calls that wait when the server stops.
var errStopping = error(job.Errorf(job.Unavailable, "the server is shutting down: ask again"))

func answer[T any](message *T) (*connect.Response[T], error) {
	return connect.NewResponse(message), nil
}

// only refuses a request that names jobs in two ways.
func only(first, second string, both bool) error {
	if both {
		return invalid(second, "want either %s or %s, got both", first, second)
	}
	return nil
}

// index names an element of a list.
func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
