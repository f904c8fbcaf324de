package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/sdk/job"
)

// postView is the form of a new job.
type postView struct {
	page
	formView

	Board string
}

// postPage shows the form of a new job to those who may post it.
func (u *UI) postPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	if _, err := v.session.Board(r.Context(), name, "PostJobs"); err != nil {
		u.fail(w, r, v, err)
		return
	}
	u.showPost(w, r, v, http.StatusOK, formView{Fill: emptyJobForm(), Delayed: true})
}

func (u *UI) showPost(w http.ResponseWriter, r *http.Request, v *visit, status int, form formView) {
	name := r.PathValue("board")
	u.show(w, r, status, "post", &postView{page: u.boardsPage(r, v, "Post a job on "+name, name), formView: form, Board: name})
}

// postJob posts what the form says, and shows the job; or the form again, with what is
// wrong where it is.
func (u *UI) postJob(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	deed := admin.Deed{Call: "PostJobs", Board: name, Remote: r.RemoteAddr, Items: 1}
	b, err := v.session.Board(r.Context(), name, deed.Call)
	if err != nil {
		u.fail(w, r, v, errors.Join(err, v.session.Did(deed, err)))
		return
	}
	form := formView{Fill: jobFormOf(r.PostForm), Delayed: true}
	posting, err := form.Fill.posting()
	if err == nil {
		posting.ID, err = parseID(form.Fill.ID)
	}
	if err != nil { // nothing was asked of the board yet
		form.refuse(err)
		u.showPost(w, r, v, http.StatusBadRequest, form)
		return
	}
	results, err := b.Post(r.Context(), []job.Posting{posting})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		deed.Failed = 1
	}
	if failed := v.session.Did(deed, err); failed != nil {
		u.fail(w, r, v, errors.Join(err, failed))
		return
	}
	if err != nil {
		form.refuse(err)
		u.showPost(w, r, v, statusOf(err), form)
		return
	}
	to := "/ui/boards/" + url.PathEscape(name) + "/jobs/" + results[0].Job.ID.String()
	if results[0].Existing {
		to += "?stood"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
