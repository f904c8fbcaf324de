package api

import (
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

// rules are what a request in binary form has to keep to that the generated code
// which reads it doesn't ask: text is UTF-8, lists and maps are no longer than their
// limits, and a message is given once. They are checked on the request as it came:
// that needs no memory, and far less time than reading it.
type rules struct {
	fields map[protowire.Number]*rule
	kept   int // fields that are counted
}

// rule is about one field.
type rule struct {
	name    string // in JSON
	text    bool
	message *rules // what the field holds; nil: a scalar
	list    bool   // or a map
	most    int    // occurrences; 0: any number, of which the last one counts
	packed  func([]byte) int
	index   int // among those that are counted
}

// maxCounted is how many lists, maps and messages a message of ours may have, so
// that their counters fit into an array.
const maxCounted = 32

// rulesByName has the rules of each kind of message that was asked about.
var rulesByName sync.Map // of protoreflect.FullName to *rules

// rulesOf returns the rules of a kind of message.
func rulesOf(d protoreflect.MessageDescriptor) *rules {
	if r, ok := rulesByName.Load(d.FullName()); ok {
		return r.(*rules)
	}
	r := newRules(d, map[protoreflect.FullName]*rules{})
	rulesByName.Store(d.FullName(), r)
	return r
}

// newRules reads a descriptor; made has those that are being read, since a message
// may hold others of its kind.
func newRules(d protoreflect.MessageDescriptor, made map[protoreflect.FullName]*rules) *rules {
	if r := made[d.FullName()]; r != nil {
		return r
	}
	r := &rules{fields: make(map[protowire.Number]*rule)}
	made[d.FullName()] = r
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		field := &rule{name: f.JSONName(), text: f.Kind() == protoreflect.StringKind, list: f.IsList() || f.IsMap()}
		if f.Kind() == protoreflect.MessageKind {
			field.message, field.most = newRules(f.Message(), made), 1
		}
		if field.list {
			field.most, field.packed = boarddv1.Most(f), packedItems(f.Kind())
		}
		if field.most > 0 {
			field.index = r.kept
			r.kept++
		}
		r.fields[f.Number()] = field
	}
	if r.kept > maxCounted {
		panic(fmt.Sprintf("%s has more than %d lists, maps and messages", d.FullName(), maxCounted))
	}
	return r
}

// packedItems returns what counts the items of a list that stands in one piece, or
// nil for items that always stand alone.
func packedItems(kind protoreflect.Kind) func([]byte) int {
	switch kind {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return nil
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return func(data []byte) int { return len(data) / 4 }
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return func(data []byte) int { return len(data) / 8 }
	}
	return func(data []byte) (n int) {
		for _, c := range data {
			if c < 0x80 { // the last byte of a number
				n++
			}
		}
		return n
	}
}

// check returns what is wrong with an encoded message, or nil. That it is one is the
// generated code's to say.
func (r *rules) check(data []byte) error {
	if err := new(ruleChecker).message(r, data); err != nil {
		return err
	}
	return nil // and not an interface with a nil pointer in it
}

// ruleChecker goes through one request.
type ruleChecker struct {
	items int // in all lists and maps, so far
}

// message checks one message. The error's path is put together on the way back.
func (c *ruleChecker) message(r *rules, data []byte) *wirejson.Error {
	var counts [maxCounted]int
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || number > protowire.MaxValidNumber {
			return notBinary
		}
		data = data[n:]
		value := data
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(data)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return notBinary
		}
		data = data[n:]
		if f := r.fields[number]; f != nil {
			if err := c.field(f, kind, value, &counts); err != nil {
				return err
			}
		}
	}
	return nil
}

// field checks one occurrence of a field.
func (c *ruleChecker) field(f *rule, kind protowire.Type, value []byte, counts *[maxCounted]int) *wirejson.Error {
	at := -1
	if f.most > 0 {
		at = counts[f.index]
		if err := c.count(f, kind, value, &counts[f.index]); err != nil {
			return err
		}
	}
	if kind != protowire.BytesType {
		return nil
	}
	if f.text && !utf8.Valid(value) {
		return &wirejson.Error{Path: f.name, Problem: "the text is not valid UTF-8"}
	}
	if f.message == nil {
		return nil
	}
	if err := c.message(f.message, value); err != nil {
		return within(f, at, err)
	}
	return nil
}

// count counts the items of an occurrence.
func (c *ruleChecker) count(f *rule, kind protowire.Type, value []byte, count *int) *wirejson.Error {
	n := 1
	if kind == protowire.BytesType && f.packed != nil {
		n = f.packed(value)
	}
	*count += n
	if *count > f.most {
		if !f.list {
			return &wirejson.Error{Path: f.name, Problem: "the field is given twice"}
		}
		return &wirejson.Error{Path: f.name, Problem: fmt.Sprintf("want at most %d items", f.most)}
	}
	if !f.list {
		return nil
	}
	if c.items += n; c.items > boarddv1.MaxItems {
		return &wirejson.Error{Path: f.name, Problem: fmt.Sprintf("want at most %d items in all lists of a request together", boarddv1.MaxItems)}
	}
	return nil
}

// notBinary is the error of what is no message at all.
var notBinary = &wirejson.Error{Problem: "this is no message in binary form"}

// within gives the error of a message in a field its place.
func within(f *rule, index int, err *wirejson.Error) *wirejson.Error {
	if err == notBinary {
		return err
	}
	path := f.name
	if f.list {
		path += "[" + strconv.Itoa(index) + "]"
	}
	if err.Path != "" {
		path += "." + err.Path
	}
	return &wirejson.Error{Path: path, Problem: err.Problem}
}
