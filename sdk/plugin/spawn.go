package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/boardd/boardd/sdk/tempfolder"
)

// A child is a driver's process as go-plugin sees it (runner.Runner). It reads
// the process's output itself: go-plugin gets only a handshake that was checked,
// since it would panic on some log lines and stop reading after others.
type child struct {
	name    string
	cmd     *exec.Cmd
	mark    string             // by which what it starts is found
	binary  *os.File           // the checked program, where there is a pin
	sockets *tempfolder.Folder // for its socket
	logger  *slog.Logger

	stdout, stderr *io.PipeReader // what go-plugin reads
	began, exited  chan struct{}
	swept          chan struct{} // closed after exited, when nothing that it started is left
	relay          *logRelay
	readers        sync.WaitGroup

	mu      sync.Mutex
	state   *os.ProcessState // after exited
	problem error            // why the handshake was not taken
	printed excerpt          // the beginning of standard output
	errors  excerpt          // the end of standard error
}

// Start runs the process. The thread that makes it lives as long as it does:
// Linux ends a child with its parent's thread, not with its parent.
func (c *child) Start(context.Context) error {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, outRead.Close(), outWrite.Close())
	}
	c.cmd.Stdout, c.cmd.Stderr = outWrite, errWrite
	started := make(chan error, 1)
	go c.live(started)
	err = <-started
	if closing := errors.Join(outWrite.Close(), errWrite.Close()); err == nil {
		err = closing
	}
	if err != nil {
		return errors.Join(err, outRead.Close(), errRead.Close())
	}
	toPlugin, fromChild := io.Pipe()
	nothing, logs := io.Pipe()
	c.stdout, c.stderr = toPlugin, nothing
	close(c.began)
	c.readers.Go(func() { c.readStdout(outRead, fromChild) })
	c.readers.Go(func() { c.readStderr(errRead, logs) })
	go c.closeOutput(outRead, errRead)
	return nil
}

func (c *child) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = c.cmd.Wait()
	killGroup(c.cmd.Process.Pid)
	c.mu.Lock()
	c.state = c.cmd.ProcessState
	c.mu.Unlock()
	close(c.exited)
	killMarked(c.mark)
	close(c.swept)
}

// outputGrace is how long output is read after the process ended: a grandchild
// may hold it open.
const outputGrace = 250 * time.Millisecond

func (c *child) closeOutput(out, err *os.File) {
	<-c.exited
	timer := time.AfterFunc(outputGrace, func() {
		_ = out.SetReadDeadline(time.Now())
		_ = err.SetReadDeadline(time.Now())
	})
	c.readers.Wait()
	timer.Stop()
	_ = out.Close()
	_ = err.Close()
}

// readStdout passes a good handshake on and logs the rest.
func (c *child) readStdout(from *os.File, to *io.PipeWriter) {
	defer func() { _ = to.Close() }()
	in := bufio.NewReaderSize(from, maxHandshake)
	line, err := in.ReadSlice('\n')
	c.mu.Lock()
	c.printed.add(line)
	if err == nil {
		err = checkHandshake(string(line), c.sockets.Path)
	} else if !errors.Is(err, bufio.ErrBufferFull) {
		err = nil // it ended; how is said elsewhere
	} else {
		err = fmt.Errorf("its first line is longer than %d bytes", maxHandshake)
	}
	c.problem = err
	c.mu.Unlock()
	if err != nil {
		_ = c.Kill(context.Background())
	} else if len(line) > 0 {
		_, _ = to.Write(line)
	}
	logLines(in, func(line []byte) {
		c.mu.Lock()
		c.printed.add(line)
		c.mu.Unlock()
		c.relay.line(line)
	})
}

func (c *child) readStderr(from *os.File, to *io.PipeWriter) {
	defer func() { _ = to.Close() }()
	logLines(bufio.NewReaderSize(from, 32<<10), func(line []byte) {
		c.mu.Lock()
		c.errors.end(line)
		c.mu.Unlock()
		c.relay.line(line)
	})
	c.relay.flush()
}

// Wait blocks until the process ended.
func (c *child) Wait(context.Context) error {
	<-c.exited
	if state := c.processState(); !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

func (c *child) processState() *os.ProcessState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Kill ends the process and all that it started, at once.
func (c *child) Kill(context.Context) error {
	select {
	case <-c.exited:
	default:
		killGroup(c.cmd.Process.Pid)
		_ = c.cmd.Process.Kill()
	}
	return nil
}

// killUnless ends the process as soon as there is one, unless done is closed first.
func (c *child) killUnless(done <-chan struct{}) {
	select {
	case <-c.began:
		_ = c.Kill(context.Background())
	case <-done:
	}
}

// Diagnose has nothing to add to the errors of Start.
func (c *child) Diagnose(context.Context) string { return "" }

// Stdout is what go-plugin reads the handshake from.
func (c *child) Stdout() io.ReadCloser { return c.stdout }

// Stderr has nothing in it and ends with the process.
func (c *child) Stderr() io.ReadCloser { return c.stderr }

// Name is the program's.
func (c *child) Name() string { return c.name }

// ID is the process's.
func (c *child) ID() string {
	if c.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(c.cmd.Process.Pid)
}

// PluginToHost changes nothing: both sides see the same files.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing either.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// blame keeps the reason for which the host gave up.
func (c *child) blame(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = err
}

// A startError is a sentence with its cause.
type startError struct {
	text  string
	cause error
}

func (e *startError) Error() string { return e.text }
func (e *startError) Unwrap() error { return e.cause }

// explain says why a process could not be used, with what it printed.
func (c *child) explain(err error) error {
	select {
	case <-c.exited:
		c.readers.Wait()
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	switch {
	case c.problem != nil:
		b.WriteString(c.problem.Error())
	case c.state != nil:
		fmt.Fprintf(&b, "it ended before its handshake (%s)", c.state)
	case errors.Is(err, syscall.ENOEXEC):
		fmt.Fprintf(&b, "%s is no program that this machine can run: a script needs a first line such as #!/bin/sh", c.cmd.Path)
	case errors.Is(err, syscall.ENOENT):
		fmt.Fprintf(&b, "%s is there, but not what runs it: look at the program that a script's first line names", c.cmd.Path)
	default:
		b.WriteString(tame(err.Error(), maxErrorText))
	}
	if text := c.printed.String(); text != "" {
		fmt.Fprintf(&b, "; it printed %q", text)
	}
	if text := c.errors.String(); text != "" {
		fmt.Fprintf(&b, "; its standard error ends with %q", text)
	}
	return &startError{text: "driver " + c.name + ": " + b.String(), cause: err}
}

// maxHandshake bounds the line that a driver begins with, in bytes.
const maxHandshake = 4 << 10

// checkHandshake says what is wrong with a driver's first line.
func checkHandshake(line, sockets string) error {
	const want = "want CORE|PROTOCOL|unix|PATH|grpc"
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 5 {
		return fmt.Errorf("its first line is no handshake: %s", want)
	}
	if parts[0] != "1" {
		return fmt.Errorf("it has version %q of go-plugin's handshake, want 1", tame(parts[0], 32))
	}
	if err := checkProtocol(parts[1], accepted); err != nil {
		return err
	}
	if parts[2] != "unix" || parts[4] != "grpc" {
		return fmt.Errorf("its handshake has %q and %q: %s", tame(parts[2], 32), tame(parts[4], 32), want)
	}
	if filepath.Dir(filepath.Clean(parts[3])) != filepath.Clean(sockets) {
		return fmt.Errorf("its socket %q is not in the folder that it was given, %s", tame(parts[3], 256), sockets)
	}
	return nil
}

// checkProtocol refuses a version of the protocol that is none of those accepted,
// and says which side is the older one.
func checkProtocol(offered string, accepted []int) error {
	version, err := strconv.Atoi(offered)
	if err == nil && slices.Contains(accepted, version) {
		return nil
	}
	accepts := strings.Trim(fmt.Sprint(accepted), "[]")
	advice := "the second field of a handshake is one of these numbers"
	switch {
	case err != nil:
	case version > accepted[len(accepted)-1]:
		advice = "use a newer boardd, or an older release of the driver"
	default:
		advice = "use a newer release of the driver, or build it with the SDK of this boardd"
	}
	return fmt.Errorf("it speaks version %q of the driver protocol, and this host speaks %s: %s", tame(offered, 32), accepts, advice)
}
