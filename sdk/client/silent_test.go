package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// frozen is a server whose process is stopped: it answers nothing. One that is only slow
// says that it is alive.
type frozen struct{ alive bool }

func (f frozen) Do(r *http.Request) (*http.Response, error) {
	if f.alive && r.URL.Path == "/healthz" {
		return httptest.NewRecorder().Result(), nil
	}
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// TestSilentServer makes calls at a server that has stopped, and at one that is only slow.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	count := func(ctx context.Context, b *client.Board) error {
		_, err := b.Count(ctx)
		return err
	}
	claim := func(ctx context.Context, b *client.Board) error {
		claims, err := b.Claim(ctx, client.ClaimOptions{Owner: "w", Wait: time.Minute})
		if len(claims) != 1 {
			t.Errorf("%d claims, %v", len(claims), err)
		}
		return err
	}
	for name, c := range map[string]struct {
		first  frozen
		call   func(context.Context, *client.Board) error
		within time.Duration // and not before the next shorter time
		asked  []string
	}{
		"stopped":             {frozen{}, count, 5 * time.Second, []string{"one", "one/healthz", "two"}},
		"stopped, and a wait": {frozen{}, claim, 13 * time.Second, []string{"one", "one/healthz", "two"}},
		"slow": {
			frozen{alive: true},
			count, 30 * time.Second,
			[]string{"one", "one/healthz", "one/healthz", "one/healthz", "two"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.post(&boarddv1.NewJob{Name: "job"})
			h := &hosts{up: map[string]connect.HTTPClient{"one": c.first, "two": transportOf(f)}}
			cl, err := client.New(client.Config{Addr: "http://one,http://two", HTTPClient: h})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := c.call(t.Context(), cl.Board("default")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took != c.within {
				t.Errorf("%s: it took %v, want %v", name, took, c.within)
			}
			for i, asked := range h.asked {
				h.asked[i], _, _ = strings.Cut(asked, "/boardd.v1.")
			}
			if !slices.Equal(h.asked, c.asked) {
				t.Errorf("%s: it asked %q, want %q", name, h.asked, c.asked)
			}
		})
	}
}
