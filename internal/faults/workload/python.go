package workload

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

//go:embed client.py
var pythonProgram string

// PythonName is the client in Python, as histories call it.
const PythonName = "python"

// Python says how a client in Python, in a process of its own, is to be run.
type Python struct {
	Program string   // Python 3
	Addrs   []string // http://HOST:PORT
	Token   string
	Server  string // the only one of Addrs, if there is only one
}

// pythonLine is what the client writes: before a call and after it.
type pythonLine struct {
	Begin []pythonJob  `json:"begin"`
	Ops   []history.Op `json:"ops"`
}

type pythonJob struct {
	UUID     string `json:"uuid"`
	Name     string `json:"name"`
	Priority int32  `json:"priority"`
	Details  string `json:"details"`
}

// StartPython starts a client that speaks JSON over HTTP with Python's standard library alone, and
// waits until it is about to make its first call. run has it work until ctx ends, and must be
// called. Its calls begin when the load has written down that they do, and have ended when the
// load reads what came of them.
func (l *Load) StartPython(p Python) (run func(ctx context.Context) error, err error) {
	s, err := p.start(pythonProgram, strings.Join(p.Addrs, ","), p.Token, l.Board, PythonName, strconv.FormatUint(l.Seed, 10), seconds(l.Pause), seconds(l.Lease))
	if err != nil {
		return nil, err
	}
	if s.waits = s.lines.Scan(); !s.waits {
		return nil, s.end(errors.New("it makes no call"))
	}
	return func(ctx context.Context) error { return s.end(l.listen(ctx, s)) }, nil
}

func seconds(d time.Duration) string { return fmt.Sprint(d.Seconds()) }

// speaker is a program that writes its calls down line by line.
type speaker struct {
	Python

	command *exec.Cmd
	input   io.WriteCloser
	lines   *bufio.Scanner
	waits   bool // a line was read that nobody has answered
	errs    strings.Builder
}

// scan goes on to the next line.
func (s *speaker) scan() bool {
	if s.waits {
		s.waits = false
		return true
	}
	return s.lines.Scan()
}

func (p Python) start(program string, args ...string) (*speaker, error) {
	s := &speaker{Python: p, command: exec.Command(p.Program, append([]string{"-I", "-c", program}, args...)...)} //nolint:noctx,gosec // it ends with its input, when its call is over
	s.command.Stderr = &s.errs
	var err error
	if s.input, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.lines = bufio.NewScanner(output)
	s.lines.Buffer(nil, 1<<20)
	return s, s.command.Start()
}

// end ends the program between two calls. err is what is wrong with what it wrote.
func (s *speaker) end(err error) error {
	_ = s.input.Close()
	if ended := s.command.Wait(); ended != nil || err != nil {
		return fmt.Errorf("a client in Python: %w\n%s", errors.Join(err, ended), s.errs.String())
	}
	return nil
}

// listen answers the client's lines until ctx ends, between two calls.
func (l *Load) listen(ctx context.Context, s *speaker) error {
	var from history.Mark
	for s.scan() {
		var line pythonLine
		if err := json.Unmarshal(s.lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%q: %w", s.lines.Text(), err)
		}
		if line.Ops != nil {
			l.heard(from, s.Python, line.Ops)
			continue
		}
		select {
		case <-ctx.Done():
			return nil // between two calls
		default:
		}
		for _, j := range line.Begin {
			if !l.knows(j.UUID) {
				l.learn(&client.NewJob{Uuid: j.UUID, Name: j.Name, Priority: boarddv1.Priority_Enum(j.Priority), Details: []byte(j.Details)})
			}
		}
		last := l.Jobs()
		others, err := json.Marshal(last[max(0, len(last)-2):])
		if err != nil {
			return err
		}
		from = l.Recorder.Now()
		if _, err := s.input.Write(append(others, '\n')); err != nil {
			return err
		}
	}
	return s.lines.Err()
}

// heard writes down what came of a call.
func (l *Load) heard(from history.Mark, p Python, ops []history.Op) {
	for i := range ops {
		ops[i].Board, ops[i].Server = l.Board, p.Server
		if ops[i].Outside {
			l.posted(ops[i])
			continue
		}
		if ops[i].Granted != "" {
			l.given(&client.Claim{Uuid: ops[i].Job, Owner: ops[i].Owner, Token: ops[i].Granted, Generation: ops[i].Generation, Epoch: ops[i].Epoch})
		}
	}
	l.Recorder.Add(from, ops...)
}

func (l *Load) knows(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.jobs {
		if k.posting.GetUuid() == id {
			return true
		}
	}
	return false
}
