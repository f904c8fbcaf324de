package tenant

import (
	"sync"

	"github.com/boardd/boardd/sdk/job"
)

// Access is the Registry that holds now. When it changes, whatever goes on in the name of a
// token that it does not know any more, or knows otherwise, ends.
type Access struct {
	mu  sync.RWMutex
	now *Registry
}

// NewAccess begins with a registry, which it takes over.
func NewAccess(r *Registry) *Access { return &Access{now: r} }

// takeOver keeps those entries that are the same in both, and returns whose time
// is over.
func takeOver[K comparable](old, r map[K]*entry) (ended []*Principal) {
	for key, was := range old {
		if is, ok := r[key]; ok && is.token.same(&was.token) {
			is.principal = was.principal
			continue
		}
		ended = append(ended, was.principal)
	}
	return ended
}

// Recognize is the present Registry's.
func (a *Access) Recognize(names []string) (*Principal, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.now.Recognize(names)
}

// Authenticate is the present Registry's.
func (a *Access) Authenticate(secret string) (*Principal, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.now.Authenticate(secret)
}

// Replace puts another registry in place of the present one. It takes r over:
// tokens that are the same in both keep their principals.
func (a *Access) Replace(r *Registry) {
	a.mu.Lock()
	old := a.now
	ended := append(takeOver(old.byDigest, r.byDigest), takeOver(old.byCertificate, r.byCertificate)...)
	a.now = r
	changed := changedIn(r, ended)
	a.mu.Unlock()
	end(ended, changed)
}

// Amend makes these the tokens of one tenant, whose name they have; those of other tenants
// stay. A token that NewRegistry would refuse is left out, and the first such error is
// returned. It takes as long as the tenant has tokens.
func (a *Access) Amend(of string, tokens []Token) error {
	want := make(map[string]*Token, len(tokens))
	for i := range tokens {
		want[tokens[i].Name] = &tokens[i]
	}
	a.mu.Lock()
	var ended []*Principal
	for _, e := range a.now.byTenant[of] {
		if t := want[e.token.Name]; t != nil && t.same(&e.token) {
			delete(want, e.token.Name)
			continue
		}
		a.now.drop(e)
		ended = append(ended, e.principal)
	}
	var refused error
	for i := range tokens {
		if t := &tokens[i]; want[t.Name] == t {
			if err := a.now.add(*t); err != nil && refused == nil {
				refused = err
			}
		}
	}
	changed := changedIn(a.now, ended)
	a.mu.Unlock()
	end(ended, changed)
	return refused
}

// changedIn returns which of the principals whose time is over belong to a token of which a
// registry has one of the same name and secret, with other rights.
func changedIn(r *Registry, ended []*Principal) map[*Principal]bool {
	changed := map[*Principal]bool{}
	for _, p := range ended {
		e := r.byTenant[p.Tenant][p.TokenName]
		changed[p] = e != nil && e.token.ID == p.TokenID && e.token.Digest == p.digest && e.token.Certificate == p.certificate
	}
	return changed
}

// end ends what goes on for tokens that do not hold any more. It comes after what holds
// now, so that nobody comes in again meanwhile. Whoever has a token that was changed is to
// ask again: it may still do what it did.
func end(list []*Principal, changed map[*Principal]bool) {
	for _, p := range list {
		if changed[p] {
			p.end(job.Errorf(job.Unavailable, "the token %q was changed: ask again", p.TokenName))
			continue
		}
		p.end(job.Errorf(job.Unauthenticated, "the token %q was revoked", p.TokenName))
	}
}
