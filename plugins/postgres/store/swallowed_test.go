package store

import (
	"context"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// impatient opens a driver that waits for an answer only briefly.
func impatient(t *testing.T, at string) *store {
	t.Helper()
	s, settings, err := connect(t.Context(), driver.Config{Settings: []byte(`{"url":"postgres://postgres@` + at + `/postgres?sslmode=disable"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(t.Context(), settings.migrate); err != nil {
		t.Fatal(err)
	}
	s.patience = 200 * time.Millisecond
	s.follow(settings)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSwallowed has a proxy before the server acknowledge what comes, and pass nothing on. Calls
// end with their deadlines, and say what is true; Health does, too. When it passes things on
// again calls go on, and so do a watch of the board, one of documents and the inbox, though what
// they had asked was never answered.
func TestSwallowed(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	proxy := testserver.NewProxy(t, p.Addr)
	s := impatient(t, proxy.Addr())
	other, err := opened(t, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for _, d := range []driver.Driver{s, other} {
		opensAgain(t, d, driver.BoardSpec{Name: "b"})
	}
	seen, told := make(chan driver.Position, 100), make(chan string, 100)
	go func() {
		for after := driver.Position(0); t.Context().Err() == nil; { // as a host does, it begins again where a watch failed
			for step, err := range s.Watch(t.Context(), "b", after) {
				if err != nil {
					break
				}
				after = step.Position
				seen <- after
			}
		}
	}()
	go func() {
		for t.Context().Err() == nil {
			for change, err := range s.Documents().Watch(t.Context(), driver.Space{Name: "s"}) {
				if err == nil && !change.Synced {
					told <- change.Document.Name
				}
			}
		}
	}()
	heard := func() {
		t.Helper()
		at := done(t, other, postsOf(1))[0].Position
		testserver.Eventually(t, "the watch has the post of the other driver", func() bool { return <-seen >= at })
	}
	heard()

	proxy.SetDeaf(true)
	ops := postsOf(4)
	ask := func(do func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		do(ctx) // and comes back, or the test does not end
	}
	for _, op := range ops {
		ask(func(ctx context.Context) {
			if kind := s.Apply(ctx, "b", []driver.Op{op})[0].Kind; kind != job.Interrupted && kind != job.Unavailable {
				t.Errorf("an op that never reached the server: %v, want Interrupted or Unavailable", kind)
			}
		})
		ask(func(ctx context.Context) {
			if err := s.Health(ctx); err == nil {
				t.Error("Health has nothing to say")
			}
		})
	}
	proxy.SetDeaf(false)
	testserver.Eventually(t, "the driver is well again", func() bool { return s.Health(t.Context()) == nil })
	for _, op := range ops {
		var r driver.Result
		testserver.Eventually(t, "the op is done", func() bool {
			r = s.Apply(t.Context(), "b", []driver.Op{op})[0]
			return r.Kind == job.NoKind
		})
		if r.Repeated {
			t.Error("an op of which nothing was to have been changed was done before")
		}
	}
	heard()
	if _, err := other.Documents().Put(t.Context(), driver.Space{Name: "s"}, driver.Document{Name: "d"}, 0); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the watch has the document of the other driver", func() bool { return <-told == "d" })
	leave(p, "b", []job.ID{{7}})
	testserver.Eventually(t, "the inbox is seen", func() bool {
		for page, err := range s.Scan(t.Context(), "b", driver.ScanRequest{Set: driver.InboxPostings}) {
			if err == nil && len(page.Records) == 1 {
				return true
			}
		}
		return false
	})
}
