package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/sdk/job"
)

// version is a version of a policy that can be put to work.
type version struct {
	Policy, Digest string
	Newest         bool
}

// Value names the version in a form.
func (v version) Value() string { return v.Policy + "/" + v.Digest }

type boardPoliciesView struct {
	page
	Board    string
	Asked    admin.Asked
	Failures int64     // of all its policies together, on this host since it opened the board
	Versions []version // of the tenant's policies
	Change   bool      // the visitor may
}

// boardPoliciesPage shows what a board asks, and what it could.
func (u *UI) boardPoliciesPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	view := boardPoliciesView{page: u.boardsPage(r, v, "Policies of "+name, name), Board: name, Change: v.session.MayAdminister("PromotePolicy", name)}
	var err error
	if view.Asked, err = v.session.Asked("", name); err != nil {
		u.fail(w, r, v, err)
		return
	}
	policies, err := v.session.Policies("")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	for i := range policies {
		for at, p := range policies[i].Versions {
			view.Versions = append(view.Versions, version{Policy: policies[i].Name, Digest: p.Digest, Newest: at == 0})
		}
	}
	if b, err := v.session.Board(r.Context(), name, "GetBoard"); err == nil {
		view.Failures = b.Metrics().PolicyErrors.Load()
	}
	view.Poll = overviewPoll
	u.show(w, r, http.StatusOK, "boardpolicies", view)
}

// A policyChange is something that can be done with a policy on a board.
type policyChange struct {
	Name string // in the address
	Verb string
	Asks string // empty: it decides nothing, and is done without asking
	call string
	do   func(r *http.Request, s *admin.Session, p admin.Promotion) error
}

var policyChanges = []policyChange{
	{
		Name: "promote", Verb: "Promote", call: "PromotePolicy",
		Asks: "Have the board ask this policy from now on? It decides about the next claim. Nothing restarts, and it can be rolled back.",
		do: func(r *http.Request, s *admin.Session, p admin.Promotion) error {
			_, err := s.Promote(r.Context(), p)
			return err
		},
	},
	{
		Name: "rollback", Verb: "Roll back", call: "RollbackPolicy",
		Asks: "Have the board ask the version before this one, or not to ask this policy at all if there was none?",
		do: func(r *http.Request, s *admin.Session, p admin.Promotion) error {
			_, err := s.Rollback(r.Context(), p)
			return err
		},
	},
	{
		Name: "shadow", Verb: "Run in the shadow", call: "ShadowPolicy",
		do: func(r *http.Request, s *admin.Session, p admin.Promotion) error {
			_, err := s.Shadow(r.Context(), p, false)
			return err
		},
	},
	{
		Name: "stop", Verb: "Stop", call: "ShadowPolicy",
		do: func(r *http.Request, s *admin.Session, p admin.Promotion) error {
			_, err := s.Shadow(r.Context(), p, true)
			return err
		},
	},
}

// changePolicies has a board ask another policy.
func (u *UI) changePolicies(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	i := slices.IndexFunc(policyChanges, func(c policyChange) bool { return c.Name == r.PathValue("change") })
	if i < 0 {
		u.fail(w, r, v, errNoPage)
		return
	}
	change, back := policyChanges[i], "/ui/boards/"+url.PathEscape(name)+"/policies"
	p, err := promotionOf(r.PostForm)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	p.Board = name
	if change.Asks != "" && !meant(r) && v.session.MayAdminister(change.call, name) {
		q := question{
			page: u.page(r, v, change.Verb+": "+p.Name+" on "+name), Asks: change.Asks, Verb: change.Verb,
			Action: back + "/" + change.Name, Back: back,
		}
		for _, part := range []string{"policy", "params", "on_error"} {
			q.Fields = append(q.Fields, field{part, r.PostForm.Get(part)})
		}
		u.ask(w, r, q)
		return
	}
	err = change.do(r, v.session, p)
	if err = errors.Join(err, v.session.Did(admin.Deed{Call: change.call, Board: name, Name: p.Name, Remote: r.RemoteAddr}, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// promotionOf reads what a form says of a policy.
func promotionOf(form url.Values) (p admin.Promotion, err error) {
	p.Name, p.Digest, _ = strings.Cut(form.Get("policy"), "/")
	if p.Name == "" {
		return p, job.Errorf(job.Invalid, "no policy was chosen")
	}
	p.OnError = form.Get("on_error")
	p.Params, err = admin.ParseParams([]byte(strings.TrimSpace(form.Get("params"))))
	return p, err
}
