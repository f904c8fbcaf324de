package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

const drainConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "here" {
  driver = "embedded"
}
board "default" {
  backend = "here"
}
`

// TestDrain sends a server SIGTERM: it says that it is not ready and does everything
// else as before, for the delay that it was given, and then ends by itself.
func TestDrain(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	write := func(delay string) string {
		config := filepath.Join(t.TempDir(), "boards.hcl")
		if err := os.WriteFile(config, []byte(drainConfig+delay), 0o600); err != nil {
			t.Fatal(err)
		}
		return config
	}
	get := func(s *testserver.Server, path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addr+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer not-very-secret-1234567890")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	// The flag goes before the file, whose delay the test could not wait for.
	s := testserver.Start(t, program, "", "--config", write(`drain_delay = "10m"`), "--drain-delay", "20s")
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it says that it ends", func() bool {
		code, text := get(s, "/readyz")
		return code == http.StatusServiceUnavailable && text == "not ready\nthe server is shutting down\n"
	})
	if _, text := get(s, "/metrics"); !strings.Contains(text, "\nboardd_ready 0\n") {
		t.Error("the metrics do not say that it is not ready")
	}
	if code, text := get(s, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz while it drains: %d %s", code, text)
	}
	post := exec.CommandContext(t.Context(), program, "job", "post", "late")
	post.Env = append(os.Environ(), "BOARDD_ADDR="+s.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	if out, err := post.CombinedOutput(); err != nil {
		t.Errorf("a call while it drains: %v\n%s", err, out)
	}
	if !strings.Contains(s.Log(), "drain_delay=20s") {
		t.Errorf("the delay is not that of the flag:\n%s", s.Log())
	}
	testserver.Eventually(t, "it ends", func() bool { return strings.Contains(s.Log(), "msg=stopped") })

	for _, wrong := range []string{`drain_delay = "11m"`, `drain_delay = "-1s"`, `drain_delay = 5`} {
		out, err := exec.CommandContext(t.Context(), program, "config", "check", "--config", write(wrong)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "drain_delay") {
			t.Errorf("%s: %v\n%s", wrong, err, out)
		}
	}
}
