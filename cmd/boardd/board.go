package main

import (
	"context"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) boardCommand() *cobra.Command {
	return p.group("board", "Look at boards, make, change, pause and delete them", "",
		p.boardListCommand(), p.boardGetCommand(), p.boardCreateCommand(), p.boardUpdateCommand(), p.boardDeleteCommand(),
		p.boardPauseCommand(), p.boardResumeCommand())
}

func (p *program) boardListCommand() *cobra.Command {
	return p.command("list", "List the boards that the token may see", "", "boardd board list",
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
			return p.show(&boarddv1.ListBoardsResponse{Boards: boards}, func(t *table) {
				t.row("NAME", "BACKEND", "DRIVER", "READY", "PAUSED", "PROBLEM")
				for _, b := range boards {
					t.row(b.GetName(), b.GetBackend(), b.GetDriver(), b.GetReady(), b.GetPaused(), b.GetProblem())
				}
			})
		})
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

func boardLines(b *client.BoardInfo) func(*table) {
	return func(t *table) {
		t.line("name", b.GetName())
		t.line("backend", b.GetBackend())
		t.line("driver", b.GetDriver())
		t.line("mode", b.GetMode())
		t.line("ready", b.GetReady())
		t.line("problem", b.GetProblem())
		t.line("paused", b.GetPaused())
		t.line("fencing", b.GetFencing())
		t.line("lease", b.GetLease().AsDuration())
		t.line("longest lease", b.GetMaxLease().AsDuration())
		t.line("may not expire", b.GetAllowNoExpiry())
		if b.GetMaxAttempts() > 0 {
			t.line("max attempts", b.GetMaxAttempts())
		}
		if b.GetBackoff().AsDuration() > 0 {
			t.line("back-off", b.GetBackoff().AsDuration().String()+" to "+b.GetMaxBackoff().AsDuration().String())
		}
		t.line("idempotency window", b.GetIdempotencyWindow().AsDuration())
		if b.GetHistory().AsDuration() > 0 {
			t.line("history", b.GetHistory().AsDuration())
		}
		t.line("durability", b.GetDurability())
		t.line("generation", b.GetGeneration())
		t.line("loss", b.GetLoss())
	}
}
