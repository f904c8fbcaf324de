//go:build linux && (amd64 || arm64)

package wasm

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/boardd/boardd/internal/testneed"
)

// sealedSays is what the process of TestNoFork says if all is well.
const sealedSays = "threads, and no processes"

// A sealed process has threads, and no other processes.
func TestNoFork(t *testing.T) {
	t.Parallel()
	if text, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(text), "\nSeccomp:") {
		testneed.Skip(t, "the kernel says nothing of seccomp")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSealedProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "BOARDD_TEST_SEALED=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), sealedSays) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSealedProcess is the other process of TestNoFork.
func TestSealedProcess(t *testing.T) { // not parallel: it is all that its process does
	if os.Getenv("BOARDD_TEST_SEALED") == "" {
		return
	}
	if err := seal(nil); err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		number uintptr
		want   syscall.Errno
	}{{unix.SYS_CLONE, unix.EPERM}, {unix.SYS_CLONE3, unix.ENOSYS}} {
		id, _, errno := syscall.RawSyscall6(call.number, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if id == 0 && errno == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // it is the new process
		}
		if !errors.Is(errno, call.want) {
			t.Errorf("call %d: process %d, %v, want %v", call.number, id, errno, call.want)
		}
	}
	var threads sync.WaitGroup
	begun, end := make(chan struct{}), make(chan struct{})
	for range 50 {
		threads.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun <- struct{}{}
			<-end
		})
		<-begun
	}
	close(end)
	threads.Wait()
	if !t.Failed() {
		t.Log(sealedSays)
	}
}
