package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// pageBatches is how many batches a page shows.
const pageBatches = 100

// batchRow is one batch, and where its jobs are shown.
type batchRow struct {
	board.Batch

	Jobs, Trash string // links
	Follows     string // to the job that follows it; "": it was not posted yet
}

type batchesView struct {
	page

	Board     string
	Batches   []batchRow
	Uncounted bool // the board's store counts none
	After     string
	More      string // a link
}

func (u *UI) batchesPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, "ListBatches")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := &batchesView{page: u.boardsPage(r, v, "Batches of "+name, name), Board: name, After: r.URL.Query().Get("after")}
	view.Poll, view.Path = overviewPoll, "/ui/boards/"+url.PathEscape(name)+"/batches"
	list, next, err := b.Batches(r.Context(), view.After, pageBatches, nil)
	if view.Uncounted = errors.Is(err, job.Unsupported); err != nil && !view.Uncounted {
		u.fail(w, r, v, err)
		return
	}
	for i := range list {
		view.Batches = append(view.Batches, batchRowOf(name, &list[i]))
	}
	if next != "" {
		view.More = view.Path + "?" + url.Values{"after": {next}}.Encode()
	}
	u.show(w, r, http.StatusOK, "batches", view)
}

// batchRowOf shows a batch. Its name leads to its open jobs, or once there are none to those
// that have ended.
func batchRowOf(of string, b *board.Batch) batchRow {
	jobs := asked{Filter: "batch = " + quoted(b.Name)}
	trash := jobs
	trash.Tab = "trashed"
	if b.Group.Open == 0 {
		jobs.Tab = "complete"
	}
	row := batchRow{Batch: *b, Jobs: jobs.link(of), Trash: trash.link(of)}
	if b.ThenID != (job.ID{}) {
		row.Follows = "/ui/boards/" + url.PathEscape(of) + "/jobs/" + b.ThenID.String()
	}
	return row
}
