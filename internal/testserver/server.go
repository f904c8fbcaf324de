package testserver

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a boardd in a process of its own, on a port of its own.
type Server struct {
	Addr string // http://127.0.0.1:PORT
	Data string // its data folder

	// Env is added to the environment of the test when the server starts.
	Env []string

	t       testing.TB
	program string
	args    []string
	log     string
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended; nil before the first
}

// Start runs `boardd serve` with the given arguments (`--dev` where there are
// none) on a free port, waits until it is ready, and stops it when the test
// ends. Data is a new folder unless the caller sets one with dir.
func Start(t testing.TB, program, dir string, args ...string) *Server {
	t.Helper()
	s := New(t, program, dir, args...)
	s.Restart()
	return s
}

// New is Start for a server that the caller starts.
func New(t testing.TB, program, dir string, args ...string) *Server {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	if len(args) == 0 {
		args = []string{"--dev"}
	}
	s := &Server{Addr: "http://" + freeAddr(t), Data: dir, t: t, program: program, args: args, log: filepath.Join(t.TempDir(), "server.log")}
	t.Cleanup(s.Stop)
	return s
}

// givenAddrs are the addresses that freeAddr has given: whoever got one may not listen yet.
var givenAddrs sync.Map

// freeAddr returns an address that nobody listens at. Its port is below those that
// systems give to outgoing connections: one of them would be taken while a server
// that was killed is about to come back, or be connected to itself.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		addr := "127.0.0.1:" + strconv.Itoa(10_000+rand.IntN(22_000))
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
		if err != nil {
			continue // somebody listens there
		}
		_ = listener.Close() // nobody has connected
		if _, given := givenAddrs.LoadOrStore(addr, true); !given {
			return addr
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// Restart starts the server, which must not be running, and waits until it is
// ready.
func (s *Server) Restart() {
	s.t.Helper()
	s.Launch()
	for range 6000 {
		if s.Ready() {
			return
		}
		select {
		case <-s.ended:
			s.t.Fatalf("the server ended before it was ready (%v):\n%s", s.process.ProcessState, s.Log())
		case <-time.After(10 * time.Millisecond): // the process tells nobody when it listens
		}
	}
	s.t.Fatalf("the server is not ready:\n%s", s.Log())
}

// Use has the next start run another program, with the drivers in a folder.
func (s *Server) Use(program, drivers string) {
	s.program, s.Env = program, append(s.Env, "BOARDD_PLUGIN_DIR="+drivers)
}

// Launch starts the server and does not wait for it.
func (s *Server) Launch() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	args := append([]string{"serve", "--listen", strings.TrimPrefix(s.Addr, "http://"), "--data", s.Data}, s.args...)
	s.process = exec.Command(s.program, args...) //nolint:noctx // it outlives single steps of the test
	s.process.Stdout, s.process.Stderr = log, log
	s.process.Env = append([]string{"BOARDD_DRAIN_DELAY=0s"}, os.Environ()...) // nobody sends it callers who would have to hear that it ends
	s.process.Env = append(s.process.Env, s.Env...)
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() { // Kill and Stop wait for it
		defer close(ended)
		_ = process.Wait()
	}()
}

// Ready reports whether /readyz says so, within some seconds.
func (s *Server) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Addr+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Log returns what the server has printed.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.log)
	return string(text)
}

// Running reports whether the server's process has not ended.
func (s *Server) Running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the process that was launched last has ended.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// PID returns the server's process.
func (s *Server) PID() int { return s.process.Process.Pid }

// Drivers returns the processes of the server's drivers, and of its policies.
func (s *Server) Drivers() []int {
	return childrenOf(s.PID())
}

// policyArgument is that of a process in which a policy runs, see host/wasm.
const policyArgument = "policy-child"

// Policies returns those of the server's processes in which its policies run.
func (s *Server) Policies() []int {
	return slices.DeleteFunc(s.Drivers(), func(pid int) bool {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // one that has ended runs none
		return !slices.ContainsFunc(bytes.Split(words, []byte{0}), func(word []byte) bool { return string(word) == policyArgument })
	})
}

// Kill ends the server with SIGKILL and waits for its end.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// Stop ends the server with SIGTERM and waits for its end.
func (s *Server) Stop() {
	if s.ended == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM) // of one that has ended it is refused
	<-s.ended
}

// CPU returns the processor time that the server and its drivers have used.
func (s *Server) CPU() time.Duration {
	total := CPUOf(s.PID())
	for _, pid := range s.Drivers() {
		total += CPUOf(pid)
	}
	return total
}

// ClockTick is the unit of processor times in /proc: 100 a second on every
// Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// CPUOf returns the processor time that a process has used, in steps of 10 ms.
func CPUOf(pid int) time.Duration {
	fields := stat(pid)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick
}

// stat returns the fields of /proc/PID/stat after the program's name, which is
// in brackets and may hold spaces: state, parent and so on.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')'):], []byte(" "))
	return strings.Fields(string(rest))
}

// Memory is what a process has in memory, in bytes.
type Memory struct {
	Resident  int64 // now
	Anonymous int64 // of that, what belongs to no file, so that the kernel cannot drop it
	Peak      int64 // the most it ever had
}

// MemoryOf returns what a process has in memory.
func MemoryOf(t testing.TB, pid int) Memory {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var m Memory
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.Resident = kilobytes << 10
		case "RssAnon":
			m.Anonymous = kilobytes << 10
		case "VmHWM":
			m.Peak = kilobytes << 10
		}
	}
	return m
}

// Stages returns the processor time of the server and of its drivers apart.
func (s *Server) Stages() (host, drivers time.Duration) {
	host = CPUOf(s.PID())
	return host, s.CPU() - host
}
