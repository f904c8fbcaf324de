package tenant

import (
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/sdk/job"
)

// Access is the Registry that holds now. When it is replaced, whatever goes on
// in the name of a token that the new one does not know, or knows otherwise,
// ends.
type Access struct {
	mu  sync.Mutex // of Replace
	now atomic.Pointer[Registry]
}

// NewAccess begins with a registry.
func NewAccess(r *Registry) *Access {
	a := &Access{}
	a.now.Store(r)
	return a
}

// takeOver keeps those entries that are the same in both, and returns whose time
// is over.
func takeOver[K comparable](old, r map[K]*entry) (ended []*Principal) {
	for key, was := range old {
		if is, ok := r[key]; ok && is.token.same(&was.token) {
			r[key] = was
			continue
		}
		ended = append(ended, was.principal)
	}
	return ended
}

// Recognize is the present Registry's.
func (a *Access) Recognize(names []string) (*Principal, error) { return a.now.Load().Recognize(names) }

// Authenticate is the present Registry's.
func (a *Access) Authenticate(secret string) (*Principal, error) {
	return a.now.Load().Authenticate(secret)
}

// Replace puts another registry in place of the present one. It takes r over:
// tokens that are the same in both keep their principals.
func (a *Access) Replace(r *Registry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.now.Load()
	ended := append(takeOver(old.byDigest, r.byDigest), takeOver(old.byCertificate, r.byCertificate)...)
	a.now.Store(r)
	for _, p := range ended { // after the new one holds, so that nobody comes in again meanwhile
		p.end(job.Errorf(job.Unauthenticated, "the token %q was revoked or changed", p.TokenName))
	}
}
