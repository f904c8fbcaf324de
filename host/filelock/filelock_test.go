package filelock

import (
	"errors"
	"path/filepath"
	"testing"
)

// A file that is locked is not locked a second time before it is closed.
func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Open(path); !errors.Is(err, ErrHeld) {
		t.Errorf("the second one got %v, %v; want ErrHeld", second, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := Open(path)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}
