package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// How a teller keeps its place.
const (
	keepTold    = time.Second      // after something was told, in which more may be
	keepEvery   = 5 * time.Minute  // at least so often, if the board changed
	looksBack   = 5 * time.Minute  // how far the clocks of a store and a server may differ
	followWait  = 30 * time.Second // for news, at a time
	mostPending = 10_000           // deliveries that later ones may have to wait for, before those that ended are forgotten
	noPlace     = "0.0"            // in no store: its first generation is 1
	othersTell  = 30 * time.Second // for which another server may be behind that tells one by one what this one has missed
)

// teller posts a delivery for each event of a board that a hook wants to know of. Each server
// that has the board open runs one. All post the same, which the board of the deliveries takes
// once, and keep one bookmark.
type teller struct {
	hook       *Hook
	board      *board.Board                                // that is told of
	came       string                                      // the move that brought it to its store; empty: none did
	deliveries func(context.Context) (*board.Board, error) // where they are jobs
	log        *slog.Logger
	tally      *Tally
	stands     func(*standing) // is told how the teller stands; nil: it has something to tell

	from    string // where a hook begins that is new: the present, when the board was first seen open here
	to      *board.Board
	mark    bookmark
	version uint64 // of the bookmark; 0: there is none
	turned  bool   // Waits of mark is news that is not kept yet
	told    bool   // something was, and mark is not kept yet
	kept    time.Time
	looked  time.Time // at how long the oldest job waits

	// pending has, of jobs that may still be told of again, the last delivery about them.
	pending map[string]job.ID
	pruneAt int
	behind  time.Time // until when another server may post what goes before, see missed
}

// session tells of what happens until something fails or ctx ends.
func (t *teller) session(ctx context.Context) error {
	defer t.stands(nil)
	_, now, err := t.board.Events(ctx, "", 1, 0)
	if err != nil {
		return err
	}
	t.from = cmp.Or(t.from, now)
	if err := t.reach(ctx); err != nil {
		return err
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	for {
		if err := t.step(ctx); err != nil {
			return err
		}
		if t.told || t.turned {
			t.stands(nil)
		} else {
			t.stands(&standing{hook: t.hook, cursor: t.mark.Cursor, waits: t.mark.Waits})
		}
		t.tally.fails(t.hook.Key(), false)
	}
}

// reach finds the board of the deliveries, as it is before each use: it may have been opened
// anew, and among several servers it is open here only while something is told.
func (t *teller) reach(ctx context.Context) (err error) {
	t.to, err = t.deliveries(ctx)
	return err
}

// begin reads how far the hook is. A new one is told from now on.
func (t *teller) begin(ctx context.Context) error {
	mark, err := t.read(ctx)
	if err != nil {
		return err
	}
	if err := t.recall(ctx); err != nil {
		return err
	}
	if t.mark, t.kept = mark, time.Now(); t.version > 0 {
		return t.lookBack(ctx)
	}
	t.mark = bookmark{Cursor: t.from, At: time.Now().UTC(), Came: t.came}
	if err := t.keep(ctx); err != nil {
		return err
	}
	t.log.InfoContext(ctx, "a webhook is told of its board from now on", "deliveries", t.hook.Deliveries)
	return nil
}

// lookBack finds what happened since the bookmark, if it is not of this board as it is now:
// another one of its name, or in another store, or one whose store lost changes.
func (t *teller) lookBack(ctx context.Context) error {
	_, now, err := t.board.Events(ctx, "", 1, 0)
	if err != nil {
		return err
	}
	present, kept := parsePlace(now), parsePlace(t.mark.Cursor)
	if t.mark.Came == t.came && kept.generation == present.generation && kept.position <= present.position {
		return nil
	}
	return t.missed(ctx, now)
}

// resync goes on where the changes since the bookmark are not known one by one. Another server
// may have told of them.
func (t *teller) resync(ctx context.Context, from string) error {
	theirs, err := t.read(ctx)
	if err != nil {
		return err
	}
	if t.version > 0 && !theirs.before(&t.mark) {
		t.mark = theirs
		if err := t.recall(ctx); err != nil {
			return err
		}
		if kept, here := parsePlace(t.mark.Cursor), parsePlace(from); kept == here && t.mark.Came == t.came {
			return nil
		}
	}
	return t.missed(ctx, from)
}

// missed tells of what happened since the bookmark as far as the board still knows, and goes
// on from a cursor. In a store to which it moved meanwhile what ended before has a place as it came.
func (t *teller) missed(ctx context.Context, from string) error {
	after := t.mark.Cursor
	if t.mark.Came != t.came {
		after = noPlace
	}
	events, err := t.board.EndedSince(ctx, after, t.mark.At.Add(-looksBack))
	if err != nil {
		return err
	}
	t.log.InfoContext(ctx, "a webhook goes on from what the board still knows: its place in the changes is not known any more",
		"since", t.mark.At, "events", len(events))
	if spec := t.board.Spec(); time.Since(t.mark.At) > max(spec.Window, spec.History) {
		t.log.WarnContext(ctx, "events of a webhook may be missing: jobs that ended are forgotten by now",
			"since", t.mark.At, "idempotency_window", spec.Window, "history", spec.History)
	}
	if err := t.tell(ctx, events); err != nil {
		return err
	}
	t.mark.Cursor, t.mark.At, t.mark.Came = from, time.Now().UTC(), t.came
	t.behind = time.Now().Add(othersTell)
	return t.keep(ctx)
}

// hear finds what another server may have posted by now about jobs of which the end is to be told:
// what this one has missed, as it was in the trash for a while.
func (t *teller) hear(ctx context.Context, events []job.Event) error {
	if time.Now().After(t.behind) {
		return nil
	}
	for i := range events {
		if k, ok := kindOf(&events[i]); ok && k == Ended && t.pending[events[i].Job.ID.String()] == (job.ID{}) {
			return t.recall(ctx)
		}
	}
	return nil
}

// recall finds the deliveries that later ones about the same job may have to wait for. The store
// is asked, once the bookmark was read: this server may not have heard yet of what another one has
// posted and the bookmark says was told.
func (t *teller) recall(ctx context.Context) error {
	t.pending, t.pruneAt = map[string]job.ID{}, mostPending
	latest := map[string]uint64{}
	for j, err := range t.to.OpenInStore(ctx) {
		if err != nil {
			return err
		}
		if about := aboutOf(j.Labels); j.Name == t.hook.Key() && about != "" && j.Sequence >= latest[about] {
			t.pending[about], latest[about] = j.ID, j.Sequence
		}
	}
	return nil
}

// aboutOf returns which job a delivery is about, by its labels, if more may be told of that job;
// else it is empty.
func aboutOf(labels []job.Label) (about string) {
	for _, l := range labels {
		switch {
		case l.Key == "event" && l.Value == Ended.String():
			return "" // it is the last one
		case l.Key == "job":
			about = l.Value
		}
	}
	return about
}

// step tells of what came next, or that the oldest job waits.
func (t *teller) step(ctx context.Context) error {
	wait := followWait
	if t.hook.Waiting > 0 {
		wait = lookEvery
		if err := t.alarm(ctx); err != nil {
			return err
		}
	}
	if t.told {
		wait = keepTold
	}
	events, next, err := t.board.Events(ctx, t.mark.Cursor, board.MaxBatch, wait)
	if err != nil {
		return err
	}
	for i := range events {
		if events[i].Type == job.Resync { // always alone
			return t.resync(ctx, next)
		}
	}
	wanted := t.wanted(events)
	if err := t.tell(ctx, wanted); err != nil {
		return err
	}
	t.told = t.told || len(wanted) > 0
	moved := next != t.mark.Cursor
	t.mark.Cursor = next
	if len(events) > 0 {
		t.mark.At = events[len(events)-1].At.UTC()
	} else if ctx.Err() == nil {
		t.mark.At = time.Now().UTC()
	}
	if since := time.Since(t.kept); t.told && since >= keepTold || moved && since >= keepEvery {
		return t.keep(ctx)
	}
	return ctx.Err()
}

func (t *teller) wanted(events []job.Event) (list []job.Event) {
	for i := range events {
		if k, ok := kindOf(&events[i]); ok && t.hook.wants(k) {
			list = append(list, events[i])
		}
	}
	return list
}

// tell posts deliveries for events, in their order. Two about one job are never posted by
// one call, so that the second cannot be there without the first.
func (t *teller) tell(ctx context.Context, events []job.Event) error {
	if err := t.name(ctx, events); err != nil {
		return err
	}
	if err := t.hear(ctx, events); err != nil {
		return err
	}
	var list []job.Posting
	jobs := map[job.ID]bool{}
	for i := range events {
		e := &events[i]
		k, ok := kindOf(e)
		if !ok || !t.hook.wants(k) {
			continue
		}
		if jobs[e.Job.ID] || len(list) == board.MaxBatch {
			if err := t.post(ctx, list); err != nil {
				return err
			}
			list, jobs = list[:0], map[job.ID]bool{}
		}
		p, err := t.delivery(k, e)
		if err != nil {
			return err
		}
		list, jobs[e.Job.ID] = append(list, p), true
	}
	if err := t.post(ctx, list); err != nil {
		return err
	}
	return t.prune(ctx)
}

func (t *teller) delivery(k Kind, e *job.Event) (job.Posting, error) {
	body, err := bodyOf(t.hook.Board, k, e)
	if err != nil {
		return job.Posting{}, err
	}
	about, after := e.Job.ID.String(), ""
	id := deliveryID(t.hook, about, k, placeOf(k, e))
	if before, ok := t.pending[about]; ok && before != id {
		after = before.String()
	}
	return posting(t.hook, id, k, about, after, body)
}

// name finds out about the jobs of which an event says nothing but that they ended.
func (t *teller) name(ctx context.Context, events []job.Event) error {
	var ids []job.ID
	var of []int
	for i := range events {
		if k, ok := kindOf(&events[i]); ok && t.hook.wants(k) && events[i].Job.Name == "" {
			ids, of = append(ids, events[i].Job.ID), append(of, i)
		}
	}
	for len(ids) > 0 {
		n := min(len(ids), board.MaxBatch)
		results, err := t.board.Get(ctx, ids[:n], board.GetOptions{})
		if err != nil {
			return err
		}
		for i, r := range results {
			if r.Job == nil {
				continue // nothing is left of it
			}
			j := events[of[i]].Job
			j.Name, j.Labels, j.CreatedAt, j.Attempt = r.Job.Name, r.Job.Labels, r.Job.CreatedAt, r.Job.Attempt
		}
		ids, of = ids[n:], of[n:]
	}
	return nil
}

// post posts deliveries. One that stands already, whatever it says, has been posted before.
func (t *teller) post(ctx context.Context, list []job.Posting) error {
	if len(list) == 0 {
		return nil
	}
	if err := t.reach(ctx); err != nil {
		return err
	}
	if t.to.Spec().Retry.MaxAttempts == 0 {
		for i := range list {
			list[i].MaxAttempts = MaxTries
		}
	}
	results, err := t.to.Post(ctx, list)
	if err != nil {
		return err
	}
	var failed error
	for i, r := range results {
		switch job.KindOf(r.Err) {
		case job.NoKind, job.AlreadyExists:
			t.remember(&list[i])
		case job.Invalid, job.Unsupported:
			t.log.ErrorContext(ctx, "an event cannot be told: the board of the deliveries takes no such job", "delivery", list[i].ID, "error", r.Err)
		default:
			failed = r.Err
		}
	}
	return failed
}

// remember notes a delivery for which the next one about its job has to wait.
func (t *teller) remember(p *job.Posting) {
	if about := aboutOf(p.Labels); about != "" {
		t.pending[about] = p.ID
	}
}

// prune forgets pending deliveries that ended, where there are many.
func (t *teller) prune(ctx context.Context) error {
	if len(t.pending) < t.pruneAt {
		return nil
	}
	abouts, ids := make([]string, 0, len(t.pending)), make([]job.ID, 0, len(t.pending))
	for about, id := range t.pending {
		abouts, ids = append(abouts, about), append(ids, id)
	}
	for len(ids) > 0 {
		n := min(len(ids), board.MaxBatch)
		results, err := t.to.Get(ctx, ids[:n], board.GetOptions{})
		if err != nil {
			return err
		}
		for i, r := range results {
			if !isOpen(r.Job) {
				delete(t.pending, abouts[i])
			}
		}
		abouts, ids = abouts[n:], ids[n:]
	}
	t.pruneAt = max(mostPending, 2*len(t.pending))
	return nil
}

func isOpen(j *job.Job) bool { return j != nil && (j.State == job.Unclaimed || j.State == job.Claimed) }
