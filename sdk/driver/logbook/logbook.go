// Package logbook reads the logbooks that OpenStack TaskFlow keeps in a tree of
// paths: its `dir` and its `zookeeper` persistence. Both have the folders books,
// flow_details and atom_details, an item of JSON for each uuid in them, and below
// a book and below a flow the names of what belongs to it.
//
// It only reads. A tree is TaskFlow's, and what cannot be read there stays as it
// is.
package logbook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
	"github.com/boardd/boardd/sdk/sleep"
)

// Limits on one book.
const (
	MaxBytes = 4 << 20 // of everything that belongs to it
	MaxParts = 10_000  // flows and atoms
)

// The folders of a tree.
const (
	books = "books"
	flows = "flow_details"
	atoms = "atom_details"
)

// A Tree is where TaskFlow keeps books.
type Tree interface {
	// Items returns what is kept of each uuid in a folder; nil: nothing. What is
	// longer than MaxBytes may be cut anywhere beyond that.
	Items(ctx context.Context, folder string, uuids []string) ([][]byte, error)

	// Links returns the uuids of what belongs to an item, in any order.
	Links(ctx context.Context, folder, uuid string) ([]string, error)

	// Path names an item to people.
	Path(folder, uuid string) string
}

// Book is a logbook with everything in it.
type Book struct {
	Name string

	// Content is the book as TaskFlow wrote it, a JSON object, with the flows as
	// its member flow_details and in each of them the atoms as atom_details.
	Content []byte
}

// How often a book is read that cannot be read, and the time between: TaskFlow
// may be about to write it. Its files are written in place, and a flow names an
// atom a moment before that is there.
const (
	reads     = 6
	firstWait = 10 * time.Millisecond
)

// Read returns a book, or NotFound. One of which a part cannot be read, also
// after a while, is Corrupt, and the error says which part and why.
func Read(ctx context.Context, tree Tree, uuid string) (Book, error) {
	if !IsName(uuid) {
		return Book{}, job.Errorf(job.NotFound, "TaskFlow can keep no book %q", clip(uuid))
	}
	for n := 1; ; n++ {
		r := reader{tree: tree}
		book, err := r.book(ctx, uuid)
		if n == reads || !errors.Is(err, job.Corrupt) {
			return book, err
		}
		if sleep.For(ctx, firstWait<<(n-1)) != nil {
			return Book{}, err
		}
	}
}

// MaxName is the longest uuid of a book, in bytes; it is a name in a folder.
const MaxName = 255

// IsName reports whether a text can be the uuid of a book, a flow or an atom:
// a name in a folder that stands for itself.
func IsName(uuid string) bool {
	return uuid != "" && uuid != "." && uuid != ".." && len(uuid) <= MaxName && !strings.ContainsAny(uuid, "/\\\x00")
}

// NameOf returns the name of a book by its content.
func NameOf(content []byte) (string, error) {
	var b struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(content, &b)
	return b.Name, err
}

// reader reads one book.
type reader struct {
	tree         Tree
	bytes, parts int
}

func (r *reader) book(ctx context.Context, uuid string) (Book, error) {
	items, err := r.tree.Items(ctx, books, []string{uuid})
	if err != nil {
		return Book{}, err
	}
	if items[0] == nil {
		return Book{}, job.Errorf(job.NotFound, "TaskFlow keeps no book %q", clip(uuid))
	}
	text, err := r.object(books, uuid, items[0])
	if err != nil {
		return Book{}, err
	}
	list, err := r.flows(ctx, uuid)
	if err != nil {
		return Book{}, err
	}
	content, err := r.with(books, uuid, text, flows, list)
	if err != nil {
		return Book{}, err
	}
	name, err := NameOf(content)
	return Book{Name: name, Content: content}, err
}

// flows returns the flows of a book, each with its atoms.
func (r *reader) flows(ctx context.Context, book string) ([][]byte, error) {
	uuids, items, err := r.below(ctx, books, book, flows)
	if err != nil {
		return nil, err
	}
	list := make([][]byte, len(items))
	for i, uuid := range uuids {
		text, err := r.object(flows, uuid, items[i])
		if err != nil {
			return nil, err
		}
		below, err := r.atoms(ctx, uuid)
		if err != nil {
			return nil, err
		}
		if list[i], err = r.with(flows, uuid, text, atoms, below); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// atoms returns the atoms of a flow: {"type": ..., "atom": {...}} each.
func (r *reader) atoms(ctx context.Context, flow string) ([][]byte, error) {
	uuids, items, err := r.below(ctx, flows, flow, atoms)
	if err != nil {
		return nil, err
	}
	for i, uuid := range uuids {
		text, err := plain(items[i])
		if err != nil {
			return nil, r.corrupt(atoms, uuid, "%v", err)
		}
		var a struct {
			Type string          `json:"type"`
			Atom json.RawMessage `json:"atom"`
		}
		if err := json.Unmarshal(text, &a); err != nil || a.Type == "" {
			return nil, r.corrupt(atoms, uuid, "want an object with type and atom")
		}
		if _, err := r.object(atoms, uuid, a.Atom); err != nil {
			return nil, err
		}
		items[i] = text
	}
	return items, nil
}

// below returns what belongs to an item, sorted, and what is kept of each.
func (r *reader) below(ctx context.Context, folder, uuid, in string) (uuids []string, items [][]byte, err error) {
	uuids, err = r.tree.Links(ctx, folder, uuid)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(uuids)
	if r.parts += len(uuids); r.parts > MaxParts {
		return nil, nil, job.Errorf(job.Precondition, "the book has more than %d flows and atoms, and cannot be shown", MaxParts)
	}
	items, err = r.tree.Items(ctx, in, uuids)
	for i := range items {
		if err == nil && items[i] == nil {
			err = r.corrupt(folder, uuid, "it names %s, which is not there", r.tree.Path(in, clip(uuids[i])))
		}
		if r.bytes += len(items[i]); err == nil && r.bytes > MaxBytes {
			err = job.Errorf(job.Precondition, "the book has more than %d bytes, and cannot be shown", MaxBytes)
		}
	}
	return uuids, items, err
}

// object checks what is kept of an item: a JSON object with its uuid and a name.
// It returns the text as others read it, too.
func (r *reader) object(folder, uuid string, item []byte) ([]byte, error) {
	if len(item) > MaxBytes {
		return nil, job.Errorf(job.Precondition, "%s has more than %d bytes, and cannot be shown", r.tree.Path(folder, uuid), MaxBytes)
	}
	text, err := plain(item)
	if err != nil {
		return nil, r.corrupt(folder, uuid, "%v", err)
	}
	var o struct {
		UUID *string `json:"uuid"`
		Name *string `json:"name"`
	}
	err = json.Unmarshal(text, &o)
	switch {
	case err != nil || text[0] != '{':
		return nil, r.corrupt(folder, uuid, "want an object with name and uuid as texts")
	case o.UUID == nil || o.Name == nil:
		return nil, r.corrupt(folder, uuid, "its name or its uuid is missing")
	case *o.UUID != uuid:
		return nil, r.corrupt(folder, uuid, "it says that its uuid is %q", clip(*o.UUID))
	}
	return text, nil
}

// with adds a list to an object that does not have it. The rest of the object
// stays as it is, to the last digit.
func (r *reader) with(folder, uuid string, object []byte, member string, list [][]byte) ([]byte, error) {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(object, &has); err != nil || has[member] != nil {
		return nil, r.corrupt(folder, uuid, "it has a member %s of its own", member)
	}
	var b bytes.Buffer
	b.Write(object[:len(object)-1]) // there is a name at least, so that a comma has to follow
	fmt.Fprintf(&b, ", %q: [", member)
	b.Write(bytes.Join(list, []byte(", ")))
	b.WriteString("]}")
	return b.Bytes(), nil
}

func (r *reader) corrupt(folder, uuid, format string, args ...any) error {
	return job.Errorf(job.Corrupt, "%s cannot be read: %s", r.tree.Path(folder, clip(uuid)), fmt.Sprintf(format, args...))
}

// clip shortens a stranger's text for a message.
func clip(s string) string { return shorten.Text(s) }
