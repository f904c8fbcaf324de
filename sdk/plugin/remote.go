package plugin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// A remote is the other side's driver.
type remote struct {
	name  string
	calls pb.DriverClient // everything but batches, which have a connection of their own
	exec  *executor
	fault func(error) // the driver broke the contract
	stop  func()      // releases what carries the calls
	once  sync.Once
}

// newRemote begins to carry batches on hot and everything else on cold. The driver
// is configured already.
func newRemote(ctx context.Context, info *pb.InfoResponse, hot, cold grpc.ClientConnInterface, fault func(error), stop func()) (*remote, error) {
	r := &remote{name: info.Name, calls: pb.NewDriverClient(cold), stop: stop}
	r.fault = func(err error) {
		fault(fmt.Errorf("driver %s broke the contract: %w", r.name, err))
		r.exec.fail("the driver broke the contract: " + tame(err.Error(), maxErrorText))
	}
	r.exec = newExecutor(r.fault)
	if !info.ExecStream {
		r.exec.start(newUnaryLink(r.exec, hot))
		return r, nil
	}
	ctx, cancel := bounded(ctx, streamTimeout)
	defer cancel()
	l, err := newStreamLink(ctx, r.exec, pb.NewDriverClient(hot))
	if err != nil {
		return nil, err
	}
	r.exec.start(l)
	return r, nil
}

// Close drains the driver.
func (r *remote) Close() error {
	var err error
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		err = r.drain(ctx)
		r.exec.close()
		r.stop()
	})
	return err
}

func (r *remote) drain(ctx context.Context) error {
	_, err := unary(ctx, call{op: "drain"}, drainTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.DrainResponse, error) {
		return r.calls.Drain(ctx, &pb.DrainRequest{}, options...)
	})
	return err
}

// unary makes one call, which takes no longer than bound.
func unary[Res any](ctx context.Context, c call, bound time.Duration, do func(context.Context, ...grpc.CallOption) (Res, error)) (Res, error) {
	inner, cancel := bounded(ctx, bound)
	defer cancel()
	var trailer metadata.MD
	res, err := do(inner, grpc.Trailer(&trailer))
	if err != nil {
		var none Res
		return none, c.failed(ctx, err, trailer)
	}
	return res, nil
}

// wrong reports that an answer cannot be right.
func (r *remote) wrong(op string, kind job.Kind, err error) error {
	r.fault(fmt.Errorf("%s: %w", op, err))
	return &job.Error{Op: op, Kind: kind, Message: "the driver's answer is wrong: " + tame(err.Error(), maxErrorText)}
}

func (r *remote) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	m, err := unary(ctx, call{op: "open board"}, boardTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.BoardStatus, error) {
		return r.calls.OpenBoard(ctx, wire.SpecTo(spec), options...)
	})
	if err != nil {
		return driver.BoardStatus{}, err
	}
	status, err := wire.StatusFrom(m)
	if err != nil {
		return driver.BoardStatus{}, r.wrong("open board", job.Unavailable, err)
	}
	r.exec.open(spec.Name, status.Capabilities)
	return status, nil
}

func (r *remote) DropBoard(ctx context.Context, board string) error {
	_, err := unary(ctx, call{op: "drop board", changes: true}, boardTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.DropBoardResponse, error) {
		return r.calls.DropBoard(ctx, &pb.DropBoardRequest{Board: board}, options...)
	})
	if err == nil {
		r.exec.drop(board)
	}
	return err
}

func (r *remote) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return r.exec.apply(ctx, board, ops)
}

// maxRead is the number of ids in one request.
const maxRead = 10_000

func (r *remote) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records := make([]driver.Record, 0, len(ids))
	for some := range slices.Chunk(ids, maxRead) {
		more, err := r.read(ctx, board, some, parts)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	return records, nil
}

func (r *remote) read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records := make([]driver.Record, 0, len(ids))
	var joiner wire.Joiner
	req := &pb.ReadRequest{Board: board, Ids: wire.IDs(ids), Parts: uint32(parts)}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Records], error) {
		return r.calls.Read(ctx, req)
	}
	for m, err := range received[pb.Records](ctx, call{op: "read"}, readTimeout, open) {
		if err != nil {
			return nil, err
		}
		for _, rec := range m.Records {
			var err error
			if records, err = joiner.Add(records, rec); err == nil && len(records) > len(ids) {
				err = fmt.Errorf("there are more records than the %d that were asked for", len(ids))
			}
			if err != nil {
				return nil, r.wrong("read", job.Unavailable, err)
			}
		}
	}
	if err := errors.Join(joiner.Done(), checkRecords(ids, records)); err != nil {
		return nil, r.wrong("read", job.Unavailable, err)
	}
	return records, nil
}

func (r *remote) Count(ctx context.Context, board string) (driver.Counts, error) {
	m, err := unary(ctx, call{op: "count"}, readTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.Counts, error) {
		return r.calls.Count(ctx, &pb.CountRequest{Board: board}, options...)
	})
	if err != nil {
		return driver.Counts{}, err
	}
	counts, err := wire.CountsFrom(m)
	if err != nil {
		return driver.Counts{}, r.wrong("count", job.Unavailable, err)
	}
	return counts, nil
}

func (r *remote) Documents() driver.Documents { return remoteDocuments{r} }

// maxJoinedPage bounds what one page or one step of a watch may grow to, in bytes
// on the wire.
const maxJoinedPage = 256 << 20

var errTooLong = fmt.Errorf("one step of a stream is larger than %d MiB", maxJoinedPage>>20)

func (r *remote) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Page], error) {
		return r.calls.Scan(ctx, wire.ScanTo(board, req))
	}
	return func(yield func(driver.Page, error) bool) {
		var page driver.Page
		var joiner wire.Joiner
		size := 0
		for m, err := range received[pb.Page](ctx, call{op: "scan"}, 0, open) {
			if err == nil {
				if size += m.SizeVT(); size > maxJoinedPage {
					err = r.wrong("scan", job.Unavailable, errTooLong)
				} else if bad := wire.AddPage(&page, &joiner, m); bad != nil {
					err = r.wrong("scan", job.Unavailable, bad)
				}
			}
			if err != nil {
				yield(driver.Page{}, err)
				return
			}
			if m.More {
				continue
			}
			if !yield(page, nil) {
				return
			}
			page, joiner, size = driver.Page{}, wire.Joiner{}, 0
		}
	}
}

func (r *remote) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Changes], error) {
		return r.calls.Watch(ctx, &pb.WatchRequest{Board: board, After: uint64(after)})
	}
	return func(yield func(driver.Changes, error) bool) {
		var changes driver.Changes
		size := 0
		for m, err := range received[frame](ctx, call{op: "watch"}, 0, open) {
			more := false
			if err == nil {
				var bad error
				if size += len(m.bytes); size > maxJoinedPage {
					err = r.wrong("watch", job.Unavailable, errTooLong)
				} else if more, bad = wire.AddChanges(&changes, m.bytes); bad != nil {
					err = r.wrong("watch", job.Unavailable, bad)
				}
			}
			if err != nil {
				yield(driver.Changes{}, err)
				return
			}
			if more {
				continue
			}
			if !yield(changes, nil) {
				return
			}
			changes, size = driver.Changes{}, 0
		}
	}
}
