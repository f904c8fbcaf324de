package board

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// elsewhere is books that somebody else keeps; one without content cannot be read.
type elsewhere map[string]string

func (e elsewhere) Book(_ context.Context, uuid string) (Book, error) {
	book := Book{UUID: uuid, Name: "theirs", Content: []byte(e[uuid]), Source: "elsewhere"}
	switch text, ok := e[uuid]; {
	case !ok:
		return book, job.Errorf(job.NotFound, "there is no book")
	case text == "":
		return book, job.Errorf(job.Precondition, "elsewhere/%s cannot be read", uuid)
	case text == "away":
		return book, job.Errorf(job.Unavailable, "elsewhere is away")
	}
	return book, nil
}

// The board's own books come first; those that are kept elsewhere are only read.
func TestBooksElsewhere(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{Books: elsewhere{"theirs": `{"a":1.50}`, "spoiled": "", "away": "away"}})
	version, err := b.PutBook(t.Context(), Book{UUID: "ours", Content: []byte("1")}, new(uint64))
	if err != nil || version == 0 {
		t.Fatalf("version %d, %v", version, err)
	}
	for uuid, want := range map[string]Book{
		"ours":   {UUID: "ours", Content: []byte("1"), Version: version, Source: "boardd"},
		"theirs": {UUID: "theirs", Name: "theirs", Content: []byte(`{"a":1.50}`), Source: "elsewhere"},
	} {
		got, err := b.Book(t.Context(), uuid)
		if err != nil || got.Name != want.Name || string(got.Content) != string(want.Content) || got.Version != want.Version || got.Source != want.Source {
			t.Errorf("%s: %+v %v, want %+v", uuid, got, err, want)
		}
	}
	for uuid, kind := range map[string]job.Kind{"none": job.NotFound, "spoiled": job.Precondition, "away": job.Unavailable} {
		if _, err := b.Book(t.Context(), uuid); job.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", uuid, err, kind)
		}
	}
	// Written over, they would be hidden.
	for uuid, kind := range map[string]job.Kind{"theirs": job.Precondition, "spoiled": job.Precondition, "away": job.Unavailable} {
		if _, err := b.PutBook(t.Context(), Book{UUID: uuid, Content: []byte("2")}, nil); job.KindOf(err) != kind {
			t.Errorf("%s is written: %v, want %v", uuid, err, kind)
		}
	}
	_, err = b.PutBook(t.Context(), Book{UUID: "theirs"}, nil)
	if !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), `"theirs" is kept in elsewhere`) {
		t.Errorf("it does not say where: %v", err)
	}
}
