package main

import (
	"context"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) jobWatchCommand() *cobra.Command {
	var from string
	var most int
	c := p.command("watch [UUID]", "Watch what happens on the board",
		"It shows one event a line, from now on or after a cursor, until it is interrupted.\n"+
			"With a uuid it shows that job alone and returns when the job has ended; on a terminal it draws\n"+
			"the job's operations, with how long each takes.",
		"boardd job watch -o json",
		func(ctx context.Context, args []string) error {
			if len(args) > 1 {
				return usagef("want one uuid or none, got %d", len(args))
			}
			if err := uuids(args, false); err != nil {
				return err
			}
			board, done, err := p.onBoard()
			if err != nil {
				return err
			}
			defer done()
			w := &watcher{program: p, board: board, from: from, most: most}
			if len(args) == 1 {
				return w.job(ctx, args[0])
			}
			return w.all(ctx, func(*client.Event) (show, last bool, err error) { return true, false, nil })
		})
	c.Flags().StringVar(&from, "from", "", "the cursor of an earlier event (default: from now on)")
	c.Flags().IntVar(&most, "max", 0, "return after this many events (default: never)")
	c.ValidArgsFunction = p.completeJobs(1, "UNCLAIMED", "CLAIMED")
	return c
}

// watcher shows events.
type watcher struct {
	*program
	board *client.Board
	from  string
	most  int
	seen  int // so many were shown
}

// job watches one job until it has ended.
func (w *watcher) job(ctx context.Context, uuid string) error {
	mine := func(e *client.Event) (show, last bool, err error) {
		if e.GetType() == boarddv1.EventType_RESYNC { // the job's end may be among what is not shown
			_, last, err = w.look(ctx, uuid)
			return false, last, err
		}
		show = e.GetJob().GetUuid() == uuid
		return show, show && ends(e.GetType()), nil
	}
	past := w.from != ""
	if !past { // the cursor first, then the job: no event falls between the two
		page, err := w.board.Events(ctx, "", 1, 0)
		if err != nil {
			return err
		}
		w.from = page.Cursor
	}
	switch of, ended, err := w.look(ctx, uuid); {
	case err != nil:
		return err
	case ended && past:
		return w.past(ctx, mine)
	case ended:
		return nil
	case !past && w.output != "json" && terminal(w.out) && of.GetOperationStatus() != boarddv1.OperationStatus_NONE:
		return w.drawn(ctx, uuid)
	}
	return w.all(ctx, mine)
}

// look reads how a job stands, and says so if it has ended.
func (w *watcher) look(ctx context.Context, uuid string) (of *client.Job, ended bool, err error) {
	jobs, err := w.board.Get(ctx, client.GetOptions{Fields: []string{"uuid", "state", "outcome", "operationStatus"}}, uuid)
	if err != nil {
		return nil, false, w.reading(err)
	}
	if ended = allEnded(jobs); ended {
		w.complain("the job has ended: " + stateOf(jobs[0]))
	}
	return jobs[0], ended, nil
}

// ends reports whether nothing more is to be seen of a job.
func ends(t boarddv1.EventType_Enum) bool {
	switch t {
	case boarddv1.EventType_CONSUMED, boarddv1.EventType_TRASHED, boarddv1.EventType_PURGED, boarddv1.EventType_CANCELED:
		return true
	}
	return false
}

// choice says whether an event is shown, and whether it is the last.
type choice func(*client.Event) (show, last bool, err error)

// all shows events as they come.
func (w *watcher) all(ctx context.Context, choose choice) error {
	for event, err := range w.board.Watch(ctx, w.from) {
		if err != nil {
			return err
		}
		if done, err := w.show(event, choose); err != nil || done {
			return err
		}
	}
	return nil
}

// past shows the events that there are, and does not wait for more.
func (w *watcher) past(ctx context.Context, choose choice) error {
	for from := w.from; ; {
		page, err := w.board.Events(ctx, from, eventsAtOnce, 0)
		if err != nil || len(page.Events) == 0 {
			return err
		}
		for _, event := range page.Events {
			if done, err := w.show(event, choose); err != nil || done {
				return err
			}
		}
		from = page.Cursor
	}
}

// eventsAtOnce is how many past events are asked for at once.
const eventsAtOnce = 500

// show shows an event if it is to be, and reports whether it was the last.
func (w *watcher) show(event *client.Event, choose choice) (done bool, err error) {
	if event.GetType() == boarddv1.EventType_RESYNC {
		w.complain("the board does not remember events that old: what happened before now is not shown")
	}
	show, last, err := choose(event)
	if err != nil || !show {
		return last, err
	}
	if err := w.event(event); err != nil {
		return true, err
	}
	w.seen++
	return last || w.seen == w.most, nil
}

func (w *watcher) event(e *client.Event) error {
	if w.output == "json" {
		return w.showJSON(e)
	}
	t := &table{}
	cells := []any{e.GetAt(), e.GetType(), e.GetJob().GetUuid(), e.GetJob().GetName(), e.GetJob().GetOwner(), e.GetReason()}
	t.row(cells...)
	return t.write(w.out)
}
