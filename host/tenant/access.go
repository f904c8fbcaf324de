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
func takeOver[K comparable](old, r map[K]*entry) (ended []*entry) {
	for key, was := range old {
		if is, ok := r[key]; ok && is.token.same(&was.token) {
			is.principal = was.principal
			continue
		}
		ended = append(ended, was)
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
	reasons := r.reasons(ended)
	a.mu.Unlock()
	end(ended, reasons)
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
	var ended []*entry
	for _, e := range a.now.byTenant[of] {
		if t := want[e.token.Name]; t != nil && t.same(&e.token) {
			delete(want, e.token.Name)
			continue
		}
		a.now.drop(e)
		ended = append(ended, e)
	}
	var refused error
	for i := range tokens {
		if t := &tokens[i]; want[t.Name] == t {
			if err := a.now.add(*t); err != nil && refused == nil {
				refused = err
			}
		}
	}
	reasons := a.now.reasons(ended)
	a.mu.Unlock()
	end(ended, reasons)
	return refused
}

// reasons returns why each entry's time is over. Whoever has a token that the registry still
// knows by its name and secret, with other rights, is to ask again: it may still do what it did.
func (r *Registry) reasons(ended []*entry) []error {
	reasons := make([]error, len(ended))
	for i, e := range ended {
		t := &e.token
		if is := r.byTenant[t.Tenant][t.Name]; is != nil && is.token.ID == t.ID && is.token.Digest == t.Digest && is.token.Certificate == t.Certificate {
			reasons[i] = job.Errorf(job.Unavailable, "the token %q was changed: ask again", t.Name)
		} else {
			reasons[i] = job.Errorf(job.Unauthenticated, "the token %q was revoked", t.Name)
		}
	}
	return reasons
}

// end ends what goes on for tokens that do not hold any more. It comes after what holds
// now, so that nobody comes in again meanwhile.
func end(ended []*entry, reasons []error) {
	for i, e := range ended {
		e.principal.end(reasons[i])
	}
}
