package web

import (
	"net/http"
	"slices"
)

// field is one hidden part of a form.
type field struct{ Name, Value string }

// question is what is asked before something is done. The form that answers it
// repeats what was asked for, and says that it is meant.
type question struct {
	page
	Asks   string
	Verb   string // on the button
	Action string // where the answer goes
	Fields []field
	Reason bool     // a reason is asked for
	Grave  bool     // it can't be undone
	Items  []string // what it is about, where that is much
	Back   string
}

// meant reports whether somebody was asked, and said yes.
func meant(r *http.Request) bool { return r.PostForm.Get("confirmed") != "" }

// ask asks.
func (u *UI) ask(w http.ResponseWriter, r *http.Request, q question) {
	q.Fields = append(slices.Clone(q.Fields), field{"confirmed", "yes"})
	if q.Back != "" {
		q.Fields = append(q.Fields, field{"back", q.Back})
	}
	u.show(w, r, http.StatusOK, "ask", q)
}
