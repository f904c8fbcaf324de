package plugin

import (
	"fmt"

	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// codec writes and reads protobuf with generated code where a message has it.
// What travels is the same as with gRPC's own codec.
type codec struct{}

type generated interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// Marshal returns the bytes of v.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *frame:
		return mem.BufferSlice{m.buffer()}, nil
	case generated:
		size := m.SizeVT()
		if mem.IsBelowBufferPoolingThreshold(size) {
			b := make([]byte, size)
			_, err := m.MarshalToSizedBufferVT(b)
			return mem.BufferSlice{mem.SliceBuffer(b)}, err
		}
		b := buffers.Get(size)
		if _, err := m.MarshalToSizedBufferVT(*b); err != nil {
			buffers.Put(b)
			return nil, err
		}
		return mem.BufferSlice{mem.NewBuffer(b, &buffers)}, nil
	case protobuf.Message:
		b, err := protobuf.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return nil, fmt.Errorf("%T is not a protobuf message", v)
}

// Unmarshal fills v, which is a new message. All fields that are read out of a frame
// share one buffer, which lives as long as any of them: copy a field that is kept for long.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*frame); ok {
		m.bytes = data.Materialize()
		return nil
	}
	b := data.MaterializeToBuffer(&buffers)
	defer b.Free()
	switch m := v.(type) {
	case generated:
		return m.UnmarshalVT(b.ReadOnlyData())
	case protobuf.Message:
		return protobuf.Unmarshal(b.ReadOnlyData(), m)
	}
	return fmt.Errorf("%T is not a protobuf message", v)
}

// Name returns the name of gRPC's own codec, with which this one agrees.
func (codec) Name() string { return proto.Name }

// A frame is a message in its encoded form.
type frame struct{ bytes []byte }

func (f *frame) buffer() mem.Buffer { return mem.NewBuffer(&f.bytes, &buffers) }
