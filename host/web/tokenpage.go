package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// lifetimes are how long a new token may be asked to last, in days; 0: for ever.
var lifetimes = []int{1, 7, 30, 90, 365, 0}

const defaultLifetime = 90

type tokensView struct {
	page
	Of        string // the tenant, where it is not the visitor's own
	Tokens    []directory.Token
	First     bool          // of the pages
	Next      string        // a link to the next one; "": this is the last one
	Roles     []tenant.Role // that the visitor may give
	Lifetimes []int
	Lifetime  int // the one that is proposed
}

// tokensPage shows a tenant's tokens, and makes new ones.
func (u *UI) tokensPage(w http.ResponseWriter, r *http.Request, v *visit) {
	of := r.URL.Query().Get("tenant")
	all, err := v.session.Tokens(of, r.URL.Query().Get("after"))
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	tokens, next := firstOf(all, func(t directory.Token) string { return t.Name })
	view := tokensView{page: u.page(r, v, "Tokens"), Of: of, Tokens: tokens, Roles: v.session.Grants(), Lifetimes: lifetimes, Lifetime: defaultLifetime}
	view.Path, view.First = "/ui/tokens", !r.URL.Query().Has("after")
	if next != "" {
		q := url.Values{"after": {next}}
		if of != "" {
			q.Set("tenant", of)
		}
		view.Next = view.Path + "?" + q.Encode()
	}
	u.show(w, r, http.StatusOK, "tokens", view)
}

type madeView struct {
	page
	Made   directory.Token // not Token: that is the visitor's own
	Secret string
	Back   string
}

// createToken makes a token and shows its secret, which nobody sees again.
func (u *UI) createToken(w http.ResponseWriter, r *http.Request, v *visit) {
	n := admin.NewToken{
		Tenant: r.PostForm.Get("tenant"), Name: strings.TrimSpace(r.PostForm.Get("name")), Roles: r.PostForm["role"],
		Boards: strings.FieldsFunc(r.PostForm.Get("boards"), func(c rune) bool { return c == ',' || c == ' ' }),
	}
	days, err := strconv.Atoi(r.PostForm.Get("days"))
	if err != nil || days < 0 || days > maxLifetime {
		u.fail(w, r, v, job.Errorf(job.Invalid, "days: want 1 to %d, or 0 for a token that never expires", maxLifetime))
		return
	}
	if days > 0 {
		n.Expires = time.Now().AddDate(0, 0, days).UTC().Truncate(time.Second)
	}
	made, secret, err := v.session.CreateToken(r.Context(), n)
	if err = errors.Join(err, v.session.Did(admin.Deed{Call: "CreateToken", Tenant: n.Tenant, Name: n.Name, Remote: r.RemoteAddr}, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	u.show(w, r, http.StatusOK, "made", madeView{page: u.page(r, v, "Token "+made.Name), Made: made, Secret: secret, Back: ofTenant("/ui/tokens", n.Tenant)})
}

// maxLifetime is the longest life of a token that a form asks for, in days.
const maxLifetime = 3650

// revokeToken takes a token away, once that was asked about.
func (u *UI) revokeToken(w http.ResponseWriter, r *http.Request, v *visit) {
	of, name := r.PostForm.Get("tenant"), r.PostForm.Get("token")
	asks := "Revoke this token? Whoever uses it is refused from now on, and what goes on in its name ends. It can't be brought back."
	if who := v.session.WhoAmI(); who.TokenName == name && (of == "" || of == who.Tenant) {
		asks = "This is the token that you have signed in with: revoking it signs you out. " + asks
	}
	u.remove(w, r, v, removal{
		call: "RevokeToken", what: "token", name: name, tenant: of, asks: asks, back: ofTenant("/ui/tokens", of),
		do: func() error { return v.session.RevokeToken(r.Context(), of, name) },
	})
}
