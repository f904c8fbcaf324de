package testserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signalAgain is when a proxy that does nothing is told again to read its configuration:
// HAProxy's master loses a signal that comes while it executes itself anew.
const signalAgain = 10 * time.Second

// Reload has the proxy read its configuration anew, and waits until that is over: new
// calls go to another worker process, and the one before has been told to end. It stays
// for the calls that it has.
func (r *Reverse) Reload() {
	r.t.Helper()
	var before []string
	Eventually(r.t, "the proxy has a worker process", func() bool {
		before = r.workers()
		return len(before) > 0
	})
	var told time.Time
	Eventually(r.t, "the proxy has another worker process, and that alone takes calls", func() bool {
		now := r.workers()
		if len(now) > 0 && !slices.ContainsFunc(now, func(pid string) bool { return slices.Contains(before, pid) }) {
			return true
		}
		if time.Since(told) > signalAgain {
			if err := r.command.Process.Signal(r.reload); err != nil {
				r.t.Fatal(err)
			}
			told = time.Now()
		}
		return false
	})
	Eventually(r.t, "the proxy passes calls on again", func() bool { return r.passes(r.t) == nil })
}

// nginxWorkers reads them from the titles of the processes whose parent is the master: a
// former one says that it is shutting down.
func (r *Reverse) nginxWorkers() (pids []string) {
	r.t.Helper()
	pid := strconv.Itoa(r.PID())
	text, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		r.t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(text)) {
		title, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
		if bytes.Contains(title, []byte("worker process")) && !bytes.Contains(title, []byte("is shutting down")) {
			pids = append(pids, child)
		}
	}
	return pids
}

// haproxyWorkers asks the master, which answers again when it is done with a reload.
// There are none while it does not answer.
func (r *Reverse) haproxyWorkers() (pids []string) {
	c, err := new(net.Dialer).DialContext(context.Background(), "unix", r.control)
	if err != nil {
		return nil
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(signalAgain)) // of a socket that was just made it is not refused
	if _, err := c.Write([]byte("show proc\n")); err != nil {
		return nil
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil { //nolint:forcetypeassert // of a dialer for "unix"
		return nil
	}
	text, err := io.ReadAll(c)
	if err != nil {
		return nil
	}
	current, _, _ := strings.Cut(string(text), "# old workers")
	for line := range strings.Lines(current) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "worker" {
			pids = append(pids, fields[0])
		}
	}
	return pids
}
