package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/sdk/job"
)

// policyCard is one of a tenant's policies.
type policyCard struct {
	Name     string
	Versions []policyVersion
	Used     bool // by one of the boards that the visitor sees
}

type policyVersion struct {
	Digest string
	Size   int
	Made   time.Time
	By     string
	Boards []policyUse
}

// policyUse is a board that asks a policy.
type policyUse struct {
	Board  string
	Shadow bool
}

type policiesView struct {
	page
	Policies []policyCard
	Boards   []string // on which they could be put to work
	Change   bool
}

// policiesPage shows the policies of the visitor's tenant, and which boards ask
// them.
func (u *UI) policiesPage(w http.ResponseWriter, r *http.Request, v *visit) {
	policies, err := v.session.Policies("")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := policiesView{page: u.page(r, v, "Policies"), Change: v.session.MayAdminister("DeletePolicy", "")}
	view.Path = "/ui/policies"
	uses := map[string][]policyUse{} // by version.Value
	note := func(board string, p *admin.AskedPolicy, shadow bool) {
		key := version{Policy: p.Name, Digest: p.Digest}.Value()
		uses[key] = append(uses[key], policyUse{Board: board, Shadow: shadow})
	}
	for _, served := range v.session.Boards() {
		name := served.Config.Name
		view.Boards = append(view.Boards, name)
		asked, err := v.session.Asked("", name)
		if err != nil {
			continue // it was taken away just now
		}
		for i := range asked.Policies {
			note(name, &asked.Policies[i], false)
		}
		if asked.Shadow != nil {
			note(name, asked.Shadow, true)
		}
	}
	for i := range policies {
		card := policyCard{Name: policies[i].Name}
		for _, p := range policies[i].Versions {
			boards := uses[version{Policy: card.Name, Digest: p.Digest}.Value()]
			card.Used = card.Used || len(boards) > 0
			card.Versions = append(card.Versions, policyVersion{Digest: p.Digest, Size: p.Size, Made: p.Made, By: p.By, Boards: boards})
		}
		view.Policies = append(view.Policies, card)
	}
	u.show(w, r, http.StatusOK, "policies", view)
}

// deletePolicy takes a policy away, once that was asked about.
func (u *UI) deletePolicy(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PostForm.Get("policy")
	u.remove(w, r, v, removal{
		call: "DeletePolicy", what: "policy", name: name, back: "/ui/policies",
		asks: "Delete this policy with all its versions? They can't be brought back. A policy that a board asks is not deleted.",
		do:   func() error { return v.session.DeletePolicy(r.Context(), "", name) },
	})
}

// removal takes something away that has a name.
type removal struct {
	call, what, name, tenant string
	asks, back               string
	do                       func() error
}

// remove asks, removes and goes back.
func (u *UI) remove(w http.ResponseWriter, r *http.Request, v *visit, x removal) {
	switch {
	case x.name == "":
		u.fail(w, r, v, job.Errorf(job.Invalid, "no %s was chosen", x.what))
		return
	case !meant(r) && v.session.MayAdminister(x.call, ""):
		u.ask(w, r, question{
			page: u.page(r, v, removeVerbs[x.call]+" "+x.what+" "+x.name), Asks: x.asks, Verb: removeVerbs[x.call], Grave: true,
			Action: r.URL.Path, Fields: []field{{x.what, x.name}, {"tenant", x.tenant}}, Back: x.back,
		})
		return
	}
	err := x.do()
	if err = errors.Join(err, v.session.Did(admin.Deed{Call: x.call, Tenant: x.tenant, Name: x.name, Remote: r.RemoteAddr}, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	http.Redirect(w, r, x.back, http.StatusSeeOther)
}

var removeVerbs = map[string]string{"DeletePolicy": "Delete", "RevokeToken": "Revoke"}

// ofTenant adds to a path which tenant a page is about, where it is not the
// visitor's own.
func ofTenant(path, tenant string) string {
	if tenant == "" {
		return path
	}
	return path + "?tenant=" + url.QueryEscape(tenant)
}
