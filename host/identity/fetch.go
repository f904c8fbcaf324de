package identity

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/boardd/boardd/host/config"
)

// Bounds on what an issuer may answer, and on how long it may take.
const (
	fetchWithin = 10 * time.Second
	maxAnswer   = 1 << 20
)

// source is where an issuer's keys come from: its discovery document, which names
// their place, or that place itself.
type source struct {
	issuer string
	url    string // of the keys; empty: discovery says
	caFile string // empty: the system's roots
}

// transport reads ca_file anew: whoever renews it need not know of the server.
func (s *source) transport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if s.caFile == "" {
		return t, nil
	}
	roots, err := config.Roots(s.caFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// keys asks the issuer for its keys.
func (s *source) keys(ctx context.Context) ([]jose.JSONWebKey, error) {
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it sends elsewhere, where nobody goes") },
	}
	place := s.url
	if place == "" {
		var found struct {
			Issuer  string `json:"issuer"`
			KeysURL string `json:"jwks_uri"`
		}
		if err := get(ctx, client, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration", &found); err != nil {
			return nil, err
		}
		if found.Issuer != s.issuer {
			return nil, fmt.Errorf("its discovery document is of the issuer %q, not of %q", found.Issuer, s.issuer)
		}
		place = found.KeysURL
	}
	if err := s.safe(place); err != nil {
		return nil, err
	}
	// Each key is read by itself: one of a kind that is not known here must not
	// take the others with it.
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := get(ctx, client, place, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("it has %d keys, and at most %d are taken", len(set.Keys), MaxKeys)
	}
	var keys []jose.JSONWebKey
	for _, text := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) == nil {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// safe refuses a place of keys that could be anybody's: only an issuer that is
// itself reached without TLS, which is one on this machine, may keep them so.
func (s *source) safe(place string) error {
	u, err := url.Parse(place)
	if err != nil || u.Host == "" {
		return fmt.Errorf("its keys are at %q, which is no URL", place)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !strings.HasPrefix(s.issuer, "http:") || !config.Loopback(u.Hostname())) {
		return fmt.Errorf("its keys are at %q: want https", place)
	}
	return nil
}

// get reads a JSON document.
func get(ctx context.Context, client *http.Client, place string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", place, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", place, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("%s: it answers more than %d bytes", place, maxAnswer)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	return nil
}
