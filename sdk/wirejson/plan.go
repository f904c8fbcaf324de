package wirejson

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// form says how one value is written.
type form uint8

const (
	boolForm form = iota + 1
	int32Form
	uint32Form
	int64Form
	uint64Form
	floatForm
	doubleForm
	stringForm
	bytesForm
	rawForm // JSON itself
	enumForm
	messageForm
	timestampForm
	durationForm
	maskForm
)

// plan is all that reading and writing a message type needs to know of it.
type plan struct {
	fields []*field // by number
	byName map[string]*field
	names  []string // sorted
	only   *field   // the list of the fields that are given, not itself one of them; nil if there is none
}

// field is one field of a plan. For a map, the forms are those of its entries.
type field struct {
	desc     protoreflect.FieldDescriptor
	name     string
	key      string // `"name":`
	index    int    // in plan.fields
	presence bool   // absent is not the same as zero
	list     bool
	asked    bool   // the list is left out where it is empty and nobody asked for it
	most     int    // items of the list or map, in a request
	entries  *field // of a map: its key
	form     form
	enum     *enum
	message  *plan
}

type enum struct {
	byName   map[string]protoreflect.EnumNumber
	byNumber map[protoreflect.EnumNumber]string
	names    []string // by number
}

// plans remembers the plan of each message type. A plan is made from nothing but
// its descriptor, so that it does not matter who made it first.
var plans sync.Map // protoreflect.MessageDescriptor to *plan

func planOf(desc protoreflect.MessageDescriptor) (*plan, error) {
	if p, ok := plans.Load(desc); ok {
		return p.(*plan), nil
	}
	made := map[protoreflect.MessageDescriptor]*plan{}
	p, err := makePlan(desc, made)
	if err != nil {
		return nil, err
	}
	plans.Store(desc, p)
	return p, nil
}

func makePlan(desc protoreflect.MessageDescriptor, made map[protoreflect.MessageDescriptor]*plan) (*plan, error) {
	if p, ok := made[desc]; ok {
		return p, nil
	}
	if desc.FullName().Parent() == "google.protobuf" {
		return nil, fmt.Errorf("%s has no JSON form here", desc.FullName())
	}
	p := &plan{byName: map[string]*field{}}
	made[desc] = p
	all := desc.Fields()
	for i := range all.Len() {
		f, err := makeField(all.Get(i), made)
		if err != nil {
			return nil, err
		}
		if only, _ := proto.GetExtension(f.desc.Options(), boarddv1.E_Only).(bool); only {
			p.only = f
			continue
		}
		p.fields = append(p.fields, f)
		p.byName[f.name] = f
		p.names = append(p.names, f.name)
	}
	slices.SortFunc(p.fields, func(a, b *field) int { return int(a.desc.Number() - b.desc.Number()) })
	for i, f := range p.fields {
		f.index = i
	}
	if len(p.fields) > maxFields {
		return nil, fmt.Errorf("%s has more than %d fields", desc.FullName(), maxFields)
	}
	slices.Sort(p.names)
	return p, nil
}

func makeField(desc protoreflect.FieldDescriptor, made map[protoreflect.MessageDescriptor]*plan) (*field, error) {
	f := &field{
		desc: desc, name: desc.JSONName(), key: `"` + desc.JSONName() + `":`,
		presence: desc.HasPresence(), list: desc.IsList(), most: boarddv1.Most(desc),
	}
	f.asked, _ = proto.GetExtension(desc.Options(), boarddv1.E_Asked).(bool)
	value := desc
	if desc.IsMap() {
		key, err := makeField(desc.MapKey(), made)
		if err != nil {
			return nil, err
		}
		f.entries = key
		value = desc.MapValue()
	}
	switch value.Kind() {
	case protoreflect.EnumKind:
		f.form, f.enum = enumForm, makeEnum(value.Enum())
	case protoreflect.MessageKind:
		return f, f.setMessage(value.Message(), made)
	default:
		var ok bool
		if f.form, ok = scalars[value.Kind()]; !ok {
			return nil, fmt.Errorf("%s: a %s has no JSON form here", desc.FullName(), value.Kind())
		}
	}
	if raw, _ := proto.GetExtension(value.Options(), boarddv1.E_Json).(bool); raw && f.form == bytesForm {
		f.form = rawForm
	}
	return f, nil
}

func (f *field) setMessage(desc protoreflect.MessageDescriptor, made map[protoreflect.MessageDescriptor]*plan) (err error) {
	switch desc.FullName() {
	case "google.protobuf.Timestamp":
		f.form = timestampForm
	case "google.protobuf.Duration":
		f.form = durationForm
	case "google.protobuf.FieldMask":
		f.form = maskForm
	default:
		f.form = messageForm
		f.message, err = makePlan(desc, made)
	}
	return err
}

var scalars = map[protoreflect.Kind]form{
	protoreflect.BoolKind:     boolForm,
	protoreflect.Int32Kind:    int32Form,
	protoreflect.Sint32Kind:   int32Form,
	protoreflect.Sfixed32Kind: int32Form,
	protoreflect.Uint32Kind:   uint32Form,
	protoreflect.Fixed32Kind:  uint32Form,
	protoreflect.Int64Kind:    int64Form,
	protoreflect.Sint64Kind:   int64Form,
	protoreflect.Sfixed64Kind: int64Form,
	protoreflect.Uint64Kind:   uint64Form,
	protoreflect.Fixed64Kind:  uint64Form,
	protoreflect.FloatKind:    floatForm,
	protoreflect.DoubleKind:   doubleForm,
	protoreflect.StringKind:   stringForm,
	protoreflect.BytesKind:    bytesForm,
}

// unspecified is the name, in enums that have one, of the value that stands for none.
const unspecified = "UNSPECIFIED"

func makeEnum(desc protoreflect.EnumDescriptor) *enum {
	e := &enum{byName: map[string]protoreflect.EnumNumber{}, byNumber: map[protoreflect.EnumNumber]string{}}
	values := desc.Values()
	for i := range values.Len() {
		v := values.Get(i)
		name := string(v.Name())
		e.byName[name] = v.Number()
		if _, taken := e.byNumber[v.Number()]; !taken {
			e.byNumber[v.Number()] = name
		}
		if name != unspecified { // which nobody is to give
			e.names = append(e.names, name)
		}
	}
	return e
}
