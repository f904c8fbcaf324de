package boarddv1

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Binary is the codec "proto" for Connect with generated code in place of
// reflection, which takes about half the time. It is wire compatible.
//
// It reads text without asking whether it is UTF-8: it is for clients, which
// trust their server. A server looks for text that is none before it reads with it.
type Binary struct{}

// vtMessage is what generated messages of this package have.
type vtMessage interface {
	SizeVT() int
	MarshalVT() ([]byte, error)
	MarshalToSizedBufferVT(data []byte) (int, error)
	UnmarshalVT(data []byte) error
}

// Name returns the name by which a content type asks for the codec.
func (Binary) Name() string { return "proto" }

// IsBinary tells Connect whether its texts may stand in a URL as they are.
func (Binary) IsBinary() bool { return true }

// Marshal writes a message.
func (b Binary) Marshal(message any) ([]byte, error) { return b.MarshalAppend(nil, message) }

// MarshalAppend appends a message to dst.
func (Binary) MarshalAppend(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case vtMessage:
		size, before := m.SizeVT(), len(dst)
		if cap(dst)-before < size {
			dst = append(make([]byte, 0, before+size), dst...)
		}
		dst = dst[:before+size]
		n, err := m.MarshalToSizedBufferVT(dst[before:])
		return dst[:before+n], err
	case proto.Message: // of another package, such as the health service's
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
	switch m := message.(type) {
	case vtMessage:
		if r, ok := message.(proto.Message); ok {
			proto.Reset(r)
		}
		return m.UnmarshalVT(data)
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("%T is not a protobuf message", message)
}

// Answers is Binary for clients that read much: all texts and values of a message
// are parts of one piece of memory, and so of one allocation. Who keeps one of
// them keeps the whole message.
type Answers struct{ Binary }

// Unmarshal reads a message, replacing what it held.
func (a Answers) Unmarshal(data []byte, message any) error {
	m, ok := message.(interface{ UnmarshalVTUnsafe(data []byte) error })
	if !ok {
		return a.Binary.Unmarshal(data, message)
	}
	if r, ok := message.(proto.Message); ok {
		proto.Reset(r)
	}
	return m.UnmarshalVTUnsafe(bytes.Clone(data)) // the caller's memory is used again
}
