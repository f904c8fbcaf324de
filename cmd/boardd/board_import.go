package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) boardImportCommand() *cobra.Command {
	var from, backend string
	var paused bool
	c := p.command("import BOARD --from FILE|- [--backend BACKEND]", "Make a board of what export wrote",
		"The board is made with the settings of the file, and is paused until all of it is there. A FILE is\nlooked through before anything is written; one that was cut off or changed is refused. After a crash,\nrun it again: it goes on, and takes nothing in twice. Jobs that were claimed are open, with their\nattempts. For tenant-admin.",
		"boardd board import builds --from builds.jsonl --backend pg\n  gunzip < builds.jsonl.gz | boardd board import builds --from -",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "board")
			if err != nil {
				return err
			}
			if from == "" {
				return usagef("want --from: a file, or - for the standard input")
			}
			in, done, err := p.open(from)
			if err != nil {
				return err
			}
			defer done()
			size, err := checkFirst(in)
			if err != nil {
				return findings("%s: %v", from, err)
			}
			c, err := p.connect(impatient)
			if err != nil {
				return err
			}
			defer c.Close()
			i := boardImport{p: p, board: c.Board(name), admin: c.Admin(), from: from, backend: backend, bar: newProgress(p.err, size)}
			defer i.bar.done()
			return i.run(ctx, in, paused)
		})
	c.Flags().StringVar(&from, "from", "", "file that export wrote, or - for the standard input")
	c.Flags().StringVar(&backend, "backend", "", "store on which the board is made (default: of the name that the file has)")
	c.Flags().BoolVar(&paused, "keep-paused", false, "leave the board paused at the end")
	return c
}

// checkFirst reads all of a file before anything is done with it, and returns its size; 0 for
// what cannot be read twice.
func checkFirst(in io.Reader) (int64, error) {
	file, ok := in.(*os.File)
	if !ok {
		return 0, nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	lines := newExportLines(file)
	for {
		line, err := lines.next()
		if err != nil {
			return 0, err
		}
		if line == nil {
			_, err := file.Seek(0, io.SeekStart)
			return info.Size(), err
		}
	}
}

// A boardImport is one run of the command.
type boardImport struct {
	p             *program
	board         *client.Board
	admin         *client.Admin
	from, backend string
	bar           *progress
	sum           boarddv1.ImportBoardResponse
}

func (i *boardImport) run(ctx context.Context, in io.Reader, keepPaused bool) error {
	lines := newExportLines(in)
	header, err := lines.header()
	if err != nil {
		return findings("%s: %v", i.from, err)
	}
	if err := i.begin(ctx, header, lines.identity()); err != nil {
		return err
	}
	if err := i.take(ctx, lines); err != nil {
		return err
	}
	i.bar.clear()
	if !keepPaused {
		if _, err := i.board.Resume(ctx); err != nil {
			return err
		}
	}
	return i.p.show(&i.sum, func(t *table) {
		t.line("jobs", i.sum.GetJobs())
		t.line("known", i.sum.GetKnown())
	})
}

// begin makes the board, paused, unless an earlier run did.
func (i *boardImport) begin(ctx context.Context, settings *boarddv1.BoardSettings, identity string) error {
	reason := "import of " + identity
	settings.Name, settings.Tenant, settings.Config = i.board.Name(), i.p.tenant, nil // another board lies there
	settings.Declared, settings.Version, settings.CreatedAt = false, 0, nil
	if i.backend != "" {
		settings.Backend = i.backend
	}
	created, err := i.admin.CreateBoard(ctx, &boarddv1.CreateBoardRequest{Board: settings, Tenant: i.p.tenant})
	if err != nil && job.KindOf(err) != job.AlreadyExists && job.KindOf(err) != job.Precondition { // of the configuration
		return err
	}
	if err != nil {
		made := err
		info, err := i.board.Info(ctx)
		if err != nil {
			return made
		}
		if info.GetPaused() && info.GetPauseReason() == reason {
			return nil
		}
	}
	counts, err := i.board.Count(ctx) // one that was deleted and is made again has its jobs
	if err != nil {
		return err
	}
	if counts.GetUnclaimed()+counts.GetClaimed()+counts.GetTrashed()+counts.GetComplete() > 0 {
		if err := i.unmake(ctx, created.GetBoard()); err != nil {
			i.p.complainOf(err)
		}
		return findings("the board %s has jobs already, and none of an import that was begun and not ended: import into a new one", i.board.Name())
	}
	_, err = i.board.Pause(ctx, reason)
	return err
}

// unmake serves a board no more that this run has made, or does nothing where it made none. Its
// jobs are those of a deleted one, for which nobody has asked.
func (i *boardImport) unmake(ctx context.Context, created *boarddv1.BoardSettings) error {
	if created == nil {
		return nil
	}
	_, err := i.admin.DeleteBoard(ctx, &boarddv1.DeleteBoardRequest{Tenant: i.p.tenant, Name: created.GetName(), Version: created.GetVersion()})
	return err
}

// Bounds on what one call carries.
const (
	importLineBytes = 1 << 20
	importLineMost  = 500
)

// take sends the lines, some at a time.
func (i *boardImport) take(ctx context.Context, lines *exportLines) error {
	request := &boarddv1.ImportBoardRequest{Board: i.board.Name(), Tenant: i.p.tenant}
	n := 0
	send := func() error {
		if n == 0 {
			return nil
		}
		done, err := i.admin.ImportBoard(ctx, request)
		if err != nil {
			return err
		}
		i.bar.add(len(request.GetLines()))
		i.sum.Jobs += done.GetJobs()
		i.sum.Known += done.GetKnown()
		request.Lines, n = request.Lines[:0], 0
		return nil
	}
	for {
		line, err := lines.next()
		if err != nil {
			return findings("%s: %v; the board stays paused, and import may be run again", i.from, err)
		}
		if line == nil {
			return send()
		}
		if n == importLineMost || len(request.GetLines())+len(line) > importLineBytes {
			if err := send(); err != nil {
				return err
			}
		}
		if n == 0 {
			request.First = lines.number
		}
		request.Lines = append(request.Lines, line...)
		n++
	}
}
