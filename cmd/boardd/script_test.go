package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, programs)
}

// programs are what scripts can run beside what is on the machine.
var programs = map[string]func(){"boardd": main}

// TestScripts runs testdata/script: each is a shell session with real processes.
// Beside testscript's own commands there are
//
//	server [ARG...]        start boardd serve --dev on a free port, with its data in
//	                       $WORK/data, and wait until it listens; sets BOARDD_ADDR and
//	                       BOARDD_TOKEN
//	halt [kill]            end it, by SIGTERM or by SIGKILL, and wait for it
//	hangup                 send it SIGHUP
//	json VAR PATH          set VAR to a part of the JSON on the last standard output,
//	                       such as results.0.job.uuid
//	eventually COMMAND...  repeat a command until it ends with 0, for 20 s at most
//	waitfile FILE          wait until there is a file with something in it
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each program that ends sleeps for a second
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"server": startServer, "halt": haltServer, "hangup": hangUp, "json": takeJSON, "eventually": eventually, "waitfile": waitFile,
		},
	})
}

const serverKey = "BOARDD_TEST_SERVER_PID"

// servers are the processes that scripts started, by the folder of the script.
type serverProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("server is never meant to fail: exec boardd serve instead")
	}
	work := ts.Getenv("WORK")
	ready := filepath.Join(work, "ready")
	log, err := os.OpenFile(filepath.Join(work, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	path, err := findProgram(ts)
	ts.Check(err)
	cmd := exec.Command(path, append([]string{
		"serve", "--dev", "--listen", "127.0.0.1:0", "--data", filepath.Join(work, "data"), "--ready-file", ready, "--log-level", "debug",
	}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, log, log
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "TMPDIR="+ts.Getenv("TMPDIR"))
	ts.Check(cmd.Start())
	p := &serverProcess{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	ts.Setenv(serverKey, strconv.Itoa(cmd.Process.Pid))
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	address := waitForText(ts, ready, p.done)
	ts.Setenv("BOARDD_ADDR", address)
	ts.Setenv("BOARDD_TOKEN", "dev")
}

func findProgram(ts *testscript.TestScript) (string, error) {
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(filepath.ListSeparator)) {
		path := filepath.Join(dir, "boardd")
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// haltServer ends the server and waits until its process is gone.
func haltServer(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(ts.Getenv(serverKey))
	ts.Check(err)
	signal := syscall.SIGTERM
	if len(args) > 0 && args[0] == "kill" {
		signal = syscall.SIGKILL
	}
	ts.Check(syscall.Kill(pid, signal))
	deadline := time.Now().Add(20 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if time.Now().After(deadline) {
			ts.Fatalf("the server is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = os.Remove(filepath.Join(ts.Getenv("WORK"), "ready"))
}

func hangUp(ts *testscript.TestScript, _ bool, _ []string) {
	pid, err := strconv.Atoi(ts.Getenv(serverKey))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGHUP))
}

func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	waitForText(ts, ts.MkAbs(args[0]), nil)
}

// waitForText waits until a file has content, and returns it.
func waitForText(ts *testscript.TestScript, path string, gone <-chan struct{}) string {
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		content, err := os.ReadFile(path)
		if err == nil && strings.TrimSpace(string(content)) != "" {
			return strings.TrimSpace(string(content))
		}
		select {
		case <-gone:
			ts.Fatalf("the server ended; see server.log:\n%s", ts.ReadFile("server.log"))
		case <-time.After(10 * time.Millisecond):
		}
	}
	ts.Fatalf("%s did not appear", path)
	return ""
}

func takeJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("want: json VAR PATH")
	}
	var value any
	line, _, _ := strings.Cut(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	if err := json.Unmarshal([]byte(line), &value); err != nil {
		ts.Fatalf("standard output is no JSON: %v", err)
	}
	for step := range strings.SplitSeq(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: no item %s", args[1], step)
			}
			value = v[i]
		default:
			ts.Fatalf("%s: nothing at %s", args[1], step)
		}
	}
	if text, ok := value.(string); ok {
		ts.Setenv(args[0], text)
		return
	}
	text, err := json.Marshal(value)
	ts.Check(err)
	ts.Setenv(args[0], string(text))
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: still %v", strings.Join(args, " "), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
