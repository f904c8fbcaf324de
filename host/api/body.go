package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/job"
)

// maxInflation is how many bytes one byte of gzip unpacks to at most.
const maxInflation = 1032

// A countedBody finds room for what it brings before it is read. How much that is
// stands in the headers, or for gRPC and streams before each message.
type countedBody struct {
	io.ReadCloser

	request    *http.Request
	portion    *portion
	patience   time.Duration // until the whole body has come
	failed     func(error) *connect.Error
	enveloped  bool
	compressed bool

	begun  bool
	prefix []byte // of the next message, as far as it was read
	left   int64  // of this message
	err    error
}

// counted puts a countedBody around the body of a request.
func (g *gate) counted(r *http.Request, p *portion) {
	base, _ := parseType(r.Header.Get("Content-Type"))
	b := &countedBody{
		ReadCloser: r.Body, request: r, portion: p, patience: g.readWithin, enveloped: isGRPC(base) || strings.HasPrefix(base, "application/connect+"),
		failed: func(err error) *connect.Error {
			answer := callError(r.Context(), err)
			g.metrics.refused.WithLabelValues(answer.Code().String()).Inc()
			return answer
		},
	}
	encoding := "Content-Encoding"
	if b.enveloped {
		if encoding = "Connect-Content-Encoding"; isGRPC(base) {
			encoding = "Grpc-Encoding"
		}
	}
	name := r.Header.Get(encoding)
	b.compressed = name != "" && name != "identity"
	r.Body = b
}

// Read reads, when there is room.
func (b *countedBody) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.enveloped {
		return b.readMessage(p)
	}
	if !b.begun {
		b.begun = true
		if b.err = b.reserve(b.request.ContentLength, b.compressed); b.err != nil {
			return 0, b.err
		}
	}
	return b.read(p)
}

// read reads from the client. What comes too slowly, or in chunks that are none, is
// refused in words; of who has gone Connect knows by itself.
func (b *countedBody) read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var lost net.Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = b.failed(&job.Error{Kind: job.Interrupted, Message: "the request did not come whole within " + b.patience.String(), Err: context.DeadlineExceeded})
	case b.request.ProtoMajor > 1, errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &lost), b.request.Context().Err() != nil:
		return n, err
	default:
		b.err = b.failed(job.Errorf(job.Invalid, "the body of the request is not as its header says: %v", err))
	}
	return n, b.err
}

// prefixBytes is the length of what stands before each message: a byte of flags, of
// which the lowest says that the message is compressed, and how long it is.
const prefixBytes = 5

// readMessage reads a part of a prefix or of a message, and never of both.
func (b *countedBody) readMessage(p []byte) (int, error) {
	if b.left > 0 {
		n, err := b.read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, b.within(err, b.left > 0)
	}
	n, err := b.read(p[:min(len(p), prefixBytes-len(b.prefix))])
	b.prefix = append(b.prefix, p[:n]...)
	if len(b.prefix) < prefixBytes {
		return n, b.within(err, len(b.prefix) > 0)
	}
	b.left = int64(binary.BigEndian.Uint32(b.prefix[1:]))
	compressed := b.prefix[0]&1 != 0 && b.compressed
	b.prefix = b.prefix[:0]
	if b.left > MaxRequest {
		b.err = b.failed(job.Errorf(job.Invalid, "%s", tooLarge))
	} else {
		b.err = b.reserve(b.left, compressed)
	}
	return n, err // the next Read says what is wrong
}

// within returns an error of a read; where the body ends although more of a message has to
// come, the one that says so.
func (b *countedBody) within(err error, message bool) error {
	if message && errors.Is(err, io.EOF) {
		b.err = b.failed(job.Errorf(job.Invalid, "the body of the request ends within a message"))
		return b.err
	}
	return err
}

// reserve finds room for a message of so many bytes; -1: nobody knows.
func (b *countedBody) reserve(size int64, compressed bool) error {
	if size = roomFor(size, compressed); size <= MaxUncounted {
		return nil
	}
	if err := b.portion.reserve(b.request.Context(), int(size)); err != nil {
		return b.failed(err)
	}
	return nil
}

// roomFor returns how many bytes a message of a size takes at most, with what is
// unpacked from it.
func roomFor(size int64, compressed bool) int64 {
	if size < 0 || size > MaxRequest {
		size = MaxRequest
	}
	if compressed {
		size += min(MaxRequest, size*maxInflation)
	}
	return size
}
