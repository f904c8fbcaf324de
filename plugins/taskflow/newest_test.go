package taskflow_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
)

// TestNewestFixtures reads and writes again what a TaskFlow of 2026 wrote, which
// is newer than Debian's.
func TestNewestFixtures(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/redis-newest.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Postings []struct {
			What, Field string
			Value       hexBytes
		}
		Modified []struct{ Value hexBytes }
	}
	if err := json.Unmarshal(text, &f); err != nil || len(f.Postings) < 10 || len(f.Modified) < 5 {
		t.Fatalf("%d postings and %d times: %v", len(f.Postings), len(f.Modified), err)
	}
	for _, p := range f.Postings {
		decoded, err := taskflow.DecodeRedis(p.Field, p.Value)
		if err != nil {
			t.Errorf("%s: %v", p.What, err)
			continue
		}
		again, err := taskflow.EncodeRedis(&decoded)
		if err != nil || !bytes.Equal(again, p.Value) {
			t.Errorf("%s, encoded again (%v):\n%x, want\n%x", p.What, err, again, p.Value)
		}
	}
	for _, m := range f.Modified {
		at, _, _, err := taskflow.DecodeModified(m.Value)
		if err != nil || at.Year() != 2026 {
			t.Errorf("%x is read as %v: %v", m.Value, at, err)
		}
	}
}
