package plugin

import (
	"fmt"

	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/sdk/plugin/internal/pb"
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

// A sharer is read without a copy of each text: its fields share one buffer.
type sharer interface {
	*pb.Changes | *pb.BatchResult
	UnmarshalVTUnsafe(b []byte) error
}

// share fills m from a buffer of its own, which lives as long as any text of it
// does: whoever keeps a field for long keeps a copy.
func share[M sharer](data mem.BufferSlice, m M) error { return m.UnmarshalVTUnsafe(data.Materialize()) }

// Unmarshal fills v, which is a new message.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *pb.Changes:
		return share(data, m)
	case *pb.BatchResult:
		return share(data, m)
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

// A frame is a message that is encoded already.
type frame struct{ bytes []byte }

func (f *frame) buffer() mem.Buffer { return mem.NewBuffer(&f.bytes, &buffers) }
