package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// drawing is a job with its operations on a terminal, drawn over what was drawn
// before.
type drawing struct {
	out   io.Writer
	lines int
}

func (d *drawing) draw(j *client.Job, now time.Time) error {
	t := &table{}
	t.row("", "OPERATION", "STATUS", "TIME")
	for _, op := range j.GetOperations() {
		t.row(mark(op.GetStatus()), op.GetName(), op.GetStatus(), took(op, now))
	}
	var text bytes.Buffer
	head := j.GetName() + " " + stateOf(j) + " " + j.GetOperationStatus().String()
	if j.GetOwner() != "" {
		head += " by " + j.GetOwner()
	}
	fmt.Fprintln(&text, printable(head))
	if err := t.write(&text); err != nil {
		return err
	}
	var over strings.Builder
	if d.lines > 0 {
		fmt.Fprintf(&over, "\x1b[%dA", d.lines)
	}
	d.lines = 0
	for line := range strings.Lines(text.String()) {
		over.WriteString("\x1b[K" + line)
		d.lines++
	}
	_, err := io.WriteString(d.out, over.String())
	return err
}

// mark is one character for a status.
func mark(s boarddv1.OperationStatus_Enum) string {
	switch s {
	case boarddv1.OperationStatus_RUNNING:
		return ">"
	case boarddv1.OperationStatus_WAITING:
		return "~"
	case boarddv1.OperationStatus_SUCCESS:
		return "+"
	case boarddv1.OperationStatus_ERROR:
		return "!"
	case boarddv1.OperationStatus_CANCELED, boarddv1.OperationStatus_CANCELING:
		return "x"
	}
	return " "
}

// took is how long an operation has taken, or takes by now.
func took(op *client.Operation, now time.Time) string {
	switch {
	case op.GetStartedAt() == nil:
		return ""
	case op.GetEndedAt() != nil:
		now = op.GetEndedAt().AsTime()
	}
	d := max(0, now.Sub(op.GetStartedAt().AsTime()))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// drawn draws a job until it has ended, anew with each of its events and each
// second.
func (w *watcher) drawn(ctx context.Context, uuid string) error {
	ctx, cancel := context.WithCancel(ctx)
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	var watching sync.WaitGroup
	defer func() { cancel(); watching.Wait() }()
	watching.Go(func() {
		for event, err := range w.board.Watch(ctx, w.from) {
			if err != nil {
				failed <- err
				return
			}
			if event.GetJob().GetUuid() == uuid || event.GetType() == boarddv1.EventType_RESYNC {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	})
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	d := &drawing{out: w.out}
	for {
		jobs, err := w.board.Get(ctx, client.GetOptions{Fields: drawnFields}, uuid)
		if err != nil {
			return w.reading(err)
		}
		for again := true; again; {
			if err := d.draw(jobs[0], time.Now()); err != nil || allEnded(jobs) {
				return err
			}
			select {
			case <-ticker.C:
			case <-changed:
				again = false
			case err := <-failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

var drawnFields = []string{"uuid", "name", "state", "outcome", "owner", "operationStatus", "operations"}
