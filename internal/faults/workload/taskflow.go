package workload

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

//go:embed taskflow.py
var taskflowProgram string

// TaskFlowName is TaskFlow, as histories call it.
const TaskFlowName = "taskflow"

// TaskFlow is real TaskFlow beside a load, on the store of its board.
type TaskFlow struct {
	load    *Load
	speaker *speaker
}

// StartTaskFlow starts TaskFlow and waits until it is connected. conf is its own
// configuration of the board. Run must be called.
func (l *Load) StartTaskFlow(python string, conf map[string]any) (*TaskFlow, error) {
	text, err := json.Marshal(conf)
	if err != nil {
		return nil, err
	}
	l.Recorder.Change(func(h *history.History) { h.Shared = true })
	s, err := Python{Program: python}.start(taskflowProgram, string(text), TaskFlowName, strconv.FormatUint(l.Seed, 10), seconds(l.Pause), seconds(l.Lease))
	if err != nil {
		return nil, err
	}
	if !s.lines.Scan() {
		return nil, s.end(errors.New("TaskFlow does not connect"))
	}
	return &TaskFlow{l, s}, nil
}

// Run has TaskFlow work until ctx ends. Its claims end when it does.
func (f *TaskFlow) Run(ctx context.Context) error {
	if _, err := io.WriteString(f.speaker.input, "[]\n"); err != nil {
		return f.speaker.end(err)
	}
	return f.speaker.end(f.load.listen(ctx, f.speaker))
}

// posted has the others know of a job that TaskFlow posted.
func (l *Load) posted(op history.Op) {
	if op.Call != history.Post || op.Outcome != history.Done {
		return
	}
	name, details, _ := strings.Cut(op.Posting, " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	posting := &client.NewJob{Uuid: op.Job, Name: name, Priority: boarddv1.Priority_Enum(op.Priority), Details: []byte(details)}
	l.jobs = append(l.jobs, &known{posting: posting, outside: true})
}
