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

// RunPython has a client work that speaks JSON over HTTP with Python's standard library
// alone, until ctx ends. Its calls begin when the load has written down that they do, and
// have ended when the load reads what came of them.
func (l *Load) RunPython(ctx context.Context, p Python) error {
	command := exec.Command(p.Program, "-I", "-c", pythonProgram, strings.Join(p.Addrs, ","), p.Token, l.Board, PythonName, //nolint:noctx,gosec // it ends with its input, when its call is over
		strconv.FormatUint(l.Seed, 10), fmt.Sprint(l.Pause.Seconds()), fmt.Sprint(l.Lease.Seconds()))
	var errs strings.Builder
	command.Stderr = &errs
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	err = l.listen(ctx, p, input, output)
	_ = input.Close()
	if ended := command.Wait(); ended != nil || err != nil {
		return fmt.Errorf("the client in Python: %w\n%s", errors.Join(err, ended), errs.String())
	}
	return nil
}

// listen answers the client's lines until ctx ends, between two calls.
func (l *Load) listen(ctx context.Context, p Python, input io.Writer, output io.Reader) error {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	var from history.Mark
	for lines.Scan() {
		var line pythonLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if line.Ops != nil {
			l.heard(from, p, line.Ops)
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
		if _, err := input.Write(append(others, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// heard writes down what came of a call.
func (l *Load) heard(from history.Mark, p Python, ops []history.Op) {
	for i := range ops {
		ops[i].Board, ops[i].Server = l.Board, p.Server
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
