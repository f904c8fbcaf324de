package plugin

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return &job.Error{Kind: job.Invalid, Err: err}
}

func (s *server) OpenBoard(ctx context.Context, req *pb.BoardSpec) (*pb.BoardStatus, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	spec, err := wire.SpecFrom(req)
	if err != nil {
		return nil, invalid(err)
	}
	if problems := s.program.Info.Board.Check(spec.Settings); len(problems) > 0 {
		return nil, job.Errorf(job.Invalid, "%s", problems[0].Error())
	}
	status, err := d.OpenBoard(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, ok := d.(driver.Mover); !ok {
		status.Capabilities.Moves, status.Capabilities.Empties = false, false // whatever a driver around it says
	}
	return wire.StatusTo(status), nil
}

func (s *server) DropBoard(ctx context.Context, req *pb.DropBoardRequest) (*pb.DropBoardResponse, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	return &pb.DropBoardResponse{}, d.DropBoard(ctx, req.Board)
}

func (s *server) Read(req *pb.ReadRequest, stream pb.Driver_ReadServer) error {
	d, done, err := s.begin()
	if err != nil {
		return err
	}
	defer done()
	ids, err := wire.IDsFrom(req.Ids)
	if err != nil {
		return invalid(err)
	}
	parts, err := wire.Parts(req.Parts)
	if err != nil {
		return invalid(err)
	}
	records, err := d.Read(stream.Context(), req.Board, ids, parts)
	if err != nil {
		return err
	}
	return wire.SendRecords(records, stream.Send)
}

func (s *server) Count(ctx context.Context, req *pb.CountRequest) (*pb.Counts, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	counts, err := d.Count(ctx, req.Board)
	if err != nil {
		return nil, err
	}
	return wire.CountsTo(counts), nil
}

func (s *server) Health(ctx context.Context, req *pb.HealthRequest) (*pb.HealthResponse, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	if end, ok := ctx.Deadline(); ok {
		// A host that gets no answer takes the driver for hung, and it is not if
		// only its store is slow.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/5))
		defer cancel()
	}
	return health(ctx, d, req.Usage)
}

func (s *server) Scan(req *pb.ScanRequest, stream pb.Driver_ScanServer) error {
	scan, err := wire.ScanFrom(req)
	if err != nil {
		return invalid(err)
	}
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[driver.Page, error] {
		return d.Scan(ctx, req.Board, scan)
	}, func(page driver.Page) error { return wire.SendPage(&page, stream.Send) })
}

func (s *server) Watch(req *pb.WatchRequest, stream pb.Driver_WatchServer) error {
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[driver.Changes, error] {
		return s.gathered(ctx, func(ctx context.Context) iter.Seq2[driver.Changes, error] {
			return d.Watch(ctx, req.Board, driver.Position(req.After))
		})
	}, func(c driver.Changes) error {
		room := func(size int) []byte { return (*buffers.Get(size))[:0] }
		return wire.SendChanges(&c, room, func(message []byte) error { return stream.SendMsg(&frame{message}) })
	})
}

var errDraining = job.Errorf(job.Unavailable, "the driver is draining")

// refused is the stream of a call that a driver has no answer to.
func refused[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// streamed sends what a driver's stream yields until it ends or the caller has
// gone; draining ends it as well.
func streamed[T any](ctx context.Context, s *server, open func(context.Context, driver.Driver) iter.Seq2[T, error], send func(T) error) error {
	d, done, err := s.begin()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.draining:
			cancel(errDraining)
		case <-ended:
		}
	}()
	for item, err := range open(ctx, d) {
		if err != nil {
			return ending(ctx, err)
		}
		if err := send(item); err != nil {
			return ending(ctx, err)
		}
	}
	return ending(ctx, nil)
}

// ending returns the error with which a stream ended; that the driver is draining comes
// first.
func ending(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDraining) {
		return errDraining
	}
	return err
}

func (s *server) GetDocument(ctx context.Context, req *pb.DocumentRequest) (*pb.Document, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	doc, err := d.Documents().Get(ctx, wire.SpaceFrom(req.Space), req.Name)
	if err != nil {
		return nil, err
	}
	return wire.DocumentTo(doc), nil
}

func (s *server) PutDocument(ctx context.Context, req *pb.PutDocumentRequest) (*pb.PutDocumentResponse, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	version, err := d.Documents().Put(ctx, wire.SpaceFrom(req.Space), wire.DocumentFrom(req.Document), req.IfVersion)
	if err != nil {
		return nil, err
	}
	return &pb.PutDocumentResponse{Version: version}, nil
}

func (s *server) DeleteDocument(ctx context.Context, req *pb.DocumentRequest) (*pb.DeleteDocumentResponse, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	return &pb.DeleteDocumentResponse{}, d.Documents().Delete(ctx, wire.SpaceFrom(req.Space), req.Name, req.IfVersion)
}

func (s *server) ListDocuments(req *pb.ListDocumentsRequest, stream pb.Driver_ListDocumentsServer) error {
	d, done, err := s.begin()
	if err != nil {
		return err
	}
	defer done()
	docs, err := d.Documents().List(stream.Context(), wire.SpaceFrom(req.Space), req.After, int(req.Limit))
	if err != nil {
		return err
	}
	out, used := &pb.Documents{}, 0
	for _, doc := range docs {
		if used > 0 && used+len(doc.Data) > wire.PageSize {
			if err := stream.Send(out); err != nil {
				return err
			}
			out, used = &pb.Documents{}, 0
		}
		out.Documents = append(out.Documents, wire.DocumentTo(doc))
		used += len(doc.Data) + len(doc.Name) + 32
	}
	return stream.Send(out)
}

func (s *server) DocWatch(req *pb.DocWatchRequest, stream pb.Driver_DocWatchServer) error {
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[driver.DocumentChange, error] {
		return d.Documents().Watch(ctx, wire.SpaceFrom(req.Space))
	}, func(c driver.DocumentChange) error {
		return stream.Send(&pb.DocumentChanges{Changes: []*pb.DocumentChange{{
			Document: wire.DocumentTo(c.Document), Deleted: c.Deleted, Synced: c.Synced,
		}}})
	})
}
