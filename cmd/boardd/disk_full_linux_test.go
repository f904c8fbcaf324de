package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
)

const smallDiskConfig = `
disk_low = "20MiB"
token "root" {
  roles  = ["operator", "poster", "worker", "tenant-admin"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "embedded"
}
board "default" {
  backend = "main"
}
`

// A filler takes room on a disk.
type filler struct {
	*testing.T

	file *os.File
	disk string
}

// leave fills the disk until so many bytes are left; 0: until nothing can be written.
func (f *filler) leave(free uint64) {
	f.Helper()
	for chunk := make([]byte, 64<<10); ; {
		var s syscall.Statfs_t
		if err := syscall.Statfs(f.disk, &s); err != nil {
			f.Fatal(err)
		}
		if free > 0 && s.Bavail*uint64(s.Bsize) <= free {
			return
		}
		if _, err := f.file.Write(chunk); err != nil {
			if !errors.Is(err, syscall.ENOSPC) || free > 0 {
				f.Fatal(err)
			}
			if len(chunk) == 1 {
				return
			}
			chunk = chunk[:len(chunk)/16]
		}
	}
}

// TestFullDisk has a server on a disk that others fill, first nearly and then wholly: what
// makes a board larger is refused, the rest goes on, nothing is lost, and it recovers.
func TestFullDisk(t *testing.T) {
	testserver.OnSmallDisk(t, 48<<20, func(disk string) {
		f := &fullStore{T: t, program: testserver.Build(t, "./cmd/boardd"), config: filepath.Join(t.TempDir(), "boards.hcl")}
		if err := os.WriteFile(f.config, []byte(smallDiskConfig), 0o600); err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(disk, "data")
		f.server = testserver.Start(t, f.program, data, "--config", f.config)
		for range 12 {
			f.done("job", "post", "resize")
		}
		says := func(text string) {
			t.Helper()
			testserver.Eventually(t, fmt.Sprintf("/readyz says %q", text), func() bool { return f.page("/readyz") == text })
		}
		says("200\nready\n")
		file, err := os.Create(filepath.Join(disk, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fill := &filler{t, file, disk}

		fill.leave(18 << 20)
		says("200\nready\na disk has little room left\n")
		f.done("job", "post", "resize")
		if page := f.page("/metrics"); !strings.Contains(page, `boardd_disk_free_bytes{path="`+data+`"} `) || !strings.Contains(page, `boardd_disk_bytes{path="`+data+`"} 5.0331648e+07`) {
			t.Errorf("the metrics do not say how much room there is:\n%s", page)
		}
		if out, err := f.run("doctor", "--config", f.config, "--data", data); err == nil || !strings.Contains(out, "disk-nearly-full") {
			t.Errorf("doctor: %v\n%s", err, out)
		}

		fill.leave(embedded.DiskReserve / 8)
		says("200\nready\na store is full: no job can be posted there\na disk has little room left\n")
		if page := f.page("/metrics"); !strings.Contains(page, `boardd_backend_full{backend="main",driver="embedded"} 1`) {
			t.Errorf("the metrics do not say that the store is full:\n%s", page)
		}
		f.refuses()
		f.drain() // four jobs, of which two stay

		fill.leave(0)
		f.refuses()
		claims := f.claim(2)
		f.done("job", "extend", "--claims", claims)
		f.done("job", "consume", "--claims", claims)
		f.done("job", "abandon", "--claims", f.claim(1))
		f.counts(13 - 2 - 2)

		if err := errors.Join(os.Remove(file.Name()), file.Close()); err != nil {
			t.Fatal(err)
		}
		says("200\nready\n")
		f.done("job", "post", "resize")
		f.counts(13 - 2 - 2 + 1)
		f.server.Kill()
		f.server.Restart()
		f.counts(13 - 2 - 2 + 1)
	})
}

// refuses tries to post.
func (f *fullStore) refuses() {
	f.Helper()
	if out, err := f.run("job", "post", "resize"); err == nil || !strings.Contains(out, "QUOTA_EXCEEDED") || !strings.Contains(out, "disk") {
		f.Errorf("a post: %v\n%s", err, out)
	}
}

// counts wants so many open jobs.
func (f *fullStore) counts(want int) {
	f.Helper()
	out := f.done("job", "list", "-o", "json")
	var list struct{ Jobs []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Jobs) != want {
		f.Errorf("%d open jobs, want %d (%v)", len(list.Jobs), want, err)
	}
}
