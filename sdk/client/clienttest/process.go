package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// adminToken is the token of `boardd serve --dev`, which may do everything.
const adminToken = "dev"

// server is a boardd in a process of its own.
type server struct {
	program, folder, addr string
	process               *exec.Cmd
	patience              time.Duration
}

func startServer(ctx context.Context, program string, patience time.Duration) (*server, error) {
	folder, err := os.MkdirTemp("", "boardd-client-check-")
	if err != nil {
		return nil, err
	}
	s := &server{program: program, folder: folder, addr: "127.0.0.1:0", patience: patience}
	if err := s.start(ctx); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *server) start(ctx context.Context) error {
	ready := filepath.Join(s.folder, "ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	var log bytes.Buffer
	s.process = exec.Command(s.program, "serve", "--dev", "--listen", strings.TrimPrefix(s.addr, "http://"), "--data", filepath.Join(s.folder, "data"), "--ready-file", ready) //nolint:noctx // it is ended by remove
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(s.patience); ; {
		if text, err := os.ReadFile(ready); err == nil && len(text) > 0 {
			addr := strings.TrimSpace(string(text))
			s.addr = "http://" + addr[strings.LastIndexByte(addr, '/')+1:]
			return nil
		}
		if time.Now().After(end) {
			return errors.New("the server did not start:\n" + log.String())
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *server) kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait() // killed
	}
}

func (s *server) restart(ctx context.Context) error {
	s.kill()
	return s.start(ctx)
}

func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.folder)
}

func (s *server) client() *client.Client {
	c, err := client.New(client.Config{Addr: s.addr, Token: adminToken})
	if err != nil {
		panic(err) // the address is the server's own
	}
	return c
}

func (s *server) admin() *client.Admin { return s.client().Admin() }

// newBoard makes a board with the lease.
func (s *server) newBoard(ctx context.Context) (*client.Board, error) {
	const name = "check"
	settings := &boarddv1.BoardSettings{Name: name, Backend: "embedded", Lease: durationpb.New(lease)}
	if _, err := s.admin().CreateBoard(ctx, &boarddv1.CreateBoardRequest{Board: settings}); err != nil {
		return nil, err
	}
	return s.client().Board(name), nil
}

// worker is the program that is judged.
type worker struct {
	process  *exec.Cmd
	patience time.Duration
	done     chan struct{} // closed when it has ended

	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed when there is another line
	failed  bytes.Buffer
}

func startWorker(command, environment []string, addr, token, board string, patience time.Duration) (*worker, error) {
	w := &worker{patience: patience, done: make(chan struct{}), changed: make(chan struct{})}
	w.process = exec.Command(command[0], command[1:]...) //nolint:noctx,gosec // it is ended by kill; what is run is what is judged
	w.process.Env = append(slices.Clone(environment), "BOARDD_ADDR="+addr, "BOARDD_TOKEN="+token, "BOARDD_BOARD="+board, "BOARDD_TOKEN_FILE=")
	w.process.Stderr = writer(func(b []byte) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed.Write(b)
	})
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.mu.Lock()
			w.lines = append(w.lines, strings.TrimSpace(lines.Text()))
			close(w.changed)
			w.changed = make(chan struct{})
			w.mu.Unlock()
		}
		_ = w.process.Wait() // what it ended with is asked for later
	}()
	return w, nil
}

type writer func([]byte)

// Write gives the bytes away.
func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func (w *worker) kill() {
	_ = w.process.Process.Kill()
	<-w.done
}

func (w *worker) stop() error { return w.process.Process.Signal(syscall.SIGTERM) }

func (w *worker) errors() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(w.failed.String())
}

// count returns how often it printed a line.
func (w *worker) count(line string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines {
		if l == line {
			n++
		}
	}
	return n
}

// prints waits until it has printed a line.
func (w *worker) prints(ctx context.Context, line string) error {
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	for {
		w.mu.Lock()
		lines, changed := slices.Clone(w.lines), w.changed
		w.mu.Unlock()
		if slices.Contains(lines, line) {
			return nil
		}
		failed := fmt.Errorf("it did not print %q, but %q", line, lines)
		select {
		case <-changed:
		case <-w.done:
			if w.count(line) == 0 {
				return fmt.Errorf("%w, and ended with code %d", failed, w.process.ProcessState.ExitCode())
			}
		case <-timer.C:
			return failed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ended waits for its end, and returns its exit code.
func (w *worker) ended(ctx context.Context) (int, error) {
	select {
	case <-w.done:
		return w.process.ProcessState.ExitCode(), nil
	case <-time.After(w.patience):
		return 0, errors.New("it did not end")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
