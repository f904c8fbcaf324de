package api

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// MaxRequest is the size of the largest request after decompression, in bytes.
const MaxRequest = 8 << 20

// hardLimit is where Connect itself stops reading. Between the two a request is
// refused with our own words.
const hardLimit = 2 * MaxRequest

// compression is gzip that unpacks no more than shows that a request is too
// large. Connect by itself would unpack the rest too, to say how large it is.
func compression() connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &boundedGzip{} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) })
}

type boundedGzip struct {
	gzip.Reader

	left int64
}

// Reset begins to unpack another message.
func (z *boundedGzip) Reset(r io.Reader) error {
	z.left = MaxRequest + 1
	return z.Reader.Reset(r)
}

// Read unpacks.
func (z *boundedGzip) Read(p []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n, err := z.Reader.Read(p[:min(int64(len(p)), z.left)])
	z.left -= int64(n)
	return n, err
}

// codec reads requests and writes answers. Connect answers by itself to a
// request that its codec refuses, before any interceptor has seen the call, so
// this codec never refuses: it leaves what is wrong in the message, where
// mistake finds it.
type codec struct {
	name string
}

// codecs are those that take the place of Connect's own.
func codecs() connect.HandlerOption {
	return connect.WithHandlerOptions(
		connect.WithCodec(codec{"proto"}), connect.WithCodec(codec{"json"}), connect.WithCodec(codec{"json; charset=utf-8"}))
}

// Name returns the name by which a content type asks for the codec.
func (c codec) Name() string { return c.name }

// IsBinary tells Connect whether its texts may stand in a URL as they are.
func (c codec) IsBinary() bool { return c.name == "proto" }

// Marshal writes an answer.
func (c codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalStable writes an answer that is equal for equal messages.
func (c codec) MarshalStable(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", message)
	}
	if c.IsBinary() {
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	return wirejson.Marshal(m)
}

// MarshalAppend appends an answer to dst.
func (c codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return dst, fmt.Errorf("%T is not a protobuf message", message)
	}
	if c.IsBinary() {
		return boarddv1.Binary{}.MarshalAppend(dst, m)
	}
	return wirejson.MarshalAppend(dst, m)
}

// Unmarshal reads a request.
func (c codec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	switch {
	case len(data) > MaxRequest:
		setMistake(m, "", tooLarge)
	case c.IsBinary():
		if err := unmarshalBinary(data, m); err != nil {
			setMistake(m, pathOf(err), err.Error())
		}
	default:
		if err := wirejson.Unmarshal(data, m); err != nil {
			setMistake(m, pathOf(err), err.Error())
		}
	}
	return nil
}

// unmarshalBinary reads a request in binary form.
func unmarshalBinary(data []byte, m proto.Message) error {
	err := rulesOf(m.ProtoReflect().Descriptor()).check(data)
	if err == nil {
		err = boarddv1.Binary{}.Unmarshal(data, m)
	}
	if err == nil || pathOf(err) != "" {
		return err
	}
	return fmt.Errorf("the request is not a %s in binary form", m.ProtoReflect().Descriptor().Name())
}

// pathOf returns the field that an error of reading is about, or "".
func pathOf(err error) string {
	if wrong, ok := errors.AsType[*wirejson.Error](err); ok {
		return wrong.Path
	}
	return ""
}

var tooLarge = fmt.Sprintf("the request has more than %d bytes after decompression, which is the most: send fewer jobs in one call", MaxRequest)

// mistakeField is a field number that no message of ours has.
const mistakeField = protowire.MaxValidNumber

// setMistake empties m and leaves in it what is wrong with the request.
func setMistake(m proto.Message, path, text string) {
	proto.Reset(m)
	unknown := protowire.AppendTag(nil, mistakeField, protowire.BytesType)
	unknown = protowire.AppendString(unknown, path)
	unknown = protowire.AppendTag(unknown, mistakeField, protowire.BytesType)
	unknown = protowire.AppendString(unknown, text)
	m.ProtoReflect().SetUnknown(unknown)
}

// mistake returns what the codec found wrong with a request, or nil. A client
// that sends such a field by itself is told what it sent.
func mistake(m proto.Message) error {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	var texts []string
	for len(unknown) > 0 {
		number, kind, tag := protowire.ConsumeTag(unknown)
		n := tag + protowire.ConsumeFieldValue(number, kind, unknown[max(tag, 0):])
		if tag < 0 || n <= tag {
			break
		}
		if number == mistakeField && kind == protowire.BytesType {
			if text, size := protowire.ConsumeString(unknown[tag:]); size >= 0 {
				texts = append(texts, text)
			}
		}
		unknown = unknown[n:]
	}
	if len(texts) != 2 {
		return nil
	}
	return &fieldError{path: texts[0], err: job.Errorf(job.Invalid, "%s", texts[1])}
}
