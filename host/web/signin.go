package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/boardd/boardd/host/admin"
)

// signinPath is where a request without a visit is sent; whoever signs in there
// comes back.
func signinPath(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return "/ui/signin"
	}
	return "/ui/signin?to=" + url.QueryEscape(r.URL.RequestURI())
}

// here returns a path of this server, or "/" for anything else: nobody is sent
// to another site by a link to the sign-in page.
func here(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/ui/") || strings.Contains(to, `\`) {
		return "/"
	}
	return u.RequestURI()
}

type signinView struct {
	page
	To      string
	Problem string
}

func (u *UI) signinPage(w http.ResponseWriter, r *http.Request) {
	u.show(w, r, http.StatusOK, "signin", signinView{page: u.page(r, nil, "Sign in"), To: here(r.URL.Query().Get("to"))})
}

func (u *UI) signin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.fail(w, r, nil, errForm)
		return
	}
	to := here(r.PostForm.Get("to"))
	session, err := u.host.Login(r.Context(), strings.TrimSpace(r.PostForm.Get("token")))
	if err == nil {
		err = session.Check("ListBoards")
	}
	if err != nil {
		err = errors.Join(err, u.host.Auditor().RefusedLogin("SignIn", r.RemoteAddr, err))
		view := signinView{page: u.page(r, nil, "Sign in"), To: to, Problem: plain(err)}
		u.show(w, r, http.StatusForbidden, "signin", view)
		return
	}
	if old := u.visits.of(r); old != nil {
		u.visits.end(old)
	}
	setCookie(w, r, u.visits.begin(admin.Of(u.host, session)).id)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (u *UI) signout(w http.ResponseWriter, r *http.Request, v *visit) {
	u.visits.end(v)
	setCookie(w, r, "")
	http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
}
