package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) boardCommand() *cobra.Command {
	return p.group("board", "Look at boards, make, change, pause and delete them", "",
		p.boardListCommand(), p.boardGetCommand(), p.boardCreateCommand(), p.boardUpdateCommand(), p.boardDeleteCommand(),
		p.boardPauseCommand(), p.boardResumeCommand(), p.boardAcknowledgeCommand(),
		p.boardExportCommand(), p.boardImportCommand(), p.boardMoveCommand())
}

func (p *program) boardListCommand() *cobra.Command {
	return p.command("list", "List the boards that the token may see", "SERVER is who of several servers serves the board; none where one serves alone.", "boardd board list",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("list takes no arguments, got %q", args[0])
			}
			c, err := p.connect(impatient)
			if err != nil {
				return err
			}
			defer c.Close()
			boards, err := c.Boards(ctx)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.ListBoardsResponse{Boards: boards}, func(t *table) { boardRows(t, boards) })
		})
}

func boardRows(t *table, boards []*client.BoardInfo) {
	t.row("NAME", "BACKEND", "DRIVER", "READY", "PAUSED", "SERVER", "PROBLEM")
	for _, b := range boards {
		problem := b.GetProblem()
		if problem == "" && b.GetLoss() != "" {
			problem = "its store lost changes: boardd board get " + b.GetName()
		}
		t.row(b.GetName(), b.GetBackend(), b.GetDriver(), b.GetReady(), b.GetPaused(), b.GetServer(), problem)
	}
}

// named returns the board that an argument or --board names.
func (p *program) named(args []string) error {
	switch len(args) {
	case 0:
	case 1:
		p.board = args[0]
	default:
		return usagef("want one board, got %d", len(args))
	}
	return nil
}

func (p *program) boardGetCommand() *cobra.Command {
	return p.command("get [BOARD]", "Show a board and its settings", "", "boardd board get default",
		func(ctx context.Context, args []string) error {
			return p.aboutBoard(args, func(b *client.Board) error {
				info, err := b.Info(ctx)
				if job.KindOf(err) == job.NotFound {
					p.complainOf(err)
					return codeError{code: exitNothing}
				}
				if err != nil {
					return err
				}
				return p.show(&boarddv1.GetBoardResponse{Board: info}, boardLines(info))
			})
		})
}

func (p *program) boardPauseCommand() *cobra.Command {
	var reason string
	c := p.command("pause [BOARD]", "Let the board grant no claims",
		"It still takes posts, and the ends of the claims that there are.", "boardd board pause default --reason upgrade",
		func(ctx context.Context, args []string) error {
			return p.aboutBoard(args, func(b *client.Board) error {
				info, err := b.Pause(ctx, reason)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.PauseBoardResponse{Board: info}, boardLines(info))
			})
		})
	c.Flags().StringVar(&reason, "reason", "", "why, for people")
	return c
}

func (p *program) boardResumeCommand() *cobra.Command {
	return p.command("resume [BOARD]", "End a pause", "", "boardd board resume default",
		func(ctx context.Context, args []string) error {
			return p.aboutBoard(args, func(b *client.Board) error {
				info, err := b.Resume(ctx)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ResumeBoardResponse{Board: info}, boardLines(info))
			})
		})
}

func (p *program) boardAcknowledgeCommand() *cobra.Command {
	var generation int64
	c := p.command("acknowledge-loss [BOARD]", "Say that somebody knows what the store lost",
		"A store that was put back from a backup, or that lost its last changes, has lost what was acknowledged. The board\n"+
			"shows that, also after restarts, until somebody says with this command that it is known and dealt with.",
		"boardd board acknowledge-loss default",
		func(ctx context.Context, args []string) error {
			return p.aboutBoard(args, func(b *client.Board) error {
				info, err := b.AcknowledgeLoss(ctx, generation)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.AcknowledgeLossResponse{Board: info}, boardLines(info))
			})
		})
	c.Flags().Int64Var(&generation, "generation", 0, "only losses up to that of this generation, as board get shows it (0: the present one)")
	return c
}

func (p *program) aboutBoard(args []string, do func(*client.Board) error) error {
	if err := p.named(args); err != nil {
		return err
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	return do(board)
}

// boardLines shows how a board stands, and its settings.
func boardLines(b *client.BoardInfo) func(*table) {
	return func(t *table) {
		t.line("name", b.GetName())
		t.line("backend", b.GetBackend())
		t.line("driver", b.GetDriver())
		t.line("server", b.GetServer())
		t.line("ready", b.GetReady())
		t.line("problem", b.GetProblem())
		t.line("paused", b.GetPaused())
		t.line("reason of the pause", b.GetPauseReason())
		settingLines(t, asSettings(b))
		if w := b.GetEffectiveWindow().AsDuration(); w > 0 && w != b.GetIdempotencyWindow().AsDuration() {
			t.line("effective window", w)
		}
		t.line("durability", b.GetDurability())
		t.line("generation", b.GetGeneration())
		t.line("loss", b.GetLoss())
		if n := b.GetCorrupt(); n > 0 {
			t.line("corrupt", fmt.Sprintf("%d entries of the store cannot be read as jobs; boardd job list shows them", n))
		}
	}
}

// asSettings is the part of a board that was chosen.
func asSettings(b *client.BoardInfo) *boarddv1.BoardSettings {
	return &boarddv1.BoardSettings{
		Mode: b.GetMode(), Fencing: b.GetFencing(), Lease: b.GetLease(), MaxLease: b.GetMaxLease(),
		AllowNoExpiry: &b.AllowNoExpiry, IdempotencyWindow: b.GetIdempotencyWindow(), History: b.GetHistory(),
		Record: b.GetRecord(), MaxAttempts: &b.MaxAttempts, Backoff: b.GetBackoff(), MaxBackoff: b.GetMaxBackoff(),
		Limits: b.GetLimits(), HideDetails: &b.HideDetails, Eligibility: b.GetEligibility(), Ordering: b.GetOrdering(),
	}
}
