package plugin

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// Exec runs the boards of each batch side by side and answers each as soon as it
// is done. It waits for all of them before it returns.
func (s *server) Exec(stream pb.Driver_ExecServer) error {
	out := &outbox{ready: make(chan struct{}, 1)}
	var groups, sender sync.WaitGroup
	sender.Go(func() { out.run(stream) })
	defer func() {
		groups.Wait()
		out.close()
		sender.Wait()
	}()
	for {
		batch, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &job.Error{Kind: job.Unavailable, Err: err}
		}
		for _, group := range batch.Boards {
			groups.Go(func() { s.group(stream.Context(), batch, group, out.put) })
		}
	}
}

// ExecBatch answers a batch whole.
func (s *server) ExecBatch(ctx context.Context, batch *pb.Batch) (*pb.BatchResult, error) {
	answer := &pb.BatchResult{Seq: batch.Seq}
	var mu sync.Mutex
	var groups sync.WaitGroup
	for _, group := range batch.Boards {
		groups.Go(func() {
			s.group(ctx, batch, group, func(m *pb.BatchResult, sent func()) {
				mu.Lock()
				defer mu.Unlock()
				answer.Results = append(answer.Results, m.Results...)
				sent()
			})
		})
	}
	groups.Wait()
	return answer, nil
}

// group runs the ops of one board and gives the answers to put, in messages of
// about a page.
func (s *server) group(ctx context.Context, batch *pb.Batch, group *pb.BoardOps, put func(m *pb.BatchResult, sent func())) {
	if batch.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(batch.Timeout))
		defer cancel()
	}
	d, done, err := s.begin()
	if err != nil {
		done = func() {}
	}
	ops := make([]driver.Op, 0, len(group.Ops))
	for _, m := range group.Ops {
		op, wrong := wire.OpFrom(m)
		if wrong != nil && err == nil {
			err = invalid(wrong) // a defect of the host; nothing of the group is done
		}
		ops = append(ops, op)
	}
	var results []driver.Result
	if err != nil {
		results = allFailed(len(ops), err)
	} else {
		results = s.apply(ctx, d, group.Board, ops)
	}
	answer(batch.Seq, group.Ops, results, put, done)
}

func allFailed(n int, err error) []driver.Result {
	results := make([]driver.Result, n)
	for i := range results {
		results[i] = driver.Failed(err)
	}
	return results
}

// apply takes care that there are as many results as ops. After a panic nobody
// knows what was changed.
func (s *server) apply(ctx context.Context, d driver.Driver, board string, ops []driver.Op) (results []driver.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.logger.Error("the driver panicked", "method", "Apply", "panic", p, "stack", string(debug.Stack()))
			results = allFailed(len(ops), job.Errorf(job.OutcomeUnknown, "the driver panicked in Apply: %v", p))
		}
	}()
	failpoint.Hit("plugin/driver/before-apply")
	results = d.Apply(ctx, board, ops)
	failpoint.Hit("plugin/driver/before-answer")
	if len(results) != len(ops) {
		s.logger.Error("the driver answered with a wrong number of results", "ops", len(ops), "results", len(results))
		return allFailed(len(ops), job.Errorf(job.OutcomeUnknown, "the driver gave %d results for %d ops", len(results), len(ops)))
	}
	return results
}

// answer calls put for each message and sent once, for the last.
func answer(seq uint64, ops []*pb.Op, results []driver.Result, put func(m *pb.BatchResult, sent func()), sent func()) {
	slab := make([]pb.Result, len(results))
	out, used := &pb.BatchResult{Seq: seq, Results: make([]*pb.Result, 0, len(results))}, 0
	add := func(m *pb.Result) {
		n := m.SizeVT()
		if used+n > wire.PageSize && used > 0 {
			put(out, func() {})
			out, used = &pb.BatchResult{Seq: seq}, 0
		}
		out.Results = append(out.Results, m)
		used += n
	}
	for i := range results {
		m := &slab[i]
		wire.ResultTo(m, ops[i].Tag, &results[i])
		if len(results[i].Claims) > 0 {
			pages := wire.Claims(results[i].Claims, wire.PageSize)
			for _, claims := range pages[:len(pages)-1] {
				add(&pb.Result{Tag: m.Tag, Claims: claims, More: true})
			}
			m.Claims = pages[len(pages)-1]
		}
		add(m)
	}
	put(out, sent)
}

// An outbox sends messages in the order in which they were put. Those of one
// batch that are ready at the same time travel together.
type outbox struct {
	ready chan struct{} // has room for one

	mu     sync.Mutex
	queue  []outgoing
	closed bool
}

type outgoing struct {
	message *pb.BatchResult
	sent    func()
}

func (o *outbox) put(m *pb.BatchResult, sent func()) {
	o.mu.Lock()
	o.queue = append(o.queue, outgoing{m, sent})
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// run sends until the outbox is closed and empty. After an error it goes on
// taking messages, for the sake of those who wait for sent.
func (o *outbox) run(stream pb.Driver_ExecServer) {
	var err error
	for range o.ready {
		o.mu.Lock()
		queue, closed := o.queue, o.closed
		o.queue = nil
		o.mu.Unlock()
		for _, next := range queue {
			if err == nil {
				err = stream.Send(next.message)
			}
			next.sent()
		}
		if closed && len(queue) == 0 {
			return
		}
		if closed {
			o.wake()
		}
	}
}
