package plugin

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// received yields the messages of a server's stream, each as an M, until it ends,
// ctx does, or the loop is left. gRPC's flow control holds the server back while
// the loop is busy. A bound of 0 is none.
func received[M, T any](ctx context.Context, c call, bound time.Duration, open func(context.Context) (grpc.ServerStreamingClient[T], error)) iter.Seq2[*M, error] {
	return func(yield func(*M, error) bool) {
		inner, cancel := boundedOrNot(ctx, bound)
		defer cancel()
		stream, err := open(inner)
		if err != nil {
			yield(nil, c.failed(ctx, err, nil))
			return
		}
		for {
			m := new(M)
			err := stream.RecvMsg(m)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, c.failed(ctx, err, stream.Trailer()))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// remoteDocuments are the other side's documents.
type remoteDocuments struct{ r *remote }

func (d remoteDocuments) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	m, err := unary(ctx, call{op: "get document"}, readTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.Document, error) {
		return d.r.calls.GetDocument(ctx, &pb.DocumentRequest{Space: wire.SpaceTo(space), Name: name}, options...)
	})
	if err != nil {
		return driver.Document{}, err
	}
	return wire.DocumentFrom(m), nil
}

func (d remoteDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if len(doc.Data) > driver.MaxDocument {
		return 0, job.Errorf(job.Invalid, "the document %q has %d bytes; at most %d are kept", doc.Name, len(doc.Data), driver.MaxDocument)
	}
	req := &pb.PutDocumentRequest{Space: wire.SpaceTo(space), Document: wire.DocumentTo(doc), IfVersion: ifVersion}
	m, err := unary(ctx, call{op: "put document", changes: true}, readTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.PutDocumentResponse, error) {
		return d.r.calls.PutDocument(ctx, req, options...)
	})
	return m.GetVersion(), err
}

func (d remoteDocuments) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	req := &pb.DocumentRequest{Space: wire.SpaceTo(space), Name: name, IfVersion: ifVersion}
	_, err := unary(ctx, call{op: "delete document", changes: true}, readTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.DeleteDocumentResponse, error) {
		return d.r.calls.DeleteDocument(ctx, req, options...)
	})
	return err
}

func (d remoteDocuments) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	req := &pb.ListDocumentsRequest{Space: wire.SpaceTo(space), After: after, Limit: int64(limit)}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Documents], error) {
		return d.r.calls.ListDocuments(ctx, req)
	}
	var docs []driver.Document
	for m, err := range received[pb.Documents](ctx, call{op: "list documents"}, readTimeout, open) {
		if err != nil {
			return nil, err
		}
		for _, doc := range m.Documents {
			docs = append(docs, wire.DocumentFrom(doc))
		}
		if limit > 0 && len(docs) > limit {
			return nil, d.r.wrong("list documents", job.Unavailable, errors.New("there are more documents than were asked for"))
		}
	}
	return docs, nil
}

func (d remoteDocuments) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.DocumentChanges], error) {
		return d.r.calls.DocWatch(ctx, &pb.DocWatchRequest{Space: wire.SpaceTo(space)})
	}
	return func(yield func(driver.DocumentChange, error) bool) {
		for m, err := range received[pb.DocumentChanges](ctx, call{op: "watch documents"}, 0, open) {
			if err != nil {
				yield(driver.DocumentChange{}, err)
				return
			}
			for _, c := range m.Changes {
				if !yield(driver.DocumentChange{Document: wire.DocumentFrom(c.Document), Deleted: c.Deleted, Synced: c.Synced}, nil) {
					return
				}
			}
		}
	}
}

func boundedOrNot(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	if bound == 0 {
		return context.WithCancel(ctx)
	}
	return bounded(ctx, bound)
}
