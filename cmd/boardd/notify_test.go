package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// TestTellsSystemd: a server says that it listens when it does, to whom it was told, and
// goes on where nobody hears it.
func TestTellsSystemd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := testserver.New(t, testserver.Build(t, "./cmd/boardd"), "")
	server.Env = []string{"NOTIFY_SOCKET=" + path}
	server.Restart()
	if name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(server.PID()), "comm")); err == nil && string(name) != "boardd\n" { // where there is a /proc
		t.Errorf("pgrep and top call the server %q", name)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, err := c.Read(text); err != nil || string(text[:n]) != "READY=1" {
		t.Errorf("systemd heard %q, %v", text[:n], err)
	}
	server.Stop()
	server.Env = []string{"NOTIFY_SOCKET=" + path + "-of-nobody"}
	server.Restart()
	if status, body := testserver.Get(t, server.Addr+"/healthz", ""); status != 200 {
		t.Errorf("a server that nobody hears: %d, %s", status, body)
	}
}
