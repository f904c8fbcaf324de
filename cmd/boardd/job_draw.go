package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// drawing is a job with its operations on a terminal, drawn over what was drawn
// before.
type drawing struct {
	out   io.Writer
	size  func() (width, height int) // of the terminal now; 0: not known
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
	width, height := d.size()
	lines := fit(strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"), firstOpen(j), width, height)
	var over strings.Builder
	if d.lines > 0 {
		fmt.Fprintf(&over, "\x1b[%dA", d.lines)
	}
	for _, line := range lines {
		over.WriteString("\x1b[K" + line + "\n")
	}
	over.WriteString("\x1b[J") // of a drawing that was longer
	d.lines = len(lines)
	_, err := io.WriteString(d.out, over.String())
	return err
}

// firstOpen returns the index of the first operation that is not finished; where
// all are, that of the last.
func firstOpen(j *client.Job) int {
	for i, op := range j.GetOperations() {
		if op.GetEndedAt() == nil {
			return i
		}
	}
	return len(j.GetOperations()) - 1
}

// headLines stand above the operations, and stay there.
const headLines = 2

// fit cuts a drawing to a terminal: what is wider would wrap, and what is higher
// would scroll away, so that it could not be drawn over. Of the operations those
// around the current one are left.
func fit(lines []string, current, width, height int) []string {
	if room := height - headLines - 2; height > 0 && room > 0 && len(lines) > height-1 { // the cursor stands below, and the count of the rest
		all := lines[headLines:]
		from := min(max(0, current-room/2), len(all)-room)
		shown := append(append(make([]string, 0, height), lines[:headLines]...), all[from:from+room]...)
		lines = append(shown, fmt.Sprintf("  %d of %d operations are shown", room, len(all)))
	}
	for i, line := range lines {
		if runes := []rune(line); width > 0 && len(runes) >= width {
			lines[i] = string(runes[:width-1])
		}
	}
	return lines
}

// terminalSize returns the size of the terminal that w writes to.
func terminalSize(w io.Writer) (width, height int) {
	if file, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil {
			return width, height
		}
	}
	return 0, 0
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
	d := &drawing{out: w.out, size: func() (width, height int) { return terminalSize(w.out) }}
	var last *client.Job
	for {
		jobs, err := w.board.Get(ctx, client.GetOptions{Fields: drawnFields}, uuid)
		if err != nil {
			return w.reading(err)
		}
		jobs[0] = withOperations(jobs[0], last)
		last = jobs[0]
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

// withOperations gives a job that has ended, and of which the board kept nothing
// else, the operations that it was last seen with, ended as it was.
func withOperations(j, last *client.Job) *client.Job {
	if last == nil || len(j.GetOperations()) > 0 || !allEnded([]*client.Job{j}) {
		return j
	}
	status := boarddv1.OperationStatus_SUCCESS
	switch j.GetOutcome() {
	case boarddv1.Outcome_CANCELED:
		status = boarddv1.OperationStatus_CANCELED
	case boarddv1.Outcome_FAILED:
		status = boarddv1.OperationStatus_ERROR
	}
	last.State, last.Outcome, last.Owner, last.OperationStatus = j.GetState(), j.GetOutcome(), j.GetOwner(), status
	for _, op := range last.GetOperations() {
		if op.GetEndedAt() == nil {
			op.Status = status
		}
	}
	return last
}

var drawnFields = []string{"uuid", "name", "state", "outcome", "owner", "operationStatus", "operations"}
