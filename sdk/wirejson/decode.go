package wirejson

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/nearest"
)

// maxFields is how many fields a message may have, so that those seen fit into
// an array.
const maxFields = 256

// maxHinted is how long an unknown name may be to be compared with right ones.
const maxHinted = 64

// decoder reads messages from text.
type decoder struct {
	scanner

	lenient bool
	place   place
	depth   int
	items   int // so far, in all lists and maps
}

func (d *decoder) errorf(format string, args ...any) error {
	return &Error{Path: d.place.String(), Problem: fmt.Sprintf(format, args...)}
}

// at gives a syntax error its place.
func (d *decoder) at(err *syntaxError) error {
	return &Error{Path: d.place.String(), Problem: err.describe(d.text)}
}

// wanted is the error of a value of a wrong type or form.
func (d *decoder) wanted(what string) error {
	d.space()
	switch c := d.peek(); {
	case c == '"':
		start := d.pos
		if inside, _, err := d.str(); err == nil {
			return d.errorf("want %s, got the text \"%s\"", what, clip(string(inside)))
		}
		d.pos = start
	case c == '{':
		return d.errorf("want %s, got an object", what)
	case c == '[':
		return d.errorf("want %s, got a list", what)
	case c == 't', c == 'f', c == 'n', c == '-', '0' <= c && c <= '9':
		start := d.pos
		if err := d.scalar(); err == nil {
			return d.errorf("want %s, got %s", what, clip(string(d.text[start:d.pos])))
		}
		d.pos = start
	}
	return d.at(d.unexpected(what))
}

func (d *decoder) document(p *plan, m protoreflect.Message) error {
	d.space()
	if d.pos == len(d.text) {
		return d.errorf("there is no JSON: want an object, at least {}")
	}
	if err := d.message(p, m); err != nil {
		return err
	}
	d.space()
	if d.pos < len(d.text) {
		return d.at(d.unexpected("the end of the text after the object"))
	}
	return nil
}

func (d *decoder) message(p *plan, m protoreflect.Message) error {
	var seen [maxFields / 64]uint64
	return d.object(func(name []byte) error {
		f, ok := p.byName[string(name)]
		if !ok {
			return d.unknown(string(name), p)
		}
		d.place = append(d.place, step{name: f.name})
		word, bit := f.index/64, uint64(1)<<(f.index%64)
		if seen[word]&bit != 0 {
			return d.errorf("the field is given twice")
		}
		seen[word] |= bit
		if err := d.field(f, m); err != nil {
			return err
		}
		d.place = d.place[:len(d.place)-1]
		return nil
	})
}

// object goes through an object. member is called after each name and reads the
// value.
func (d *decoder) object(member func(name []byte) error) error {
	d.space()
	if d.peek() != '{' {
		return d.wanted("an object")
	}
	if d.depth++; d.depth > MaxNesting {
		return d.errorf("the JSON is nested deeper than %d levels", MaxNesting)
	}
	d.pos++
	d.space()
	for more := d.peek() != '}'; more; {
		name, err := d.name()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
			d.space()
		case '}':
			more = false
		default:
			return d.at(d.unexpected("',' or '}'"))
		}
	}
	d.pos++
	d.depth--
	return nil
}

// name reads a member's name and the colon.
func (d *decoder) name() ([]byte, error) {
	if d.peek() != '"' {
		return nil, d.at(d.unexpected("a name in double quotes"))
	}
	name, err := d.string()
	if err != nil {
		return nil, err
	}
	if err := d.colon(); err != nil {
		return nil, d.at(err)
	}
	return name, nil
}

func (d *decoder) unknown(name string, p *plan) error {
	d.place = append(d.place, step{name: name})
	if d.lenient {
		if err := d.value(MaxRawNesting); err != nil {
			return d.at(err)
		}
		d.place = d.place[:len(d.place)-1]
		return nil
	}
	switch {
	case len(p.names) == 0:
		return d.errorf("there is no such field: there are none here")
	case len(name) > maxHinted:
		return d.errorf("there is no such field")
	}
	return d.errorf("there is no such field%s", nearest.Hint(name, p.names))
}

func (d *decoder) field(f *field, m protoreflect.Message) error {
	d.space()
	if d.peek() == 'n' { // absent, by the rules of proto3 JSON
		if err := d.word("null"); err != nil {
			return d.at(err)
		}
		return nil
	}
	switch {
	case f.list:
		return d.list(f, m.Mutable(f.desc).List())
	case f.entries != nil:
		return d.mapping(f, m.Mutable(f.desc).Map())
	case f.form >= messageForm:
		return d.into(f, m.Mutable(f.desc).Message())
	}
	v, err := d.scalarValue(f)
	if err != nil || !v.IsValid() {
		return err
	}
	m.Set(f.desc, v)
	return nil
}

func (d *decoder) list(f *field, list protoreflect.List) error {
	if d.peek() != '[' {
		return d.wanted("a list")
	}
	d.pos++
	d.space()
	for i := 0; d.peek() != ']'; i++ {
		if err := d.item(f, i); err != nil {
			return err
		}
		if i > 0 {
			if d.peek() != ',' {
				return d.at(d.unexpected("',' or ']'"))
			}
			d.pos++
		}
		d.place = append(d.place, step{kind: inList, index: i})
		if err := d.element(f, list); err != nil {
			return err
		}
		d.place = d.place[:len(d.place)-1]
		d.space()
	}
	d.pos++
	return nil
}

// item counts an item of a list or map that has so many already. Who reads an
// answer trusts its server.
func (d *decoder) item(f *field, has int) error {
	if d.lenient {
		return nil
	}
	if has >= f.most {
		return d.errorf("want at most %d items", f.most)
	}
	if d.items++; d.items > boarddv1.MaxItems {
		return d.errorf("want at most %d items in all lists of a request together", boarddv1.MaxItems)
	}
	return nil
}

func (d *decoder) element(f *field, list protoreflect.List) error {
	if f.form >= messageForm {
		return d.into(f, list.AppendMutable().Message())
	}
	v, err := d.scalarValue(f)
	if err != nil || !v.IsValid() {
		return err
	}
	list.Append(v)
	return nil
}

func (d *decoder) mapping(f *field, m protoreflect.Map) error {
	return d.object(func(name []byte) error {
		if err := d.item(f, m.Len()); err != nil {
			return err
		}
		d.place = append(d.place, step{kind: inMap, name: string(name)})
		key, err := d.mapKey(f.entries, name)
		if err != nil {
			return err
		}
		if m.Has(key) {
			return d.errorf("the name is given twice")
		}
		if f.form >= messageForm {
			if err := d.into(f, m.Mutable(key).Message()); err != nil {
				return err
			}
		} else {
			v, err := d.scalarValue(f)
			if err != nil {
				return err
			}
			if v.IsValid() {
				m.Set(key, v)
			}
		}
		d.place = d.place[:len(d.place)-1]
		return nil
	})
}

func (d *decoder) mapKey(f *field, name []byte) (protoreflect.MapKey, error) {
	if f.form == stringForm {
		return protoreflect.ValueOfString(string(name)).MapKey(), nil
	}
	inner := decoder{scanner: scanner{text: name}, place: d.place}
	v, err := inner.scalarValue(f)
	if err != nil {
		return protoreflect.MapKey{}, err
	}
	if inner.pos < len(name) {
		return protoreflect.MapKey{}, inner.at(inner.unexpected("the end of the name"))
	}
	return v.MapKey(), nil
}

// into reads a message of any form.
func (d *decoder) into(f *field, m protoreflect.Message) error {
	switch f.form {
	case timestampForm:
		return d.timestamp(m)
	case durationForm:
		return d.duration(m)
	case maskForm:
		return d.fieldMask(m)
	default:
		return d.message(f.message, m)
	}
}
