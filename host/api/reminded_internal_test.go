package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// hears notes what other servers tell this one that they remember.
func (m *member) hears(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != rememberPath {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
		var boards []host.Remembered
		if err == nil && json.Unmarshal(body, &boards) == nil {
			for _, b := range boards {
				m.heard.Store(b.At.Tenant+"/"+b.At.Name, b.Position)
			}
		}
	})
}

// TestReminded has a server open a board of another one. It was told how far the board had come
// there, and reminds its driver of that: a store that was put back meanwhile is found.
func TestReminded(t *testing.T) {
	t.Parallel()
	members := startFleet(t)
	owner, next := members[0], members[1]
	name := owner.has(t, "default")
	key := "default/" + name
	if _, ok := next.door.opened.Load(key); ok {
		t.Fatalf("the board %s was open on both servers", key)
	}
	told := func() driver.Position {
		p, _ := next.heard.Load(key)
		position, _ := p.(driver.Position)
		return position
	}
	for range 3 {
		before := told()
		if a, err := owner.call(t.Context(), "default", "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"name":"x"}]}`, name)); err != nil || !a.posted() {
			t.Fatal(a.text, err)
		}
		testserver.Eventually(t, "the other server has heard of a post", func() bool { return told() > before })
	}
	if _, err := next.host.DrainServer(t.Context(), owner.advertised(), false); err != nil {
		t.Fatal(err)
	}
	var spec driver.BoardSpec
	testserver.Eventually(t, "the other server opens the board", func() bool {
		s, ok := next.door.opened.Load(key)
		spec, _ = s.(driver.BoardSpec)
		return ok
	})
	if len(spec.Witness) == 0 || spec.Seen != told() {
		t.Errorf("its driver is reminded of %q and the position %d, want a witness and %d", spec.Witness, spec.Seen, told())
	}
}
