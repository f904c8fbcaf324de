package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// actVariable makes the test binary a driver, or something that only looks like
// one.
const actVariable = "BOARDD_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		play(act)
		return
	}
	os.Exit(m.Run())
}

func play(act string) {
	switch act {
	case "store":
		Serve(storeProgram())
	case "tell":
		program := storeProgram()
		program.Info.Config = driver.Schema{}
		open := program.Open
		program.Open = func(ctx context.Context, c driver.Config) (driver.Driver, error) {
			tell(c.Logger)
			return open(ctx, c)
		}
		Serve(program)
	case "parent":
		child := exec.Command("sleep", "3600")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := os.WriteFile(os.Getenv(childFile), []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		Serve(storeProgram())
	case "dies":
		s := newStore(driver.Config{})
		s.apply = func(context.Context, string, []driver.Op) []driver.Result {
			fmt.Fprintln(os.Stderr, "the store is damaged")
			os.Exit(9)
			return nil
		}
		Serve(programOf(s))
	case "memory":
		Serve(memdriver.Program())
	case "garbage":
		fmt.Fprintln(os.Stdout, "starting up \x1b[31m...")
		time.Sleep(time.Minute)
	case "endless":
		for {
			fmt.Fprint(os.Stdout, strings.Repeat("x", 1<<16))
		}
	case "version":
		fmt.Fprintln(os.Stdout, "1|99|unix|"+os.Getenv("PLUGIN_UNIX_SOCKET_DIR")+"/s|grpc|")
		time.Sleep(time.Minute)
	case "elsewhere":
		fmt.Fprintln(os.Stdout, "1|1|unix|/tmp/somebody-elses.sock|grpc|")
		time.Sleep(time.Minute)
	case "exit":
		fmt.Fprintln(os.Stderr, "no such library")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Minute)
	case "chatty":
		program := storeProgram()
		for range 50_000 {
			fmt.Fprintln(os.Stderr, `{"@level":"info","@message":7}`)
		}
		Serve(program)
	default:
		fmt.Fprintln(os.Stderr, "no such act: "+act)
		os.Exit(1)
	}
}

// tell writes what a driver sees of the world to its log and elsewhere.
func tell(l *slog.Logger) {
	in, _ := os.Readlink("/proc/self/fd/0")
	l.Info("stdin is " + in)
	l.With("an attribute", true).WithGroup("g").Warn("hello", "count", 3)
	if syscall.Getpgrp() == os.Getpid() {
		l.Info("group is its own")
	}
	for _, v := range os.Environ() {
		l.Info("environment", "variable", v)
	}
	fmt.Fprintln(os.Stdout, "printed by fmt")
	cmd := exec.Command("/bin/sh", "-c", "echo printed by another program")
	cmd.Stdout = os.NewFile(1, "stdout")
	if err := cmd.Run(); err != nil {
		l.Error("sh", "error", err)
	}
}

// childFile names the file in which the act "parent" writes the process that it started.
const childFile = "BOARDD_TEST_CHILD_FILE"

func command(t testing.TB, act string) Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Command{Path: self, Name: act, Env: []string{actVariable + "=" + act}}
}

var _ driver.Driver = (*store)(nil)
