package boarddv1

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Binary is the codec "proto" for Connect. Messages that are sent for each job have
// generated code in place of reflection, which takes about half the time; all others
// go through the standard runtime. What travels is the same.
//
// What a client reads is made of parts of one piece of memory, and so of one
// allocation: who keeps a text of an answer keeps the whole answer.
//
// The generated code reads text without asking whether it is UTF-8: it is for clients,
// which trust their server. A server looks for text that is none before it reads with it.
type Binary struct{}

// writer is what messages have that are sent for each job. One of the two readers
// below comes with it, by whether parts of the message outlive its call.
type writer interface {
	SizeVT() int
	MarshalToSizedBufferVT(data []byte) (int, error)
}

type copyingReader interface{ UnmarshalVT(data []byte) error }

// What a sharing reader has read is made of parts of data.
type sharingReader interface{ UnmarshalVTUnsafe(data []byte) error }

// Name returns the name by which a content type asks for the codec.
func (Binary) Name() string { return "proto" }

// IsBinary tells Connect whether its texts may stand in a URL as they are.
func (Binary) IsBinary() bool { return true }

// Marshal writes a message.
func (b Binary) Marshal(message any) ([]byte, error) { return b.MarshalAppend(nil, message) }

// MarshalAppend appends a message to dst.
func (Binary) MarshalAppend(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case writer:
		size, before := m.SizeVT(), len(dst)
		if cap(dst)-before < size {
			dst = append(make([]byte, 0, before+size), dst...)
		}
		dst = dst[:before+size]
		n, err := m.MarshalToSizedBufferVT(dst[before:])
		return dst[:before+n], err
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return dst, fmt.Errorf("%T is not a protobuf message", message)
}

// MarshalStable writes a message so that equal ones are written alike.
func (Binary) MarshalStable(message any) ([]byte, error) {
	if m, ok := message.(proto.Message); ok {
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	return nil, fmt.Errorf("%T is not a protobuf message", message)
}

// Unmarshal reads a message, replacing what it held.
func (Binary) Unmarshal(data []byte, message any) error {
	into, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	switch m := message.(type) {
	case copyingReader:
		proto.Reset(into)
		return m.UnmarshalVT(data)
	case sharingReader:
		proto.Reset(into)
		return m.UnmarshalVTUnsafe(bytes.Clone(data)) // the caller's memory is used again
	}
	return proto.Unmarshal(data, into)
}
