package api

import (
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// texts knows which fields of a kind of message are text, so that a request that
// was read by generated code, which does not ask, can be asked whether its text
// is UTF-8. It looks at the request as it came: that needs no memory, and far
// less time than reading it with reflection.
type texts struct {
	fields map[protowire.Number]*texts // what a field holds: a message, or isText
}

var isText = new(texts)

// textsByName has the texts of each kind of message that was asked about.
var textsByName sync.Map // of protoreflect.FullName to *texts

// textsOf returns the texts of a kind of message.
func textsOf(d protoreflect.MessageDescriptor) *texts {
	if t, ok := textsByName.Load(d.FullName()); ok {
		return t.(*texts)
	}
	t := newTexts(d, map[protoreflect.FullName]*texts{})
	textsByName.Store(d.FullName(), t)
	return t
}

// newTexts reads a descriptor; made has those that are being read, since a message
// may hold others of its kind.
func newTexts(d protoreflect.MessageDescriptor, made map[protoreflect.FullName]*texts) *texts {
	if t := made[d.FullName()]; t != nil {
		return t
	}
	t := &texts{fields: make(map[protowire.Number]*texts)}
	made[d.FullName()] = t
	for i := range d.Fields().Len() {
		switch f := d.Fields().Get(i); f.Kind() {
		case protoreflect.StringKind:
			t.fields[f.Number()] = isText
		case protoreflect.MessageKind:
			t.fields[f.Number()] = newTexts(f.Message(), made)
		}
	}
	return t
}

// valid reports whether all text in an encoded message is UTF-8. The message is
// one that generated code could read.
func (t *texts) valid(data []byte) bool {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || number > protowire.MaxValidNumber {
			return false
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return false
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		switch field := t.fields[number]; {
		case field == isText && !utf8.Valid(value):
			return false
		case field != nil && field != isText && !field.valid(value):
			return false
		}
	}
	return true
}
