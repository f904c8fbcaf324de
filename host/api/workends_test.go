package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// TestWhatEndsAWait: whoever waits in calls of Work, for claims or for notices alone, hears
// at once that it may not any more, and is not told that there is nothing to do.
func TestWhatEndsAWait(t *testing.T) {
	t.Parallel()
	const worker = "the-worker-whose-waits-are-ended"
	for name, c := range map[string]struct {
		by   func(t *testing.T, s *server, next *config.Config)
		code string // or several: of two things that happen at once either ends the wait
	}{
		"a revoked token": {func(t *testing.T, s *server, _ *config.Config) {
			s.mustAdmin(t, operatorSecret, "RevokeToken", `{"tenant":"umbrella","name":"w"}`, &struct{}{})
		}, "unauthenticated"},
		"a deleted board": {func(t *testing.T, s *server, _ *config.Config) {
			s.mustAdmin(t, operatorSecret, "DeleteBoard", `{"tenant":"umbrella","name":"b"}`, &struct{}{})
		}, "not_found"},
		"a deleted tenant": {func(t *testing.T, s *server, _ *config.Config) {
			s.mustAdmin(t, operatorSecret, "DeleteTenant", `{"name":"umbrella"}`, &struct{}{})
		}, "unauthenticated not_found"},
		"a role that a reload takes away": {func(t *testing.T, s *server, next *config.Config) {
			next.Tokens[len(next.Tokens)-1].Roles = []tenant.Role{tenant.Viewer}
			s.mustAdmin(t, operatorSecret, "ReloadConfig", `{}`, &struct{}{})
		}, "unavailable"}, // asked again, it is told which role is missing
		"a token that a reload takes away": {func(t *testing.T, s *server, next *config.Config) {
			next.Tokens = next.Tokens[:len(next.Tokens)-1]
			s.mustAdmin(t, operatorSecret, "ReloadConfig", `{}`, &struct{}{})
		}, "unauthenticated"},
		"a board that a reload takes away": {func(t *testing.T, s *server, next *config.Config) {
			next.Boards = slices.DeleteFunc(slices.Clone(next.Boards), func(b config.Board) bool { return b.Name == "default" && b.Tenant == "default" })
			s.mustAdmin(t, operatorSecret, "ReloadConfig", `{}`, &struct{}{})
		}, "not_found"},
		"the server's stop": {func(_ *testing.T, s *server, _ *config.Config) { s.stop() }, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := hosted(t)
			first.Tokens = append(slices.Clone(first.Tokens), token("default", "w", worker, tenant.Worker))
			next := first
			next.Tokens = slices.Clone(first.Tokens)
			s := serveFrom(t, host.Config{
				Config: first, Logger: quiet(), Drivers: map[string]driver.Program{"memory": memdriver.Program()},
				Load: func() (*config.Config, error) { c := next; return &c, nil },
			})
			secret, board := worker, "default"
			if strings.HasPrefix(name, "a revoked") || strings.HasPrefix(name, "a deleted") {
				s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
				s.mustAdmin(t, newToken(t, s, "umbrella", "admin", "tenant-admin"), "CreateBoard", `{"board":{"name":"b","backend":"store"}}`, &struct{}{})
				secret, board = newToken(t, s, "umbrella", "w", "worker"), "b"
			}
			var waiting []func() (int, string)
			for _, most := range []string{`"max":1`, `"max":0`, `"max":1,"ahead":8,"requestId":"r"`} {
				waiting = append(waiting, s.during(t, secret, "Work", fmt.Sprintf(`{"board":%q,"owner":"w","wait":"60s",%s}`, board, most)))
			}
			s.shows(t, "boardd_workers_waiting 3")
			c.by(t, s, &next)
			for i, ended := range waiting {
				_, answer := ended()
				code, _ := reply{body: answer}.failure()
				if !slices.Contains(strings.Fields(c.code), code) {
					t.Errorf("call %d: %s, want %s", i, answer, c.code)
				}
			}
		})
	}
}

// TestTokenExpiresUnderWork: a call that waits hears that its token's time is over.
func TestTokenExpiresUnderWork(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	var made struct{ Secret string }
	s.mustAdmin(t, acmeSecret, "CreateToken", fmt.Sprintf(`{"name":"brief","roles":["worker"],"expiresAt":%q}`,
		time.Now().Add(3*time.Second).UTC().Format(time.RFC3339Nano)), &made)
	first := s.during(t, made.Secret, "Work", `{"board":"default","owner":"w","max":1,"wait":"60s"}`)
	second := s.during(t, made.Secret, "Work", `{"board":"default","owner":"w","wait":"60s"}`)
	for _, ended := range []func() (int, string){first, second} {
		if status, answer := ended(); status != http.StatusUnauthorized || !strings.Contains(answer, "expired") {
			t.Errorf("got %d %s", status, answer)
		}
	}
}
