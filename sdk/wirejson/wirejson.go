// Package wirejson is the JSON form of boardd's public messages.
//
// It is proto3 JSON with rules of its own. An unknown field or enum name is an
// error that names its place and the nearest right name. What is written has
// every field: zeros, false, empty lists and empty maps too; only absent
// messages and absent optional fields are left out, and empty lists that are read
// only for who asks (boardd.v1.asked). A field that is marked
// (boardd.v1.json) holds JSON itself, which is passed through byte for byte
// once it is known to be well formed. A list or map of a request has a limit
// (boardd.v1.most), at which reading ends.
package wirejson

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/sdk/shorten"
)

// Limits on what is read.
const (
	// MaxNesting is how deep a message may be nested, in levels.
	MaxNesting = 64

	// MaxRawNesting is how deep the JSON of one marked field may be nested: as deep as
	// the details of a posting that TaskFlow can write, so that every one is shown. It
	// is more than any board takes from a caller, so that a job with such details
	// fails alone and not the whole call.
	MaxRawNesting = 511
)

// Error says what is wrong with a JSON text and where.
type Error struct {
	Path    string // such as `jobs[3].details`; empty for the text as a whole
	Problem string
}

// Error returns the problem with its place.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return e.Path + ": " + e.Problem
}

// Marshal returns the JSON form of m, on one line but for line breaks within
// marked fields.
func Marshal(m proto.Message) ([]byte, error) { return MarshalAppend(nil, m) }

// MarshalAppend is Marshal that appends to dst. After an error dst is returned
// as it was.
func MarshalAppend(dst []byte, m proto.Message) ([]byte, error) {
	reflected := m.ProtoReflect()
	plan, err := planOf(reflected.Descriptor())
	if err != nil {
		return dst, err
	}
	e := encoder{buf: dst}
	if err := e.message(plan, reflected); err != nil {
		return dst, err
	}
	return e.buf, nil
}

// Unmarshal reads the text of a request into m, which is emptied first. The error
// is an *Error where the text is to blame.
func Unmarshal(text []byte, m proto.Message) error { return unmarshal(text, m, false) }

// UnmarshalLenient is Unmarshal for answers, perhaps of a newer server: unknown
// fields and enum names are passed over, and lists may be of any length.
func UnmarshalLenient(text []byte, m proto.Message) error { return unmarshal(text, m, true) }

func unmarshal(text []byte, m proto.Message, lenient bool) error {
	proto.Reset(m)
	reflected := m.ProtoReflect()
	plan, err := planOf(reflected.Descriptor())
	if err != nil {
		return err
	}
	d := decoder{scanner: scanner{text: text}, lenient: lenient}
	return d.document(plan, reflected)
}

// Valid reports whether text may stand in a marked field: whether it is one JSON
// value in UTF-8 that is not nested too deeply.
func Valid(text []byte) bool {
	s := scanner{text: text}
	return s.whole(MaxRawNesting) == nil
}

// Codec is a codec for Connect, in place of the one named "json" that Connect
// brings along.
type Codec struct {
	Lenient bool // for clients: pass over what is unknown
}

// Name returns "json".
func (Codec) Name() string { return "json" }

// IsBinary returns false.
func (Codec) IsBinary() bool { return false }

// Marshal returns the JSON form of a message.
func (c Codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalStable is Marshal: equal messages always have equal texts.
func (c Codec) MarshalStable(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend is Marshal that appends to dst.
func (Codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return dst, fmt.Errorf("%T is not a protobuf message", message)
	}
	return MarshalAppend(dst, m)
}

// Unmarshal reads the JSON form of a message.
func (c Codec) Unmarshal(text []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	return unmarshal(text, m, c.Lenient)
}

// place is where in a message a reader or writer stands.
type place []step

type step struct {
	name  string // of a field or, with index -1, of a map's entry
	index int    // of a list's element
	kind  stepKind
}

type stepKind uint8

const (
	inField stepKind = iota
	inList
	inMap
)

func (p place) String() string {
	var b strings.Builder
	for i, s := range p {
		switch s.kind {
		case inList:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.index))
			b.WriteByte(']')
		case inMap:
			b.WriteByte('[')
			b.WriteString(strconv.Quote(clip(s.name)))
			b.WriteByte(']')
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(clip(s.name))
		}
	}
	return b.String()
}

// clip shortens a stranger's text for a message.
func clip(s string) string { return shorten.Text(s) }
