package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// named is how many jobs or workers a plan names of each kind; more are counted.
const named = 5

// placeSettings are the settings of a board by which other programs may find its jobs.
var placeSettings = []string{"namespace", "no_namespace", "path"}

// shared reports whether other programs may look for the board's jobs where they lie, and
// whether its config does not say that none does.
func (m *home) shared() (shared, written bool, err error) {
	text, err := catalog.MakeSettings(m.running.info.Board, m.backend.config.Settings, m.Tenant, m.Name)
	if err != nil {
		return false, false, err
	}
	var made, given map[string]any
	_ = json.Unmarshal(text, &made) // it was written just now
	_ = json.Unmarshal(m.Settings, &given)
	for _, name := range placeSettings {
		value, is := given[name]
		shared = shared || is && value != made[name]
	}
	shared = shared || given["foreign"] == true
	return shared, shared && given["foreign"] != false, nil
}

// planShared looks whether a board can leave a place where other programs may look for its jobs.
func (h *Host) planShared(ctx context.Context, at catalog.At, from *home, o MoveOptions, plan *MovePlan) error {
	shared, written, err := from.shared()
	if err != nil || !shared {
		return err
	}
	plan.Shared = true
	on := h.registry.board(at.Tenant, at.Name)
	if on == nil {
		return NoBoard(at.Name)
	}
	b, err := h.Open(ctx, on)
	if err == nil {
		err = b.Ready(ctx)
	}
	if err != nil {
		return err
	}
	if !b.Status().Empties {
		return job.Errorf(job.Unsupported, "other programs may work on the board where it is, and the driver %s of the backend %s does not take its jobs out of their sight: want a newer one",
			from.running.info.Name, from.Backend)
	}
	if written && !o.Stopped {
		const why = "other programs, such as TaskFlow, may work on the board where it is, and would not know that it is gone: stop them, and say so (--taskflow-stopped)"
		if !o.Dry {
			return job.Errorf(job.Precondition, why)
		}
		plan.Notes = append(plan.Notes, why)
	}
	if written {
		if err := plan.workers(ctx, b); err != nil {
			return err
		}
	}
	return plan.foreignClaims(ctx, from, o.Dry)
}

// workers notes who is registered as a worker on the board.
func (p *MovePlan) workers(ctx context.Context, b *board.Board) error {
	list, err := b.Entities(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	var names []string
	for i := range list[:min(named, len(list))] {
		names = append(names, list[i].Kind+" "+list[i].Name)
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%d workers are registered on the board: %s; those that are TaskFlow's are to be stopped", len(list), strings.Join(names, ", ")))
	return nil
}

// foreignClaims refuses a board of which other programs hold jobs, and names some; where it is
// asked what would be, that is a note.
func (p *MovePlan) foreignClaims(ctx context.Context, from *home, dry bool) error {
	counts, err := from.running.raw.Count(ctx, from.key())
	if err != nil {
		return err
	}
	if counts.Bad > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d postings that cannot be read do not come along, and stay where they are", counts.Bad))
	}
	if counts.Claimed == 0 {
		return nil
	}
	n, names := 0, []string(nil)
	for page, err := range from.running.raw.Scan(ctx, from.key(), driver.ScanRequest{}) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			r := &page.Records[i]
			if r.Holder == nil || !r.Holder.Foreign {
				continue
			}
			if n++; n <= named {
				names = append(names, fmt.Sprintf("%v by %.80q", r.Posting.ID, r.Holder.Owner))
			}
		}
	}
	if n == 0 {
		return nil
	}
	why := fmt.Sprintf("other programs hold %d jobs, and their claims cannot come along: %s; want that they end them, or that the claims expire", n, strings.Join(names, ", "))
	if dry {
		p.Notes = append(p.Notes, why)
		return nil
	}
	return job.Errorf(job.Precondition, "%s", why)
}

// old is a step of the board that moves, in its old store.
func (e *ends) old(step driver.MoveStep) driver.Move {
	return driver.Move{Step: step, ID: e.id, Shared: e.move.Shared}
}

// empty takes the board's jobs out of the sight of other programs that may look for them in the
// old store, before anybody can claim one in the new one. It returns what they have done meanwhile,
// which stays there.
func (r *moveRun) empty(ctx context.Context, e *ends) (late string, err error) {
	if !e.move.Shared {
		return "", nil
	}
	if err := r.reached("empty"); err != nil {
		return "", err
	}
	err = e.from.stepOpen(ctx, e.old(driver.Empty))
	switch {
	case err == nil:
		return "", nil
	case job.KindOf(err) == job.AlreadyExists:
		r.logger.Warn("other programs have changed the board in its old store while it moved", "from", e.move.From.Backend, "problem", err)
		return err.Error(), nil
	}
	_ = r.update(ctx, func(m *catalog.Move) { m.Problem = err.Error() }) // it is tried again
	return "", err
}
