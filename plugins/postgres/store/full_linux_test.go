package store

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// postOf posts one job with so many bytes of details, which cannot be compressed.
func postOf(t *testing.T, d driver.Driver, size int) driver.Result {
	t.Helper()
	details := make([]byte, size)
	_, _ = rand.Read(details) // never fails
	details, err := json.Marshal(map[string][]byte{"a": details})
	if err != nil {
		t.Fatal(err)
	}
	ops := postsOf(1)
	ops[0].Posting.Details = details
	return d.Apply(t.Context(), "b", ops)[0]
}

// TestFullDisk has the tables on a disk that somebody fills. Large changes are refused, small ones
// may be made, and all the while the store says that it is full, until there is room.
func TestFullDisk(t *testing.T) {
	testserver.OnSmallDisk(t, 64<<20, func(disk string) {
		p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true}) // its log is elsewhere
		space := filepath.Join(disk, "space")
		owner, err := os.Stat(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		as := owner.Sys().(*syscall.Stat_t)                                                                                                                                //nolint:forcetypeassert // on Linux it is
		if err := errors.Join(os.Mkdir(space, 0o700), os.Chown(space, int(as.Uid), int(as.Gid)), os.Chmod(disk, 0o711), os.Chmod(filepath.Dir(disk), 0o711)); err != nil { //nolint:gosec // it holds nothing secret
			t.Fatal(err)
		}
		p.SQL("postgres", `CREATE TABLESPACE small LOCATION '`+space+`'`)
		p.SQL("postgres", `CREATE DATABASE boards TABLESPACE small`)
		d, err := openWith(t.Context(), map[string]any{"url": p.URL("boards")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		const large, small = 2 << 20, 10
		if r := postOf(t, d, small); r.Kind != job.NoKind || d.Health(t.Context()) != nil {
			t.Fatalf("while there is room: %v, %s", r.Kind, r.Message)
		}
		filler := filepath.Join(disk, "filler")
		if err := os.WriteFile(filler, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk was to be full: %v", err)
		}
		for range 4 {
			if r := postOf(t, d, large); r.Kind != job.QuotaExceeded || !strings.Contains(r.Message, noDisk) {
				t.Errorf("a large post: %v, %s; want it refused", r.Kind, r.Message)
			}
			if r := postOf(t, d, small); r.Kind != job.NoKind {
				t.Errorf("a small post: %v, %s; want it made, there is room in the pages", r.Kind, r.Message)
			}
			if err := d.Health(t.Context()); job.KindOf(err) != job.QuotaExceeded {
				t.Errorf("after a small post the store says %v: want that it is full", err)
			}
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if r := postOf(t, d, large); r.Kind != job.NoKind || d.Health(t.Context()) != nil {
			t.Errorf("with room: %v, %s; the store says %v", r.Kind, r.Message, d.Health(t.Context()))
		}
	})
}
