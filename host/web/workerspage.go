package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

type workersView struct {
	page
	Board    string
	Entities []board.Entity
	Holders  []holder
	Problem  string
}

// holder is somebody who holds jobs.
type holder struct {
	Owner string
	Jobs  []*job.Job
}

// heldJobs is how many claimed jobs the page of workers looks at.
const heldJobs = board.MaxPage

func (u *UI) workersPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, "ListEntities")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := workersView{page: u.boardsPage(r, v, "Workers on "+name, name), Board: name}
	view.Poll = overviewPoll
	if view.Entities, err = b.Entities(r.Context()); err != nil {
		u.fail(w, r, v, err)
		return
	}
	if b, err = v.session.Board(r.Context(), name, "ListJobs"); err == nil {
		var list board.ListPage
		list, err = b.List(r.Context(), board.ListRequest{States: []job.State{job.Claimed}, PageSize: heldJobs})
		view.Holders = holders(list.Jobs)
	}
	if err != nil {
		view.Problem = plain(err)
	}
	u.show(w, r, http.StatusOK, "workers", view)
}

// holders sorts claimed jobs by who holds them.
func holders(jobs []*job.Job) []holder {
	at := map[string]int{}
	var list []holder
	for _, j := range jobs {
		i, ok := at[j.Owner]
		if !ok {
			i = len(list)
			at[j.Owner] = i
			list = append(list, holder{Owner: j.Owner})
		}
		list[i].Jobs = append(list[i].Jobs, j)
	}
	slices.SortFunc(list, func(a, b holder) int { return cmp.Compare(a.Owner, b.Owner) })
	return list
}

// fact is one thing that a worker says of itself.
type fact struct{ Name, Value string }

// maxFacts is how many things a page shows of what a worker says of itself.
const maxFacts = 32

// facts takes what a worker says of itself apart, in its order where that is a
// JSON object; there are none otherwise.
func facts(metadata []byte) []fact {
	d := json.NewDecoder(bytes.NewReader(metadata))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var list []fact
	for d.More() && len(list) < maxFacts {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil
		}
		key, _ := name.(string) // the names of an object are text
		list = append(list, fact{Name: key, Value: said([]byte(inWords(value)))})
	}
	return list
}

// inWords writes text, a list of texts or an object of texts without the marks of
// JSON, and everything else as it is.
func inWords(value json.RawMessage) string {
	var text string
	var list []string
	var object map[string]string
	switch {
	case json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &list) == nil:
		return strings.Join(list, ", ")
	case json.Unmarshal(value, &object) == nil:
		for name, v := range object {
			list = append(list, name+"="+v)
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	return string(value)
}
