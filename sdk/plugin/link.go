package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// A streamLink carries batches on Exec.
type streamLink struct {
	e      *executor
	stream pb.Driver_ExecClient
	cancel context.CancelFunc
	loop   sync.WaitGroup
}

// newStreamLink begins the stream, which lasts until close. opening bounds only the
// beginning.
func newStreamLink(opening context.Context, e *executor, client pb.DriverClient) (*streamLink, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(opening))
	stop := context.AfterFunc(opening, cancel)
	stream, err := client.Exec(ctx)
	if !stop() && err == nil {
		err = context.Cause(opening)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	l := &streamLink{e: e, stream: stream, cancel: cancel}
	l.loop.Go(l.receive)
	return l, nil
}

// send returns an error without the reason of a failure, which receive gets.
func (l *streamLink) send(_ uint64, f *frame) error { return l.stream.SendMsg(f) }

func (l *streamLink) close() {
	l.cancel()
	l.loop.Wait()
}

func (l *streamLink) receive() {
	for {
		var m frame
		if err := l.stream.RecvMsg(&m); err != nil {
			l.ended(err)
			return
		}
		answer, err := wire.ReadAnswer(m.bytes)
		if err == nil {
			err = l.e.deliver(&answer)
		}
		if err != nil {
			l.e.fault(err)
			return
		}
	}
}

func (l *streamLink) ended(err error) {
	switch {
	case errors.Is(err, io.EOF):
		l.e.fault(errors.New("it ended the stream of batches"))
	case status.Code(err) == codes.ResourceExhausted:
		l.e.fault(fmt.Errorf("it sent a message of more than %d MiB", MaxMessage>>20))
	default:
		l.e.fail("the driver has gone: " + tame(status.Convert(err).Message(), maxErrorText))
	}
}

// A unaryLink carries batches on ExecBatch, each in a call of its own.
type unaryLink struct {
	e      *executor
	conn   grpc.ClientConnInterface
	cancel context.CancelFunc
	base   func() context.Context // ends with close
	calls  sync.WaitGroup
}

func newUnaryLink(e *executor, conn grpc.ClientConnInterface) *unaryLink {
	ctx, cancel := context.WithCancel(context.Background())
	return &unaryLink{e: e, conn: conn, cancel: cancel, base: func() context.Context { return ctx }}
}

func (l *unaryLink) send(seq uint64, f *frame) error {
	l.calls.Go(func() { l.exec(seq, f) })
	return nil
}

func (l *unaryLink) close() {
	l.cancel()
	l.calls.Wait()
}

func (l *unaryLink) exec(seq uint64, f *frame) {
	ctx, cancel := bounded(l.base(), execTimeout+execGrace/2)
	defer cancel()
	var trailer metadata.MD
	var m frame
	err := l.conn.Invoke(ctx, pb.Driver_ExecBatch_FullMethodName, f, &m, grpc.Trailer(&trailer))
	if err != nil {
		l.failed(seq, call{op: "exec", changes: true}.failed(ctx, err, trailer), status.Code(err), trailer)
		return
	}
	answer, err := wire.ReadAnswer(m.bytes)
	if err != nil {
		l.e.fault(err)
		return
	}
	if answer.Seq == 0 {
		answer.Seq = seq // the call itself says which batch it answers
	}
	if answer.Seq != seq {
		l.e.fault(fmt.Errorf("it answers batch %d, and was asked for %d", answer.Seq, seq))
		return
	}
	if err := l.e.deliver(&answer); err != nil {
		l.e.fault(err)
		return
	}
	if err := l.e.complete(seq); err != nil {
		l.e.fault(err)
	}
}

// failed tells the error of one call from the end of the driver.
func (l *unaryLink) failed(seq uint64, err *job.Error, code codes.Code, trailer metadata.MD) {
	if told := len(trailer.Get(kindTrailer)) > 0; code == codes.Unavailable && !told {
		l.e.fail("the driver has gone: " + err.Message)
		return
	}
	l.e.lost(seq, err)
}

// How long a call may take at most, whatever its caller allows. What opens a store, or a board
// on it, may have to read all that is there, and what drops one to take all of that away: a try
// that is cut off begins from the start, and gets no further.
const (
	infoTimeout      = 5 * time.Second
	configureTimeout = 10 * time.Minute
	boardTimeout     = 10 * time.Minute
	streamTimeout    = 30 * time.Second
	readTimeout      = 30 * time.Second
	healthTimeout    = 5 * time.Second
	drainTimeout     = 5 * time.Second
)
