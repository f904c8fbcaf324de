package identity_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/sdk/job"
)

// changing is a provider that is reached by no network.
type changing struct {
	asked atomic.Int64
	away  atomic.Bool
	keys  atomic.Pointer[[]jose.JSONWebKey]
}

func (c *changing) set(keys ...jose.JSONWebKey) { c.keys.Store(&keys) }

func (c *changing) ask(context.Context) ([]jose.JSONWebKey, error) {
	c.asked.Add(1)
	if c.away.Load() {
		return nil, errors.New("nobody is there")
	}
	return *c.keys.Load(), nil
}

// TestKeysAgeAndStrangers: how often the provider is asked, and for how long its
// last keys do, does not depend on what strangers send.
func TestKeysAgeAndStrangers(t *testing.T) {
	t.Parallel()
	k, stranger := identitytest.RSA("r"), identitytest.ECDSA(t, "x")
	synctest.Test(t, func(t *testing.T) {
		p, c := &identitytest.Provider{URL: "https://login.example.org"}, &changing{}
		c.set(k.Public())
		s := identity.WithSource(p.Settings(), c.ask)
		defer s.Close()
		long := map[string]any{"exp": time.Now().Add(23 * time.Hour).Unix()}
		raw := k.Sign(t, p.Claims(long))
		who, err := s.Authenticate(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 { // in 50 seconds
			_, _ = s.Authenticate(t.Context(), stranger.Sign(t, p.Claims(nil)))
			time.Sleep(50 * time.Millisecond)
		}
		if n := c.asked.Load(); n < 2 || n > 6 {
			t.Errorf("strangers had the provider asked %d times in 50 seconds", n)
		}
		c.away.Store(true)
		before := c.asked.Load()
		time.Sleep(time.Hour)
		if n := c.asked.Load() - before; n < 5 || n > 30 {
			t.Errorf("a provider that is away was asked %d times in an hour", n)
		}
		if _, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); err != nil {
			t.Errorf("after an hour without the provider: %v", err)
		}
		time.Sleep(identity.MaxKeyAge)
		if who.Life().Err() == nil {
			t.Error("what went on in the name of keys that are too old goes on")
		}
		if _, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); !errors.Is(err, job.Unavailable) {
			t.Errorf("after a day without the provider: %v", err)
		}
		c.away.Store(false)
		time.Sleep(10 * time.Minute)
		if _, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); err != nil {
			t.Errorf("when the provider is back: %v", err)
		}
		if age := s.Ages()["corp"]; age < 0 || age > 11*time.Minute {
			t.Errorf("its keys are %s old", age)
		}
	})
}

// TestWithdrawnKeyEndsStreams though nobody calls meanwhile.
func TestWithdrawnKeyEndsStreams(t *testing.T) {
	t.Parallel()
	k, other := identitytest.RSA("r"), identitytest.ECDSA(t, "e")
	synctest.Test(t, func(t *testing.T) {
		p, c := &identitytest.Provider{URL: "https://login.example.org"}, &changing{}
		c.set(k.Public(), other.Public())
		s := identity.WithSource(p.Settings(), c.ask)
		defer s.Close()
		hour := map[string]any{"exp": time.Now().Add(time.Hour).Unix()}
		withdrawn, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(hour)))
		if err != nil {
			t.Fatal(err)
		}
		stays, err := s.Authenticate(t.Context(), other.Sign(t, p.Claims(hour)))
		if err != nil {
			t.Fatal(err)
		}
		c.set(other.Public())
		time.Sleep(12 * time.Minute)
		if withdrawn.Life().Err() == nil || stays.Life().Err() != nil {
			t.Errorf("of the withdrawn key: %v; of the other one: %v", withdrawn.Life().Err(), stays.Life().Err())
		}
	})
}

// TestExpiry: a remembered token ends with its claim exp and the leeway.
func TestExpiry(t *testing.T) {
	t.Parallel()
	k := identitytest.RSA("r")
	synctest.Test(t, func(t *testing.T) {
		p := &identitytest.Provider{URL: "https://login.example.org"}
		s := identity.WithKeys(p.Settings(), k.Public())
		defer s.Close()
		raw := k.Sign(t, p.Claims(nil))
		who, err := s.Authenticate(t.Context(), raw)
		if err != nil || !who.Expires.Equal(time.Now().Truncate(time.Second).Add(330*time.Second)) {
			t.Fatalf("%+v, %v", who, err)
		}
		time.Sleep(time.Until(who.Expires) - time.Nanosecond)
		if again, err := s.Authenticate(t.Context(), raw); err != nil || again != who {
			t.Errorf("just before its end: %v", err)
		}
		time.Sleep(time.Nanosecond)
		for range 2 { // remembered, and not any more
			if _, err := s.Authenticate(t.Context(), raw); !errors.Is(err, job.Unauthenticated) {
				t.Errorf("at its end: %v", err)
			}
		}
	})
}
