package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// How keys are kept. An issuer is asked for them every KeysFresh, and sooner for a
// key that is not known, but never more than once in minBetween, whatever strangers
// send. After failures the time between two tries doubles. As long as the issuer
// is away, the last keys do for MaxKeyAge.
const (
	MaxKeyAge  = 24 * time.Hour
	MaxKeys    = 64 // of one issuer
	keysFresh  = 10 * time.Minute
	lookEvery  = time.Minute
	minBetween = 10 * time.Second
	maxBetween = 5 * time.Minute
	maxTried   = 4    // for a token that names no key
	minRSA     = 2048 // bits
)

// keySet is the public keys of one issuer.
type keySet struct {
	name    string                                           // of the issuer, for people
	ask     func(context.Context) ([]jose.JSONWebKey, error) // the issuer
	running *running
	logger  *slog.Logger

	mu       sync.Mutex
	keys     []*key
	fetched  time.Time     // when keys were last had; zero: never
	tried    time.Time     // when they were last asked for
	failures int           // since then
	fetching chan struct{} // closed when the present try has ended; nil: there is none
	ended    error
}

// key is one public key, and what goes on in its name. The keySet's mu guards lives.
type key struct {
	jose.JSONWebKey

	mark  string // tells it from others
	lives map[string]*life
}

// life is shared by all tokens that one key has signed for one tenant.
type life struct {
	id  string          // of the tenant
	ctx context.Context //nolint:containedctx // ends with the key or the tenant, not with a call
	end context.CancelCauseFunc
}

// find returns the keys with which a token may have been signed. If there is none,
// it asks the issuer, unless that was done just now.
func (s *keySet) find(ctx context.Context, id string) ([]*key, error) {
	for asked := false; ; asked = true {
		s.mu.Lock()
		found, known := s.matching(id), !s.fetched.IsZero() && time.Since(s.fetched) < MaxKeyAge
		var wait chan struct{}
		if len(found) == 0 || !known {
			wait = s.begin()
		}
		s.mu.Unlock()
		switch {
		case len(found) > 0 && known:
			return found, nil
		case wait != nil && !asked:
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, &job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)}
			}
		case known:
			return nil, refused("its issuer %s has no such key (or has had it only for seconds)", s.name)
		}
		return nil, job.Errorf(job.Unavailable, "the keys of the issuer %s cannot be had now: try again in a moment", s.name)
	}
}

// matching returns the keys of an id. For a token that names none it is the first
// few: strangers must not have all of them tried. The caller holds s.mu.
func (s *keySet) matching(id string) []*key {
	if id == "" {
		return s.keys[:min(len(s.keys), maxTried)]
	}
	var found []*key
	for _, k := range s.keys {
		if k.KeyID == id {
			found = append(found, k)
		}
	}
	return found
}

// refresh asks the issuer if it was not asked for a while. It waits for nothing.
func (s *keySet) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fetched.IsZero() && time.Since(s.fetched) >= MaxKeyAge {
		s.drop(job.Errorf(job.Unavailable, "the keys of the issuer %s are older than %s, and it cannot be asked", s.name, MaxKeyAge))
	}
	if s.fetched.IsZero() || time.Since(s.fetched) >= keysFresh {
		s.begin()
	}
}

// begin asks the issuer for its keys, unless it is too early, and returns what is
// closed afterwards; nil: it is too early. The caller holds s.mu.
func (s *keySet) begin() chan struct{} {
	if s.fetching != nil {
		return s.fetching
	}
	between := min(minBetween<<min(s.failures, 8), maxBetween)
	if s.ended != nil || s.running.ctx.Err() != nil || !s.tried.IsZero() && time.Since(s.tried) < between {
		return nil
	}
	done := make(chan struct{})
	s.fetching, s.tried = done, time.Now()
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.running.ctx, fetchWithin)
		defer cancel()
		keys, err := s.ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching = nil
		s.replace(keys, err)
		close(done)
	})
	return done
}

// replace takes over what the issuer answered. What goes on in the name of keys that
// it no longer has ends. The caller holds s.mu.
func (s *keySet) replace(list []jose.JSONWebKey, err error) {
	var keys []*key
	if err == nil {
		keys, err = usable(list)
	}
	if err != nil && s.running.ctx.Err() != nil {
		return
	}
	if err != nil {
		s.failures++
		s.logger.Warn("the keys of an issuer cannot be had", "issuer", s.name, "error", err, "known_for", time.Since(s.fetched).Round(time.Second).String())
		return
	}
	if s.ended != nil {
		return
	}
	had := map[string]*key{}
	for _, k := range s.keys {
		had[k.mark] = k
	}
	for i, k := range keys {
		if old, ok := had[k.mark]; ok {
			keys[i] = old
			delete(had, k.mark)
		}
	}
	for _, k := range had {
		k.end(job.Errorf(job.Unauthenticated, "the issuer %s has withdrawn the key that signed the token", s.name))
	}
	s.keys, s.fetched, s.failures = keys, time.Now(), 0
}

// usable keeps the public keys for signatures, and those that are strong enough.
func usable(list []jose.JSONWebKey) ([]*key, error) {
	if len(list) > MaxKeys {
		return nil, job.Errorf(job.Invalid, "it has %d keys, and at most %d are taken", len(list), MaxKeys)
	}
	var keys []*key
	seen := map[string]bool{}
	for _, k := range list {
		if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || !strong(k.Key) {
			continue
		}
		sum, err := k.Thumbprint(crypto.SHA256)
		if err != nil {
			continue
		}
		mark := k.KeyID + "\x00" + k.Algorithm + "\x00" + string(sum)
		if !seen[mark] {
			seen[mark] = true
			keys = append(keys, &key{JSONWebKey: k, mark: mark, lives: map[string]*life{}})
		}
	}
	if len(keys) == 0 {
		return nil, job.Errorf(job.Invalid, "none of its %d keys is a public one for signatures (RSA from %d bits, ECDSA, Ed25519)", len(list), minRSA)
	}
	return keys, nil
}

func strong(public any) bool {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= minRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// lifeOf returns what ends when tokens of a key are no longer good for a tenant.
func (s *keySet) lifeOf(k *key, of, id string) (*life, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.keys, k) { // it was withdrawn just now
		return nil, refused("its issuer %s has no such key any more", s.name)
	}
	l := k.lives[of]
	if l == nil || l.id != id {
		if l != nil {
			l.end(tenant.NoTenant(of)) // an earlier one of this name
		}
		l = &life{id: id}
		l.ctx, l.end = context.WithCancelCause(context.Background())
		k.lives[of] = l
	}
	return l, nil
}

// end ends what goes on in the name of the key. The caller holds the keySet's mu.
func (k *key) end(cause error) {
	for _, l := range k.lives {
		l.end(cause)
	}
}

// recheck ends what goes on for tenants of which stands returns an error.
func (s *keySet) recheck(stands func(of, id string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		for of, l := range k.lives {
			if err := stands(of, l.id); err != nil {
				l.end(job.Errorf(job.Unauthenticated, "%v", err))
				delete(k.lives, of)
			}
		}
	}
}

// end ends all that goes on in the name of these keys.
func (s *keySet) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = cause
	s.drop(cause)
}

// drop forgets all keys, and ends what goes on in their names. The caller holds s.mu.
func (s *keySet) drop(cause error) {
	for _, k := range s.keys {
		k.end(cause)
	}
	s.keys = nil
}

func (s *keySet) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched.IsZero() {
		return -1
	}
	return time.Since(s.fetched)
}
