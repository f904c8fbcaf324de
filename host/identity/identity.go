// Package identity lets people and machines in by the signed tokens (JWT) of
// identity providers: OpenID Connect issuers that the configuration names. It
// keeps the issuers' public keys, checks what they signed, and makes of its
// claims who somebody is here.
//
// Locks, in the order in which they are taken where several are held: Issuers.replacing,
// keySet.mu. Issuers.mu is held alone. None is held while an issuer is asked for its keys;
// Issuers.replacing is held while the files of CA certificates of new issuers are read.
// keySet.mu is held while Options.Tenant is asked, which must not wait for a store nor
// call the Issuers.
package identity

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// MaxToken is the longest token that is looked at, in bytes.
const MaxToken = 16 << 10

// maxRemembered is how many tokens are remembered that were found to be good, so
// that their signatures are not checked with each call. Over it, one of them is
// forgotten for each new one.
const maxRemembered = 10_000

// Options say what Issuers need of the server that they let into.
type Options struct {
	// Tenant returns what tells a tenant from an earlier one of its name, empty
	// where there can be none, or why nobody is let in for it.
	Tenant func(name string) (id string, err error)

	Logger *slog.Logger
}

// Issuers are the identity providers that hold now. Their methods may be called
// from many goroutines at once.
type Issuers struct {
	options Options
	running *running

	replacing sync.Mutex // one Replace at a time
	now       atomic.Pointer[table]

	mu    sync.Mutex
	known map[[sha256.Size]byte]*tenant.Principal
}

// table is the issuers of one configuration.
type table struct {
	all   []*issuer
	byURL map[string][]*issuer // those of one URL differ in their audiences
}

// running is what asks issuers for their keys.
type running struct {
	sync.WaitGroup

	ctx  context.Context //nolint:containedctx // ended by Close, not by a caller: others wait for the same keys
	stop context.CancelFunc
}

// Open returns Issuers that let nobody in before Replace. Close must be called.
func Open(o Options) *Issuers {
	s := &Issuers{options: o, running: &running{}, known: map[[sha256.Size]byte]*tenant.Principal{}}
	s.running.ctx, s.running.stop = context.WithCancel(context.Background())
	s.now.Store(&table{})
	s.running.Go(s.keepFresh)
	return s
}

// Close stops asking issuers for keys, and waits until nobody does.
func (s *Issuers) Close() {
	s.running.stop()
	s.running.Wait()
}

// Check finds what Replace would refuse.
func Check(list []config.Issuer) error {
	for _, c := range list {
		if _, err := newIssuer(c, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Replace puts the issuers of another configuration in place of the present ones.
// Those that are the same in both keep their keys. What goes on in the name of a
// token of the others ends.
func (s *Issuers) Replace(list []config.Issuer) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	next, old := &table{byURL: map[string][]*issuer{}}, s.now.Load()
	for _, c := range list {
		var made *issuer
		if i := slices.IndexFunc(old.all, func(p *issuer) bool { return p.same(&c) }); i >= 0 {
			made = old.all[i]
		} else {
			var err error
			if made, err = newIssuer(c, s.running, s.options.Logger); err != nil {
				return err
			}
		}
		next.all = append(next.all, made)
		next.byURL[c.URL] = append(next.byURL[c.URL], made)
	}
	s.now.Store(next)
	for _, p := range next.all {
		p.keys.refresh() // not waited for: who comes before that waits himself
	}
	for _, p := range old.all {
		if !slices.Contains(next.all, p) {
			p.keys.end(job.Errorf(job.Unauthenticated, "tokens of the issuer %s are not taken any more, or otherwise than before", p.config.Name))
		}
	}
	return nil
}

// keepFresh keeps the issuers' keys up to date.
func (s *Issuers) keepFresh() {
	for {
		for _, p := range s.now.Load().all {
			p.keys.refresh()
		}
		if sleep.For(s.running.ctx, lookEvery) != nil {
			return
		}
	}
}

// IsToken reports whether a secret has the form of a signed token. Then it is one,
// or nothing.
func IsToken(secret string) bool {
	return strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2
}

// Trusts reports whether there is any issuer.
func (s *Issuers) Trusts() bool { return len(s.now.Load().all) > 0 }

// Authenticate returns who somebody is who has a token: Unauthenticated with what
// is wrong with it, or Unavailable as long as the issuer's keys cannot be had.
func (s *Issuers) Authenticate(ctx context.Context, raw string) (*tenant.Principal, error) {
	if len(raw) > MaxToken {
		return nil, refused("it has %d bytes, and at most %d are looked at", len(raw), MaxToken)
	}
	digest := sha256.Sum256([]byte(raw))
	s.mu.Lock()
	p := s.known[digest]
	s.mu.Unlock()
	if p != nil && p.Life().Err() == nil && time.Now().Before(p.Expires) {
		return p, nil
	}
	s.forget(digest)
	p, err := s.verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	s.remember(digest, p)
	return p, nil
}

func (s *Issuers) remember(digest [sha256.Size]byte, p *tenant.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxRemembered {
		for other := range s.known {
			delete(s.known, other)
			break
		}
	}
	s.known[digest] = p
}

func (s *Issuers) forget(digest [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, digest)
}

// Recheck ends what goes on for tenants that are not there any more. It is for
// whenever tenants come and go.
func (s *Issuers) Recheck() {
	for _, p := range s.now.Load().all {
		p.keys.recheck(func(name, id string) error {
			present, err := s.options.Tenant(name)
			if err == nil && present != id {
				err = tenant.NoTenant(name)
			}
			if job.KindOf(err) == job.Unavailable {
				return nil // nobody knows
			}
			return err
		})
	}
}

// Ages returns for each issuer how old the keys are that are known of it; -1 for
// none.
func (s *Issuers) Ages() map[string]time.Duration {
	ages := map[string]time.Duration{}
	for _, p := range s.now.Load().all {
		ages[p.config.Name] = p.keys.age()
	}
	return ages
}

// refused is the error of a token that lets nobody in. The text never repeats the
// token, nor anything of it that its issuer did not sign.
func refused(format string, args ...any) error {
	e := job.Errorf(job.Unauthenticated, format, args...)
	return job.Errorf(job.Unauthenticated, "the token of an identity provider is refused: %s", e.Error())
}
