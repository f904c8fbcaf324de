package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

// moveFlags are those of boardd board move.
type moveFlags struct {
	backend                    string
	wait                       time.Duration
	dry, abandon, drop, detach bool
	stopped                    bool
}

func (p *program) boardMoveCommand() *cobra.Command {
	var f moveFlags
	c := p.command("move BOARD --backend BACKEND [--dry-run]", "Move a board to another backend",
		"Jobs, trash, history, books, schedules and claims in hand go along, with their uuids, order, attempts\nand tokens. The board is at work while it is copied, and frozen for what changed last: calls that change\nit are told to come again then, which clients do by themselves. Any server goes on after a crash. Until\nthe board is switched over, --abandon gives the move up; what is left in the old store is dropped after\nthe board's idempotency window, or by --drop. A board that TaskFlow may work on moves once its programs\nwere stopped, which --taskflow-stopped says; --dry-run says who is there still. For tenant-admin.",
		"boardd board move builds --backend pg --dry-run\n  boardd board move builds --backend pg",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "board")
			if err != nil {
				return err
			}
			p.board = name
			if (f.backend != "") == (f.abandon || f.drop) || f.abandon && f.drop {
				return usagef("want one of --backend, --abandon and --drop")
			}
			c, err := p.connect(impatient)
			if err != nil {
				return err
			}
			defer c.Close()
			return p.move(ctx, c, name, &f)
		})
	c.Flags().StringVar(&f.backend, "backend", "", "backend to which the board moves")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "only say what would be")
	c.Flags().DurationVar(&f.wait, "wait", 0, "how long claims may go on that cannot come along, before they end")
	c.Flags().BoolVar(&f.stopped, "taskflow-stopped", false, "TaskFlow's programs, which may work on the board where it is, were stopped")
	c.Flags().BoolVar(&f.abandon, "abandon", false, "give the move up that is under way")
	c.Flags().BoolVar(&f.drop, "drop", false, "take away at once what the last move left in the old store")
	c.Flags().BoolVar(&f.detach, "detach", false, "do not wait for the end of the move")
	return c
}

// move begins or ends a move, and waits until it is over.
func (p *program) move(ctx context.Context, c *client.Client, name string, f *moveFlags) error {
	admin := c.Admin()
	var m *boarddv1.Move
	if f.abandon {
		answer, err := admin.AbandonMove(ctx, &boarddv1.AbandonMoveRequest{Board: name, Tenant: p.tenant})
		if err != nil {
			return err
		}
		m = answer.GetMove()
	} else {
		request := &boarddv1.MoveBoardRequest{Board: name, Tenant: p.tenant, Backend: f.backend, DryRun: f.dry, Drop: f.drop, TaskflowStopped: f.stopped}
		if f.wait > 0 {
			request.ClaimsWait = durationpb.New(f.wait)
		}
		answer, err := admin.MoveBoard(ctx, request)
		if err != nil {
			return err
		}
		for _, note := range answer.GetNotes() {
			p.complain(note)
		}
		m = answer.GetMove()
	}
	if !f.detach && !f.dry {
		var err error
		if m, err = p.awaitMove(ctx, admin, name, m); err != nil {
			return err
		}
	}
	if err := p.show(m, func(t *table) {
		if f.dry {
			plannedTable(t, m)
			return
		}
		moveTable(t, m)
	}); err != nil {
		return err
	}
	if s := m.GetState(); !f.abandon && (s == "ABANDONING" || s == "ABANDONED") {
		return findings("the move was given up: %s", m.GetProblem())
	}
	return nil
}

// plannedTable is what a move would be, of which nothing is done yet.
func plannedTable(t *table, m *boarddv1.Move) {
	t.line("state", m.GetState())
	t.line("from", m.GetFrom())
	t.line("to", m.GetTo())
	t.line("jobs to move", m.GetTotal())
	t.line("claims among them", m.GetClaims())
	t.line("problem", m.GetProblem())
}

func moveTable(t *table, m *boarddv1.Move) {
	t.line("state", m.GetState())
	t.line("from", m.GetFrom())
	t.line("to", m.GetTo())
	t.line("jobs", m.GetJobs())
	t.line("total", m.GetTotal())
	t.line("claims", m.GetClaims())
	t.line("lost claims", m.GetLostClaims())
	t.line("rounds", m.GetRounds())
	if m.GetFrozenFor() != nil {
		t.line("frozen for", m.GetFrozenFor().AsDuration().Round(time.Millisecond))
	}
	t.line("problem", m.GetProblem())
}

// moveLook is how often a move is looked at.
const moveLook = 250 * time.Millisecond

// awaitMove waits until the move is over, one way or the other.
func (p *program) awaitMove(ctx context.Context, admin *client.Admin, name string, m *boarddv1.Move) (*boarddv1.Move, error) {
	bar := newProgress(p.err, m.GetTotal())
	defer bar.done()
	for {
		switch m.GetState() {
		case "MOVED", "DROPPED", "ABANDONED":
			bar.clear()
			return m, nil
		}
		if err := sleep.For(ctx, moveLook); err != nil {
			return nil, err
		}
		answer, err := admin.GetMove(ctx, &boarddv1.GetMoveRequest{Board: name, Tenant: p.tenant})
		if err != nil {
			return nil, err
		}
		m = answer.GetMove()
		bar.total = max(bar.total, m.GetTotal())
		bar.add(int(m.GetJobs() - bar.at))
	}
}
