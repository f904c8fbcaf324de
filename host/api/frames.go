package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// compressFrom is the size of the smallest message that is compressed, in bytes.
const compressFrom = 1 << 10

// A message of a stream is preceded by a byte of flags and by its length, in Connect's
// protocol as in gRPC's and gRPC-Web's.
const (
	frameHead       = 5
	frameCompressed = 1 // a flag
)

type streamKey struct{}

// frames writes events to one watcher. Each was put into its frame once for all who
// watch in the same form, and those that are told of together are flushed together.
// What precedes and follows them on the stream, Connect writes.
type frames struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	form       int
	write      func(job.Event) ([]byte, error)
}

// A frame's form, as a sum.
const (
	formJSON       = 1
	formCompressed = 2
)

// newFrames is for the stream of a call whose headers are written.
func newFrames(ctx context.Context) (*frames, error) {
	w, ok := ctx.Value(streamKey{}).(http.ResponseWriter)
	if !ok {
		return nil, job.Internal
	}
	f := &frames{w: w, controller: http.NewResponseController(w)}
	h, c := w.Header(), codec{"proto"}
	if strings.HasSuffix(h.Get("Content-Type"), "json") {
		f.form, c = formJSON, codec{"json"}
	}
	compressed := h.Get("Connect-Content-Encoding") == "gzip" || h.Get("Grpc-Encoding") == "gzip"
	if compressed {
		f.form += formCompressed
	}
	f.write = func(e job.Event) ([]byte, error) { return frame(c, compressed, e) }
	return f, nil
}

// send writes events, as one packet where they fit into one.
func (f *frames) send(events []*board.Told) error {
	_ = f.controller.SetWriteDeadline(time.Now().Add(sendWithin)) // without one a slow watcher is only slower to be noticed
	for _, e := range events {
		written, err := e.Form(f.form, f.write)
		if err != nil {
			return err
		}
		if _, err := f.w.Write(written); err != nil {
			return &job.Error{Kind: job.Interrupted, Err: err}
		}
	}
	if err := f.controller.Flush(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}

// frame puts an event into a frame.
func frame(c codec, compressed bool, e job.Event) ([]byte, error) {
	written, err := c.MarshalAppend(make([]byte, frameHead, jobRoom), toEvent(e))
	if err != nil {
		return nil, err
	}
	flags := byte(0)
	if compressed && len(written)-frameHead >= compressFrom {
		if written, err = squeeze(written); err != nil {
			return nil, err
		}
		flags = frameCompressed
	}
	written[0] = flags
	binary.BigEndian.PutUint32(written[1:], uint32(len(written)-frameHead)) //nolint:gosec // far below
	return written, nil
}

var squeezers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// squeeze compresses what follows the head of a frame.
func squeeze(written []byte) ([]byte, error) {
	z, _ := squeezers.Get().(*gzip.Writer)
	defer squeezers.Put(z)
	out := bytes.NewBuffer(make([]byte, frameHead, len(written)))
	z.Reset(out)
	if _, err := z.Write(written[frameHead:]); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
