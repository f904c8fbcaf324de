package soak_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/soak"
)

func TestGrown(t *testing.T) {
	t.Parallel()
	before := soak.Sample{"goroutines": 100, "heap_bytes": 40 << 20, "redis_keys": 50}
	for name, c := range map[string]struct {
		now  soak.Sample
		want []string
	}{
		"the same":   {soak.Sample{"goroutines": 100, "heap_bytes": 40 << 20, "redis_keys": 50}, nil},
		"less":       {soak.Sample{"goroutines": 10, "heap_bytes": 1, "redis_keys": 0}, nil},
		"just so":    {soak.Sample{"goroutines": 124, "heap_bytes": 56 << 20, "redis_keys": 56}, nil},
		"one leaked": {soak.Sample{"goroutines": 125, "heap_bytes": 40 << 20, "redis_keys": 50}, []string{"goroutines"}},
		"memory":     {soak.Sample{"goroutines": 100, "heap_bytes": 56<<20 + 1, "redis_keys": 50}, []string{"heap_bytes"}},
		"unseen":     {soak.Sample{"goroutines": 100, "heap_bytes": 1}, []string{"redis_keys"}},
	} {
		got := soak.Grown(before, c.now)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], ":")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := soak.Grown(soak.Sample{"elephants": 1}, soak.Sample{"elephants": 1}); len(got) != 1 {
		t.Errorf("what nobody knows: %v", got)
	}
}

func TestRecordAndDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "figures.csv")
	for round := range 2 {
		if err := soak.Record(path, "redis", round, soak.Sample{"files": 7, "goroutines": int64(round)}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 4 || !strings.HasSuffix(lines[3], ",redis,1,goroutines,1") {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "audit", "x"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, bytes, err := soak.Disk(folder, "audit"); err != nil || files != 1 || bytes != int64(len(text)) {
		t.Errorf("%d files, %d bytes, %v", files, bytes, err)
	}
}
