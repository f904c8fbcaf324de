package policy

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxFactText is the most bytes that a fact of text has; a longer one counts as
// absent.
const MaxFactText = 1 << 10

// Facts finds the values that a manifest names in a job's details: one for each,
// in their order, nil for what is not there, of another type or too long. Details
// that are no JSON have none. Where a name stands twice in an object, the last
// one counts.
func Facts(details []byte, specs []FactSpec) []Fact {
	found := make([]Fact, len(specs))
	if len(specs) == 0 {
		return found
	}
	root := &place{}
	for i, s := range specs {
		root.at(s.Path).wanted = append(root.at(s.Path).wanted, i)
	}
	f := finder{decoder: json.NewDecoder(bytes.NewReader(details)), specs: specs, found: found}
	f.decoder.UseNumber()
	if err := f.value(root); err != nil {
		clear(found)
	}
	return found
}

// place is somewhere in a document that leads to what is wanted.
type place struct {
	wanted   []int // indices of facts
	children map[string]*place
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the place of a JSON pointer.
func (p *place) at(pointer string) *place {
	if pointer == "" {
		return p
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = unescape.Replace(name)
		next := p.children[name]
		if next == nil {
			next = &place{}
			if p.children == nil {
				p.children = map[string]*place{}
			}
			p.children[name] = next
		}
		p = next
	}
	return p
}

type finder struct {
	decoder *json.Decoder
	specs   []FactSpec
	found   []Fact
}

// value reads one value. A place of nil leads nowhere.
func (f *finder) value(p *place) error {
	if p == nil {
		var skipped json.RawMessage
		return f.decoder.Decode(&skipped)
	}
	p.forget(f.found)
	token, err := f.decoder.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		for _, i := range p.wanted {
			f.found[i] = factOf(f.specs[i].Type, token)
		}
		return nil
	}
	for i := 0; f.decoder.More(); i++ {
		name := strconv.Itoa(i)
		if delim == '{' {
			if token, err = f.decoder.Token(); err != nil {
				return err
			}
			name, _ = token.(string)
		}
		if err := f.value(p.children[name]); err != nil {
			return err
		}
	}
	_, err = f.decoder.Token()
	return err
}

// forget drops what was found at a place, which is read once more.
func (p *place) forget(found []Fact) {
	for _, i := range p.wanted {
		found[i] = nil
	}
	for _, c := range p.children {
		c.forget(found)
	}
}

// factOf returns a value as a fact of a type, nil if it is none.
func factOf(t FactType, token json.Token) Fact {
	switch v := token.(type) {
	case bool:
		if t == BoolFact {
			return v
		}
	case json.Number:
		return numberOf(t, v)
	case string:
		switch {
		case len(v) > MaxFactText:
		case t == StringFact:
			return v
		case t == TimeFact:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				return at
			}
		}
	}
	return nil
}

func numberOf(t FactType, v json.Number) Fact {
	switch t {
	case IntFact:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 { // such as 1e3
			return int64(f)
		}
	case FloatFact:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return nil
}
