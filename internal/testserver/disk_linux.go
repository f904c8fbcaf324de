package testserver

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

const inOwnMounts = "BOARDD_TEST_OWN_MOUNTS"

// OnSmallDisk runs a test with a folder that is a disk of so many bytes. The test runs
// again for that, in a process whose mounts nobody else sees. Only root may do so.
func OnSmallDisk(t *testing.T, size int, test func(folder string)) {
	t.Helper()
	if os.Getenv(inOwnMounts) != t.Name() {
		unshare := testneed.Program(t, "unshare")
		if os.Geteuid() != 0 || exec.CommandContext(t.Context(), unshare, "-m", "true").Run() != nil {
			testneed.Skip(t, "mounting a file system needs a right that only root has")
		}
		again := exec.CommandContext(t.Context(), unshare, "-m", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m") //nolint:gosec // this very program
		again.Env = append(os.Environ(), inOwnMounts+"="+t.Name())
		out, err := again.CombinedOutput()
		if err != nil {
			t.Fatalf("on a small disk: %v\n%s", err, out)
		}
		t.Logf("on a small disk:\n%s", out)
		return
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }) // its namespace ends with the process
	test(folder)
}
