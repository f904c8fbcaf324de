package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

// Limits of boardd top.
const (
	topWatched = 64 // boards whose events are counted; the rates of others are not known
	topAtOnce  = 8  // boards that are asked at the same time
	topLeast   = 500 * time.Millisecond
)

func (p *program) topCommand() *cobra.Command {
	var once bool
	interval := 2 * time.Second
	var order topOrder
	c := p.command("top", "Show the boards as they change",
		"It draws all boards that the token may see, with what is done on them in a second and who works there, and\n"+
			"draws them anew every --interval. Where standard output is no terminal, or with --once, it writes one table.\n"+
			"Keys: s sorts by the next column, r turns the order around, / shows only boards whose names have what is\n"+
			"typed then, and q ends it. Rates are counted from the events of the first "+fmt.Sprint(topWatched)+" open boards.",
		"boardd top --once",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			if interval < topLeast {
				return usagef("--interval: want at least %s, got %s", topLeast, interval)
			}
			server, err := p.connect(impatient)
			if err != nil {
				return err
			}
			defer server.Close()
			t := &top{program: p, server: server, interval: interval, view: topView{order: order}}
			defer t.end()
			if once || p.output == "json" || !terminal(p.out) || !terminal(p.in) {
				return t.once(ctx)
			}
			return t.live(ctx)
		})
	c.Flags().BoolVar(&once, "once", false, "write one table, after one interval")
	c.Flags().DurationVar(&interval, "interval", interval, "between two drawings, and for which rates are counted")
	c.Flags().Var(&order, "sort", "the column to sort by: "+topColumns())
	return c
}

// top gathers what there is to show.
type top struct {
	*program
	server   *client.Client
	interval time.Duration
	view     topView

	watches map[string]*topWatch // by board
	running sync.WaitGroup
}

// topRow is one board.
type topRow struct {
	Board   string  `json:"board"`
	State   string  `json:"state"`
	Ready   int64   `json:"ready"`
	Delayed int64   `json:"delayed"`
	Claimed int64   `json:"claimed"`
	Trashed int64   `json:"trashed"`
	Oldest  float64 `json:"oldestSeconds"` // for how long the oldest job that is ready waits
	Workers int     `json:"workers"`

	Rates *topRates `json:"rates,omitempty"` // nil: not known

	counts bool // the numbers are known
}

// topRates is what is done in a second.
type topRates struct {
	Posted  float64 `json:"posted"`
	Claimed float64 `json:"claimed"`
	Ended   float64 `json:"ended"`
	Failed  float64 `json:"failed"`
}

// topWatch counts what happens on one board.
type topWatch struct {
	stop context.CancelFunc

	mu     sync.Mutex
	counts topRates
	since  time.Time // of counts; zero: nothing is counted yet
}

// rates returns what happened in a second since they were last asked for.
func (w *topWatch) rates(now time.Time) *topRates {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return nil
	}
	seconds := max(now.Sub(w.since).Seconds(), 0.001)
	r := topRates{w.counts.Posted / seconds, w.counts.Claimed / seconds, w.counts.Ended / seconds, w.counts.Failed / seconds}
	w.counts, w.since = topRates{}, now
	return &r
}

// run counts events until ctx ends. A watch that fails for good is over: then the rates are not
// known.
func (w *topWatch) run(ctx context.Context, b *client.Board) {
	page, err := b.Events(ctx, "", 1, 0)
	if err != nil {
		return
	}
	w.begin(time.Now())
	for event, err := range b.Watch(ctx, page.Cursor) {
		if err != nil {
			w.begin(time.Time{})
			return
		}
		w.count(event.GetType())
	}
}

func (w *topWatch) begin(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.since = topRates{}, at
}

func (w *topWatch) count(event boarddv1.EventType_Enum) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event {
	case boarddv1.EventType_POSTED:
		w.counts.Posted++
	case boarddv1.EventType_CLAIMED:
		w.counts.Claimed++
	case boarddv1.EventType_CONSUMED, boarddv1.EventType_CANCELED:
		w.counts.Ended++
	case boarddv1.EventType_ABANDONED, boarddv1.EventType_EXPIRED, boarddv1.EventType_TRASHED:
		w.counts.Failed++
	default:
	}
}

// watch begins to count the events of the boards that there are, and ends with those that are
// gone.
func (t *top) watch(ctx context.Context, boards []*client.BoardInfo) {
	if t.watches == nil {
		t.watches = map[string]*topWatch{}
	}
	for _, b := range boards {
		name := b.GetName()
		if t.watches[name] != nil || !b.GetReady() || b.GetResting() || len(t.watches) >= topWatched {
			continue // on one that rests nothing happens, and a watch would open it
		}
		ctx, cancel := context.WithCancel(ctx)
		w := &topWatch{stop: cancel}
		t.watches[name] = w
		t.running.Go(func() { w.run(ctx, t.server.Board(name)) })
	}
	for name, w := range t.watches {
		if !slices.ContainsFunc(boards, func(b *client.BoardInfo) bool { return b.GetName() == name }) {
			w.stop()
			delete(t.watches, name)
		}
	}
}

// end ends all that was begun.
func (t *top) end() {
	for w := range maps.Values(t.watches) {
		w.stop()
	}
	t.running.Wait()
}

// look asks how the boards stand.
func (t *top) look(ctx context.Context) ([]topRow, error) {
	boards, err := t.server.BoardsCounted(ctx)
	if err != nil {
		return nil, err
	}
	t.watch(ctx, boards)
	rows := make([]topRow, len(boards))
	room := make(chan struct{}, topAtOnce)
	var group sync.WaitGroup
	for i, b := range boards {
		room <- struct{}{}
		group.Go(func() {
			rows[i] = t.row(ctx, b)
			<-room
		})
	}
	group.Wait()
	now := time.Now()
	for i := range rows {
		if w := t.watches[rows[i].Board]; w != nil {
			rows[i].Rates = w.rates(now)
		}
	}
	return rows, ctx.Err()
}

// row asks how one board stands. What cannot be told is left out.
func (t *top) row(ctx context.Context, info *client.BoardInfo) topRow {
	r := topRow{Board: info.GetName(), State: "ok"}
	switch {
	case !info.GetReady():
		r.State = "not ready"
		return r
	case info.GetPaused():
		r.State = "paused"
	case info.GetLoss() != "":
		r.State = "lost changes"
	}
	b, counts := t.server.Board(r.Board), info.GetCounts()
	if counts == nil && !info.GetResting() { // an older server's answer, or one that was too late
		var err error
		if counts, err = b.Count(ctx); err != nil {
			r.State = "no answer"
			return r
		}
	}
	r.counts = true
	r.Ready, r.Delayed, r.Claimed, r.Trashed = counts.GetReady(), counts.GetDelayed(), counts.GetClaimed(), counts.GetTrashed()
	if at := counts.GetOldestReadyAt(); at != nil {
		r.Oldest = max(0, time.Since(at.AsTime()).Seconds())
	}
	if info.GetResting() {
		return r // nobody works there, and nobody opens it by looking
	}
	entities, err := b.Entities(ctx)
	if err != nil {
		return r // how many work there is not known
	}
	for _, e := range entities {
		if e.GetKind() == client.WorkerKind {
			r.Workers++
		}
	}
	return r
}

// once writes one table.
func (t *top) once(ctx context.Context) error {
	if _, err := t.look(ctx); err != nil { // begins to count
		return err
	}
	if err := sleep.For(ctx, t.interval); err != nil {
		return err
	}
	rows, err := t.look(ctx)
	if err != nil {
		return err
	}
	rows = t.view.arrange(rows)
	if p := t.program; p.output != "json" {
		table := topTable(rows)
		return table.write(p.out)
	}
	for i := range rows {
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return err
		}
		if _, err := t.out.Write(append(tameJSON(line), '\n')); err != nil {
			return err
		}
	}
	return nil
}
