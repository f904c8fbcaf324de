package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

type bookView struct {
	page
	Board string
	Job   *job.Job
	Book  board.Book
	Not   string // why it cannot be shown
	Flows []bookFlow
	Tree  *node // the whole of a book that TaskFlow did not write
}

// bookFlow is a flow in a book of TaskFlow's, as its JSON has it.
type bookFlow struct {
	Name  string      `json:"name"`
	State string      `json:"state"`
	Atoms []bookEntry `json:"atom_details"`
}

// bookEntry is an atom with what it is.
type bookEntry struct {
	Type string   `json:"type"`
	Atom bookAtom `json:"atom"`
}

// Sort is task or retry.
func (e bookEntry) Sort() string { return strings.ToLower(strings.TrimSuffix(e.Type, "_DETAIL")) }

// bookAtom is a task or a retry of a flow. What it was given and what it made are left out:
// they may be large, and secret.
type bookAtom struct {
	Name          string       `json:"name"`
	State         string       `json:"state"`
	UpdatedAt     string       `json:"updated_at"` // only from a database
	Failure       *bookFailure `json:"failure"`
	RevertFailure *bookFailure `json:"revert_failure"`
}

type bookFailure struct {
	Types []string `json:"exc_type_names"`
	Text  string   `json:"exception_str"`
}

// String is how Python prints the exception.
func (f *bookFailure) String() string {
	if f == nil {
		return ""
	}
	if len(f.Types) == 0 {
		return f.Text
	}
	return f.Types[0] + ": " + f.Text
}

// Failed is why the atom failed, or why undoing it did.
func (a bookAtom) Failed() string { return cmp.Or(a.RevertFailure.String(), a.Failure.String()) }

// Since is when the atom was last written; zero: nobody knows. TaskFlow writes times
// without a zone, in UTC.
func (a bookAtom) Since() time.Time {
	at, _ := time.Parse("2006-01-02T15:04:05", strings.Replace(a.UpdatedAt, " ", "T", 1)) // zero if it is none
	return at
}

// bookRanks say which atoms are of interest: what failed or goes on comes before what is
// done, and that before what was not begun.
var bookRanks = []string{"FAILURE", "REVERT_FAILURE", "RUNNING", "REVERTING", "RETRYING", "REVERTED", "SUCCESS"}

func (a *bookAtom) rank() int {
	if a.Failed() != "" {
		return -1
	}
	if at := slices.Index(bookRanks, a.State); at >= 0 {
		return at
	}
	return len(bookRanks)
}

// bookFlows reads a book as TaskFlow writes one; none if it is another one.
func bookFlows(content []byte) []bookFlow {
	var b struct {
		Flows []bookFlow `json:"flow_details"`
	}
	if json.Unmarshal(content, &b) != nil {
		return nil
	}
	for _, f := range b.Flows {
		slices.SortStableFunc(f.Atoms, func(a, b bookEntry) int {
			return cmp.Or(a.Atom.rank()-b.Atom.rank(), cmp.Compare(a.Atom.Name, b.Atom.Name))
		})
	}
	return b.Flows
}

// bookPage shows the logbook of a job: where its flow stands. It is a page of its own, since
// the book may lie in another store, which then is asked only for who wants to see it.
func (u *UI) bookPage(w http.ResponseWriter, r *http.Request, v *visit) {
	f, err := u.find(r, v, false)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	name := r.PathValue("board")
	view := bookView{page: u.boardsPage(r, v, "Book of "+f.job.Name, name), Board: name, Job: f.job}
	view.Book = board.Book{UUID: f.job.Book.UUID, Name: f.job.Book.Name}
	b, err := v.session.Board(r.Context(), name, "GetBook")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	if f.job.Book.UUID == "" {
		view.Not = "The job has no book."
	} else if book, err := b.Book(r.Context(), f.job.Book.UUID); err != nil {
		view.Not = plain(err)
	} else if view.Book, view.Flows = book, bookFlows(book.Content); len(view.Flows) == 0 {
		view.Tree = tree(book.Content)
	}
	u.show(w, r, http.StatusOK, "book", view)
}
