package web_test

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/host/web"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// TestSignedTokenSignsIn: somebody whom an identity provider knows signs in by what
// it signed, and the visit ends with that.
func TestSignedTokenSignsIn(t *testing.T) {
	t.Parallel()
	p, k := identitytest.New(t), identitytest.ECDSA(t, "e")
	p.Set(k)
	issuer := p.Settings()
	issuer.Leeway = 0
	h, err := host.Open(t.Context(), host.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Drivers: map[string]driver.Program{"memory": memdriver.Program()},
		Config: config.Config{
			Tenants: []string{"default", "acme"}, Issuers: []config.Issuer{issuer},
			Backends: []config.Backend{{Name: "main", Driver: "memory", Settings: []byte("{}")}},
			Boards:   []config.Board{boardOf("acme", "jobs")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{host: h, ui: web.New(h, web.Config{Logger: slog.New(slog.DiscardHandler)})}
	s.server = httptest.NewServer(s.ui)
	t.Cleanup(func() {
		s.server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	end := time.Now().Add(8 * time.Second)
	b := s.signedIn(t, k.Sign(t, p.Claims(map[string]any{"exp": end.Unix()})))
	if time.Now().Before(end.Add(-2 * time.Second)) { // on a machine that is not too busy
		b.wants("/", "corp:alice of acme", "/ui/boards/jobs")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, text := b.get("/"); !strings.Contains(text, "Sign out") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the visit goes on after the token's end")
		}
	}
	if status, text := s.visit(t).post("/ui/signin", url.Values{"token": {k.Sign(t, p.Claims(map[string]any{"sub": "bob\n"}))}}); status != 403 || !strings.Contains(text, "cannot be seen") {
		t.Errorf("a token that is refused: %d %s", status, text)
	}
}
