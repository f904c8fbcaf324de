package store

import (
	"strings"
	"testing"
)

// TestNames checks that a server is asked to leave out the values if it can, that one that
// cannot is asked once, and that the next server is asked anew.
func TestNames(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	err := f.client.Do(t.Context(), "HSCAN", "b:listings", 0, "NOVALUES").Err()
	if err != nil && !strings.Contains(err.Error(), "syntax error") {
		t.Fatal(err)
	}
	cannot := err != nil
	for range 3 {
		if err := f.sweep.listings(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.store.valued.Load(); got != cannot {
		t.Errorf("the server refuses: %v, and is held for one that does: %v", cannot, got)
	}
	failed := 0
	for line := range strings.Lines(f.server.Command("INFO", "commandstats")) {
		if strings.HasPrefix(line, "cmdstat_hscan:") {
			_, text, _ := strings.Cut(strings.TrimSpace(line), "failed_calls=")
			failed = int(parseInt(text))
		}
	}
	want := 0
	if cannot {
		want = 2 // this test's, and the first search's
	}
	if failed != want {
		t.Errorf("the server refused %d times, want %d", failed, want)
	}
	f.store.valued.Store(true)
	f.server.Kill()
	f.server.Restart()
	for range 10 { // the first connections are refused, since the server was not met before
		if err = f.store.Health(t.Context()); err == nil {
			break
		}
	}
	if f.store.valued.Load() {
		t.Errorf("another server is not asked: %v", err)
	}
}
