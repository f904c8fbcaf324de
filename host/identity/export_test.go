package identity

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/boardd/boardd/host/config"
)

// Forgive has every issuer be asked again for a key that is not known, though it
// was asked just now.
func Forgive(s *Issuers) {
	for _, p := range s.now.Load().all {
		p.keys.mu.Lock()
		p.keys.tried = time.Time{}
		p.keys.mu.Unlock()
	}
}

// WithKeys returns Issuers with one block whose provider always has these keys,
// and is reached by no network. There is every tenant.
func WithKeys(c config.Issuer, keys ...jose.JSONWebKey) *Issuers {
	return WithSource(c, func(context.Context) ([]jose.JSONWebKey, error) { return keys, nil })
}

// WithSource is WithKeys for a provider that changes.
func WithSource(c config.Issuer, ask func(context.Context) ([]jose.JSONWebKey, error)) *Issuers {
	s := Open(Options{Logger: slog.New(slog.DiscardHandler), Tenant: func(string) (string, error) { return "", nil }})
	i := &issuer{config: c, keys: &keySet{name: c.Name, ask: ask, running: s.running, logger: s.options.Logger}}
	s.now.Store(&table{all: []*issuer{i}, byURL: map[string][]*issuer{c.URL: {i}}})
	return s
}
