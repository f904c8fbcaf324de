package wirejson

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A google.protobuf.FieldMask is written as one string: its paths joined by
// commas, each with lowerCamelCase names. Its only field has the number 1.

func (e *encoder) fieldMask(m protoreflect.Message) error {
	paths := m.Get(m.Descriptor().Fields().ByNumber(1)).List()
	e.buf = append(e.buf, '"')
	for i := range paths.Len() {
		path := paths.Get(i).String()
		if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !inPath(r) || 'A' <= r && r <= 'Z' }) {
			return e.errorf("%q is not the path of a field", path)
		}
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, camelCase(path)...)
	}
	e.buf = append(e.buf, '"')
	return nil
}

func (d *decoder) fieldMask(m protoreflect.Message) error {
	const wanted = `the names of fields, such as "lease,maxLease"`
	text, start, err := d.shortText(wanted)
	if err != nil {
		return err
	}
	paths := m.Mutable(m.Descriptor().Fields().ByNumber(1)).List()
	if text == "" {
		return nil
	}
	for path := range strings.SplitSeq(text, ",") {
		if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !inPath(r) }) {
			d.pos = start
			return d.wanted(wanted)
		}
		paths.Append(protoreflect.ValueOfString(snakeCase(path)))
	}
	return nil
}

// inPath reports whether a path of fields may have a character.
func inPath(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '*'
}

func camelCase(path string) string {
	out := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] == '_' && i+1 < len(path) && 'a' <= path[i+1] && path[i+1] <= 'z' {
			i++
			out = append(out, path[i]-'a'+'A')
			continue
		}
		out = append(out, path[i])
	}
	return string(out)
}

func snakeCase(path string) string {
	out := make([]byte, 0, len(path)+8)
	for i := range len(path) {
		if c := path[i]; 'A' <= c && c <= 'Z' {
			out = append(out, '_', c-'A'+'a')
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}
