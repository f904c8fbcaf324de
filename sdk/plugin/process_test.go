package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestProcess(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), command(t, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if diff := cmp.Diff(storeProgram().Info, p.Info()); diff != "" {
		t.Errorf("Info (-want +got):\n%s", diff)
	}
	d, err := p.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	results := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: job.ID{7}, Version: 4}})
	if diff := cmp.Diff([]driver.Result{{Position: 1, Version: 5}}, results); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-p.Exited()
	if got := p.Ending().Error(); !strings.Contains(got, "exit status 0") {
		t.Errorf("the process ended with %q, want exit status 0", got)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		act  string
		want []string
	}{
		{"garbage", []string{"driver garbage: ", "no handshake", `it printed "starting up ?[31m..."`}},
		{"endless", []string{"driver endless: ", "longer than 4096 bytes"}},
		{"version", []string{"driver version: ", `version "99"`, "this host speaks 1", "use a newer boardd, or an older release of the driver"}},
		{"elsewhere", []string{"/tmp/somebody-elses.sock", "is not in the folder"}},
		{"exit", []string{"driver exit: ", "exit status 3", "no such library"}},
		{"hang", []string{"driver hang: ", "did not say its handshake within 500ms"}},
	} {
		t.Run(test.act, func(t *testing.T) {
			t.Parallel()
			c := command(t, test.act)
			if test.act == "hang" {
				c.Timeout = 500 * time.Millisecond
			}
			p, err := Start(t.Context(), c)
			if err == nil {
				p.Abort()
				t.Fatal("Start succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestStartCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, command(t, "hang")); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("the error is %v, want the deadline", err)
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	c := command(t, "store")
	b, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(b)
	c.SHA256 = strings.ToUpper(hex.EncodeToString(digest[:]))
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	c.SHA256 = strings.Repeat("0", 64)
	if p, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), hex.EncodeToString(digest[:])) {
		t.Errorf("another digest: %v, want an error with the right one", err)
		if p != nil {
			p.Abort()
		}
	}
}

func TestUnfitPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"):    "no such file",
		dir:                              "is a folder",
		write("plain", "x", 0o600):       "is not executable",
		write("data", "\x00\x01", 0o700): "is no program that this machine can run: a script needs a first line such as #!/bin/sh",
		write("script", "#!/no/such/shell\n", 0o700): "is there, but not what runs it",
	} {
		_, err := Start(t.Context(), Command{Path: path})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "driver "+filepath.Base(path)+": ") {
			t.Errorf("%s: the error is %v, want %q in it", path, err, want)
		}
	}
}

// TestEnvironment checks what a driver sees of its host.
func TestEnvironment(t *testing.T) {
	t.Setenv("BOARDD_TEST_SECRET", "x")
	log := &records{}
	c := command(t, "tell")
	c.Logger = log.logger()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), driver.Config{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(log.String(), "printed by fmt") })
	p.Kill()
	<-p.Exited()
	text := log.String()
	for _, want := range []string{
		"stdin is /dev/null", "an attribute", "count=3", "level=WARN", "plugin=tell", "printed by fmt", "printed by another program", "group is its own", `variable="PLUGIN_PROTOCOL_VERSIONS=1"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if strings.Contains(text, "BOARDD_TEST_SECRET") {
		t.Error("the driver sees the host's environment")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestFlood has a driver write more to standard error than a log can bear.
func TestFlood(t *testing.T) {
	t.Parallel()
	log := &records{}
	c := command(t, "chatty")
	c.Logger = log.logger()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	<-p.Exited()
	text := log.String()
	if n := strings.Count(text, "\n"); n > maxLogBurst+maxLogRate*60 {
		t.Errorf("%d lines came through", n)
	}
	if !strings.Contains(text, "were left out") {
		t.Error("nothing is said of what was left out")
	}
}

// TestKillHung stops a process dead and ends it all the same.
func TestKillHung(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), command(t, "store"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), driver.Config{}); err != nil {
		t.Fatal(err)
	}
	testserver.Freeze(t, p.PID())
	p.Kill()
	<-p.Exited()
	if got := p.Ending().Error(); !strings.Contains(got, "killed") {
		t.Errorf("the process ended with %q, want killed", got)
	}
	if _, err := os.Stat(p.child.sockets.Path); !os.IsNotExist(err) {
		t.Errorf("the folder for sockets is still there: %v", err)
	}
}

// TestDiesInABatch ends the process while ops are under way.
func TestDiesInABatch(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), command(t, "dies"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	d, err := p.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(1)}})[0]; got.Kind != job.OutcomeUnknown {
		t.Errorf("Apply is %v, want %v", got.Kind, job.OutcomeUnknown)
	}
	<-p.Lost()
	<-p.Exited()
	if got := p.Ending().Error(); !strings.Contains(got, "exit status 9") || !strings.Contains(got, "the store is damaged") {
		t.Errorf("the process ended with %q, want its status and its last words", got)
	}
}

// TestByHand runs a driver without a host.
func TestByHand(t *testing.T) {
	t.Parallel()
	c := command(t, "store")
	cmd := exec.CommandContext(t.Context(), c.Path)
	cmd.Env = c.Env
	out, err := cmd.CombinedOutput()
	if want := "store: this is a boardd driver; put it into plugin_dir"; !strings.Contains(string(out), want) || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it printed %q and ended with %v, want %q and status 1", out, err, want)
	}
}
