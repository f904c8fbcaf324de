package peers

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// beanstalkd is a server of its own, that keeps its jobs in a log. Who posts or works has
// a connection each, since one does one thing at a time.
type beanstalkd struct {
	t     *testing.T
	addr  string
	conns chan *beanstalk.Conn // of those who post
}

const posters = 64

// startBeanstalkd starts one that syncs its log at most so often, in milliseconds: -f.
func startBeanstalkd(t *testing.T, syncs string) *beanstalkd {
	t.Helper()
	program := testneed.Program(t, "beanstalkd")
	s := &beanstalkd{t: t, conns: make(chan *beanstalk.Conn, posters)}
	dir := t.TempDir()
	for range 5 { // another program may take the port
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.addr = listener.Addr().String()
		host, port, _ := net.SplitHostPort(s.addr)
		_ = listener.Close()
		command := exec.Command(program, "-l", host, "-p", port, "-b", dir, "-f", syncs)
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = command.Wait() }()
		t.Cleanup(func() { _ = command.Process.Kill(); <-ended })
		if s.answers(ended) {
			break
		}
	}
	for range posters {
		s.conns <- s.dial()
	}
	t.Logf("beanstalkd keeps its log in %s", filepath.Base(dir))
	return s
}

func (s *beanstalkd) answers(ended <-chan struct{}) bool {
	up := false
	testserver.Eventually(s.t, "beanstalkd answers, or has ended", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			up = true
			_ = c.Close()
		}
		return up
	})
	return up
}

func (s *beanstalkd) dial() *beanstalk.Conn {
	c, err := beanstalk.Dial("tcp", s.addr)
	if err != nil {
		s.t.Error(err)
		s.t.FailNow()
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *beanstalkd) Post(_ context.Context, payloads [][]byte) error {
	return inBatches(payloads, posters, 1, func(part [][]byte) error {
		c := <-s.conns
		defer func() { s.conns <- c }()
		_, err := c.Put(part[0], 1024, 0, time.Minute)
		return err
	})
}

func (s *beanstalkd) Work(handlers int, handle func([]byte)) (func(), error) {
	var running sync.WaitGroup
	var stopping atomic.Bool
	for range handlers {
		c, err := beanstalk.Dial("tcp", s.addr)
		if err != nil {
			return nil, err
		}
		running.Go(func() {
			defer c.Close()
			for !stopping.Load() {
				id, body, err := c.Reserve(100 * time.Millisecond)
				if errors.Is(err, beanstalk.ErrTimeout) {
					continue
				}
				if err == nil {
					handle(body)
					err = c.Delete(id)
				}
				if err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	return func() { stopping.Store(true); running.Wait() }, nil
}
