package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// openTerminal returns both ends of a pseudo-terminal of the given size.
func openTerminal(t *testing.T, width, height uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	var number, unlocked uint32
	size := [4]uint16{height, width}
	for request, at := range map[uintptr]unsafe.Pointer{
		syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSPTLCK: unsafe.Pointer(&unlocked), syscall.TIOCSWINSZ: unsafe.Pointer(&size),
	} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(at)); errno != 0 { //nolint:gosec // what the kernel takes
			t.Fatal(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// screen is what a program has written to a terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal the operations of a job are drawn over and over until it ends;
// elsewhere there is a line for each event.
func TestWatchOnTerminal(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	server := testserver.Start(t, program, t.TempDir(), "--dev")
	c, err := client.New(client.Config{Addr: server.Addr, Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	jobs, err := board.Post(t.Context(), &client.NewJob{Name: "build", Operations: []*client.NewOperation{{Name: "fetch"}, {Name: "compile"}, {Name: "a name that is wider than the terminal"}}})
	if err != nil {
		t.Fatal(err)
	}
	posted, err := board.Events(t.Context(), "", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	watch := func(stdout *os.File, into *screen, more ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"job", "watch", jobs[0].GetUuid()}, more...)...) //nolint:gosec // the program under test
		cmd.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=dev")
		if cmd.Stdout = into; stdout != nil {
			cmd.Stdout = stdout
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	person, tty := openTerminal(t, 40, 20)
	drawn, lines, late := &screen{}, &screen{}, &screen{}
	go func() { _, _ = io.Copy(drawn, person) }()                                 // until the program's end is closed
	drawing, plain := watch(tty, nil), watch(nil, lines, "--from", posted.Cursor) // however late it begins
	piped := watch(nil, late)                                                     // which may miss all of it
	_ = tty.Close()
	testserver.Eventually(t, "the job is drawn as it was posted", func() bool { return strings.Contains(drawn.String(), "build UNCLAIMED QUEUED") })
	claims, err := board.Claim(t.Context(), client.ClaimOptions{Owner: "me", Lease: time.Hour})
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	for i, name := range []string{"fetch", "compile", "a name that"} {
		if _, err := board.StartOperation(t.Context(), claims[0], int32(i), boarddv1.OperationStatus_RUNNING); err != nil {
			t.Fatal(err)
		}
		running := regexp.MustCompile("(?m)> +" + name)
		testserver.Eventually(t, name+" is drawn as running", func() bool { return running.MatchString(drawn.String()) })
		if _, err := board.FinishOperation(t.Context(), claims[0], int32(i), boarddv1.OperationStatus_SUCCESS, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := board.Consume(t.Context(), claims...); err != nil {
		t.Fatal(err)
	}
	if err := drawing.Wait(); err != nil {
		t.Errorf("drawing: %v\n%s", err, drawn)
	}
	if err := plain.Wait(); err != nil {
		t.Errorf("lines: %v\n%s", err, lines)
	}
	if err := piped.Wait(); err != nil || strings.Contains(late.String(), "\x1b") {
		t.Errorf("piped: %v\n%s", err, late)
	}
	testserver.Eventually(t, "the end is drawn", func() bool { return strings.Contains(drawn.String(), "build COMPLETE/CONSUMED SUCCESS") })
	if text := drawn.String(); !strings.Contains(text, "\x1b[5A\x1b[K") || strings.Contains(text, "wider than the terminal") {
		t.Errorf("it was not drawn over what was there, or is too wide:\n%q", text)
	}
	if text := lines.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "CONSUMED") || !strings.Contains(text, "operation 2 is SUCCESS") {
		t.Errorf("lines:\n%s", text)
	}
}
