package testserver

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

//go:embed taskflow.py
var taskflowProgram string

// python is Debian's own, which sees Debian's TaskFlow. Another one on the path
// would not.
const python = "/usr/bin/python3"

// TaskFlow is real TaskFlow in a process of its own: its jobboards, its jobs and
// its conductors. Requests may be made from many goroutines.
type TaskFlow struct {
	t     testing.TB
	input io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan taskflowAnswer
	ended   error // set when the process has ended
}

type taskflowAnswer struct {
	ID    int             `json:"id"`
	OK    json.RawMessage `json:"ok"`
	Error string          `json:"error"`
	Text  string          `json:"text"`
}

// TaskFlowError is an exception of TaskFlow.
type TaskFlowError struct {
	Class string // such as UnclaimableJob, NotFound, JobFailure
	Text  string
}

// Error returns the exception as Python prints it.
func (e *TaskFlowError) Error() string { return e.Class + ": " + e.Text }

// NeedTaskFlow skips a test where Debian's Python has no TaskFlow.
func NeedTaskFlow(t testing.TB) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-I", "-c", "import taskflow, redis, kazoo").Run(); err != nil {
		testneed.Skip(t, python+" has no taskflow, redis and kazoo")
	}
}

// StartTaskFlow starts TaskFlow and stops it when the test ends.
func StartTaskFlow(t testing.TB) *TaskFlow {
	t.Helper()
	NeedTaskFlow(t)
	dir := t.TempDir()
	program, log := filepath.Join(dir, "runner.py"), filepath.Join(dir, "taskflow.log")
	if err := os.WriteFile(program, []byte(taskflowProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	errors, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer errors.Close()
	command := exec.Command(python, program) //nolint:noctx // it outlives single steps of the test
	command.Stderr = errors
	command.Env = []string{"PYTHONUNBUFFERED=1", "TZ=UTC"}
	dieWithParent(command)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := &TaskFlow{t: t, input: input, waiting: map[int]chan taskflowAnswer{}}
	hello := f.expect(0)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(read)
		f.read(output)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-read
		_ = command.Wait() // it was killed
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("TaskFlow printed:\n%s", tail(string(text)))
		}
	})
	if answer := <-hello; answer.Error != "" {
		text, _ := os.ReadFile(log)
		t.Fatalf("TaskFlow does not start: %s\n%s", answer.Text, tail(string(text)))
	}
	return f
}

func (f *TaskFlow) expect(id int) <-chan taskflowAnswer {
	answer := make(chan taskflowAnswer, 1)
	f.waiting[id] = answer
	return answer
}

// read hands every answer to who waits for it, until the process ends.
func (f *TaskFlow) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var answer taskflowAnswer
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			continue // something that a library prints
		}
		f.mu.Lock()
		waiting := f.waiting[answer.ID]
		delete(f.waiting, answer.ID)
		f.mu.Unlock()
		if waiting != nil {
			waiting <- answer
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = fmt.Errorf("TaskFlow has ended: %w", io.EOF)
	for _, waiting := range f.waiting {
		waiting <- taskflowAnswer{Error: "Ended", Text: f.ended.Error()}
	}
}

// Args are the arguments of a request.
type Args map[string]any

// Go makes a request and returns at once. The function that it returns waits for
// the answer and puts it into the given place, unless that is nil. An exception
// is a *TaskFlowError.
func (f *TaskFlow) Go(op string, args Args) func(into any) error {
	request := map[string]any{"op": op}
	maps.Copy(request, args)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	request["id"] = f.last
	line, err := json.Marshal(request)
	if err == nil {
		err = f.ended
	}
	answer := f.expect(f.last)
	if err == nil {
		_, err = f.input.Write(append(line, '\n'))
	}
	return func(into any) error {
		if err != nil {
			return err
		}
		a := <-answer
		switch {
		case a.Error != "":
			return &TaskFlowError{Class: a.Error, Text: a.Text}
		case into != nil:
			return json.Unmarshal(a.OK, into)
		}
		return nil
	}
}

// Do makes a request, waits for the answer and puts it into the given place,
// unless that is nil. The ops and their arguments are those of taskflow.py.
func (f *TaskFlow) Do(op string, args Args, into any) error { return f.Go(op, args)(into) }

// PythonBoard is one of TaskFlow's jobboards.
type PythonBoard struct {
	*TaskFlow

	Name string // of the board object, within TaskFlow
}

// Connect makes a jobboard with TaskFlow's own configuration and connects it,
// such as {"board": "redis", "host": "127.0.0.1", "port": 6379, "namespace": "x"}
// or {"board": "zookeeper", "hosts": "127.0.0.1:2181", "path": "/x"}. With an
// expiry, in seconds, every claim has it, as in Octavia; 0 is none.
func (f *TaskFlow) Connect(name string, conf Args, expiry float64) *PythonBoard {
	f.t.Helper()
	args := Args{"board": name, "conf": conf}
	if expiry > 0 {
		args["expiry"] = expiry
	}
	if err := f.Do("connect", args, nil); err != nil {
		f.t.Fatal(err)
	}
	return &PythonBoard{TaskFlow: f, Name: name}
}

// PythonJob is a job as TaskFlow shows it.
type PythonJob struct {
	UUID      string `json:"uuid"`
	Name      string `json:"name"`
	Priority  string `json:"priority"`
	Sequence  int64  `json:"sequence"`
	Details   string `json:"details"` // as Python prints it
	CreatedOn string `json:"created_on"`
	Key       string `json:"key"` // on ZooKeeper, the node's path
}

// On makes a request of this board.
func (b *PythonBoard) On(op string, args Args, into any) error {
	all := Args{"board": b.Name}
	maps.Copy(all, args)
	return b.Do(op, all, into)
}

// Post posts a job. More arguments: details, python (an expression, for details
// that JSON does not have), priority, book (true: one that a conductor can run), seconds
// (that its work takes).
func (b *PythonBoard) Post(name string, more Args) PythonJob {
	b.t.Helper()
	args := Args{"name": name}
	maps.Copy(args, more)
	var posted PythonJob
	if err := b.On("post", args, &posted); err != nil {
		b.t.Fatal(err)
	}
	return posted
}

// List returns the jobs as TaskFlow lists them.
func (b *PythonBoard) List(onlyUnclaimed bool) ([]PythonJob, error) {
	var list []PythonJob
	err := b.On("list", Args{"only_unclaimed": onlyUnclaimed}, &list)
	return list, err
}

// Claim claims a job; an expiry of 0 is none.
func (b *PythonBoard) Claim(uuid, who string, expiry float64) error {
	args := Args{"uuid": uuid, "who": who}
	if expiry > 0 {
		args["expiry"] = expiry
	}
	return b.On("claim", args, nil)
}

// End ends a claim: op is consume, abandon or trash.
func (b *PythonBoard) End(op, uuid, who string) error {
	return b.On(op, Args{"uuid": uuid, "who": who}, nil)
}

// State returns UNCLAIMED, CLAIMED or COMPLETE.
func (b *PythonBoard) State(uuid string) (string, error) {
	var state string
	err := b.On("state", Args{"uuid": uuid}, &state)
	return state, err
}

// Owner returns who claims a job, or nothing.
func (b *PythonBoard) Owner(uuid string) (string, error) {
	var owner *string
	err := b.On("owner", Args{"uuid": uuid}, &owner)
	if owner == nil {
		return "", err
	}
	return *owner, err
}

// PythonBook is a logbook as TaskFlow reads it.
type PythonBook struct {
	UUID  string                `json:"uuid"`
	Flows map[string]PythonFlow `json:"flows"`
}

// PythonFlow is a flow in a logbook.
type PythonFlow struct {
	Name  string                `json:"name"`
	State string                `json:"state"`
	Atoms map[string]PythonAtom `json:"atoms"`
}

// PythonAtom is a task or a retry of a flow.
type PythonAtom struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Type  string `json:"type"`
}

// WriteBook runs a flow with a task that works and one that fails, whose logbook is
// kept by a persistence of TaskFlow's own configuration, such as {"connection":
// "dir", "path": "/x"} or {"connection": "zookeeper", "hosts": "127.0.0.1:2181",
// "path": "/x"}.
func (f *TaskFlow) WriteBook(conf Args, name string) PythonBook {
	f.t.Helper()
	var book PythonBook
	if err := f.Do("write_book", Args{"conf": conf, "name": name}, &book); err != nil {
		f.t.Fatal(err)
	}
	return book
}
