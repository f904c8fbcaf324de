package config

import (
	"slices"
	"strings"
)

// Books says where TaskFlow keeps the logbooks of a board's jobs, besides those
// that are kept on the board itself: in a directory, or in the store of a
// backend. The zero value is nowhere.
type Books struct {
	Directory string `json:"directory,omitempty"` // of its `dir` persistence
	Backend   string `json:"backend,omitempty"`
	Path      string `json:"path,omitempty"` // of its persistence in the backend's store
}

// DefaultBooksPath is where TaskFlow's persistence in ZooKeeper lies that was not
// told otherwise.
const DefaultBooksPath = "/taskflow"

// booksBlock is where a board's books block stands.
type booksBlock struct {
	section *section
	board   Board
}

// books reads where a board's books are.
func (l *loader) books(s *section, b *Board) {
	if l.wish {
		s.refuse("books", "only the configuration of the server can say where to read")
		return
	}
	inner := s.single("books")
	if inner == nil {
		return
	}
	b.Books.Directory, _ = inner.path("directory")
	b.Books.Backend, _ = inner.text("backend")
	path, given := inner.text("path")
	switch {
	case inner.has("directory") == inner.has("backend"):
		inner.problem(inner.at, "want directory, where TaskFlow's persistence is a folder of this machine, or else backend, where it is in a store")
	case inner.has("directory") && given:
		inner.wrong("path", "it is a path in the store of a backend; directory says it all")
	case inner.has("backend"):
		if b.Books.Path = DefaultBooksPath; given {
			b.Books.Path = path
		}
		if !isTreePath(b.Books.Path) {
			inner.wrong("path", "want an absolute path without a slash at its end, such as %s, got %q", DefaultBooksPath, clip(path))
		}
		l.shelves = append(l.shelves, booksBlock{inner, *b})
	}
	inner.close("board", b.Tenant+"/"+b.Name, "books")
}

// isTreePath reports whether a text is a path in a store.
func isTreePath(path string) bool {
	names := strings.Split(path, "/")
	return len(names) > 1 && names[0] == "" && !slices.ContainsFunc(names[1:], func(n string) bool {
		return n == "" || n == "." || n == ".." || strings.ContainsAny(n, "\x00\n")
	})
}

// checkBooks demands that the backend of a books block is there and open to the
// board's tenant.
func (l *loader) checkBooks() {
	for _, shelf := range l.shelves {
		l.checkGrant(shelf.section, shelf.board.Tenant, shelf.board.Books.Backend)
	}
}
