package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a starter waits for a server: long, since a loaded
// machine may take that long, and short of what a forgotten one would cost.
const patience = 2 * time.Minute

// A process is a program that runs for one test and dies with it.
type process struct {
	t       testing.TB
	name    string // for messages
	program string
	args    []string
	env     []string // besides PATH
	log     string   // what it prints
	ready   func() error
	owner   *syscall.Credential // whom it runs as; nil: this user

	command *exec.Cmd
	ended   chan struct{} // closed when command has ended; nil before the first
}

// newProcess makes a process that is not started. ready returns nil when it
// serves.
func newProcess(t testing.TB, name, program string, args []string, ready func() error) *process {
	t.Helper()
	p := &process{t: t, name: name, program: program, args: args, ready: ready, log: filepath.Join(t.TempDir(), name+".log")}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, tail(p.Log()))
		}
	})
	return p
}

// launch starts the process and does not wait for it.
func (p *process) launch() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.command = exec.Command(p.program, p.args...)                          //nolint:noctx // it outlives single steps of the test
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, p.env...) // what the program needs to find others
	p.command.Stdout, p.command.Stderr = log, log
	dieWithParent(p.command)
	as(p.command, p.owner)
	if err := p.command.Start(); err != nil {
		return err
	}
	command, ended := p.command, make(chan struct{})
	p.ended = ended
	go func() { // Kill waits for it
		defer close(ended)
		_ = command.Wait()
	}()
	return nil
}

// start starts the process and waits until it serves.
func (p *process) start() error {
	if err := p.launch(); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for {
		err := p.ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it was ready (%v): %w", p.name, p.command.ProcessState, errEnded)
		case <-time.After(10 * time.Millisecond): // the process tells nobody when it listens
		}
		if time.Now().After(deadline) {
			p.Kill()
			return fmt.Errorf("%s is not ready after %v: %w", p.name, patience, err)
		}
	}
}

var errEnded = errors.New("it has ended")

// Restart starts the process, which must not be running, and waits until it
// serves. It tries again where another program has its port just now.
func (p *process) Restart() {
	p.t.Helper()
	err := p.start()
	for try := 0; try < 5 && errors.Is(err, errEnded); try++ {
		time.Sleep(time.Second) // nobody tells when a port is free again
		err = p.start()
	}
	if err != nil {
		p.t.Fatalf("%v\n%s", err, tail(p.Log()))
	}
}

// Kill ends the process with SIGKILL and waits for its end.
func (p *process) Kill() {
	if p.ended == nil {
		return
	}
	_ = p.command.Process.Kill() // of one that has ended it is refused
	<-p.ended
}

// PID returns the process's number.
func (p *process) PID() int { return p.command.Process.Pid }

// Log returns what the process has printed.
func (p *process) Log() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

func tail(text string) string {
	const most = 8 << 10
	if len(text) > most {
		return "...\n" + text[len(text)-most:]
	}
	return text
}

// Eventually waits until something is so that nobody announces.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if so() {
			return
		}
		time.Sleep(20 * time.Millisecond) // nobody announces it
	}
	t.Fatalf("after %v it is still not so that %s", patience, what)
}

// EventuallyGoingOn is Eventually of what takes long, as long as it goes on: at says how far it is.
func EventuallyGoingOn(t testing.TB, what string, so func() (done bool, at int64)) {
	t.Helper()
	furthest := int64(-1)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		done, at := so()
		if done {
			return
		}
		if at > furthest {
			furthest, deadline = at, time.Now().Add(patience)
		}
		time.Sleep(20 * time.Millisecond) // nobody announces it
	}
	t.Fatalf("for %v nothing goes on at %d, and it is still not so that %s", patience, furthest, what)
}
