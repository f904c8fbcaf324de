package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

func (p *program) boardExportCommand() *cobra.Command {
	to := "-"
	c := p.command("export BOARD [--to FILE|-]", "Write all that a board keeps as JSON lines",
		"Settings, books, schedules, history, trash and the open jobs in their order, with attempts, operations\nand logs. The last line has the checksum of all others, and FILE appears when it is whole. Pause the\nboard before, and let its workers end what they hold: what changes meanwhile is in the file as it was\nat some time, and a claim in hand does not come along. For tenant-admin.",
		"boardd board export builds --to builds.jsonl\n  boardd board export builds | gzip > builds.jsonl.gz",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "board")
			if err != nil {
				return err
			}
			p.board = name
			if to == "-" {
				return p.export(ctx, name, p.out)
			}
			return p.exportTo(ctx, name, to)
		})
	c.Flags().StringVar(&to, "to", to, "file for the board, or - for the standard output")
	return c
}

// exportTo writes a board to what has a path: a file that is new or in place of another one,
// or what is there and no file, such as a pipe.
func (p *program) exportTo(ctx context.Context, name, path string) error {
	present, err := os.Stat(path)
	switch {
	case err != nil || present.Mode().IsRegular():
		return p.exportInto(ctx, name, path)
	case present.IsDir():
		return usagef("--to: %s is a folder: want the name of a file", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return usagef("--to: %v", err)
	}
	return errors.Join(p.export(ctx, name, file), file.Close())
}

// exportInto writes a board into a file, which is there when all of it is on the disk.
func (p *program) exportInto(ctx context.Context, name, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return usagef("--to: %v", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // which is not there any more where all went well
	err = p.export(ctx, name, file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// export writes a board to w as it comes.
func (p *program) export(ctx context.Context, name string, w io.Writer) error {
	c, err := p.connect(impatient)
	if err != nil {
		return err
	}
	defer c.Close()
	bar := &progress{}
	if counts, err := c.Board(name).Count(ctx); err == nil {
		bar = newProgress(p.err, counts.GetUnclaimed()+counts.GetClaimed()+counts.GetTrashed()+counts.GetComplete())
	}
	defer bar.done()
	out := bufio.NewWriter(w)
	var last []byte // line
	for data, err := range c.Admin().ExportBoard(ctx, &boarddv1.ExportBoardRequest{Board: name, Tenant: p.tenant}) {
		if err != nil {
			return err
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
		bar.add(bytes.Count(data, []byte("\n")))
		last = append(last, data...)
		if start := bytes.LastIndexByte(bytes.TrimSuffix(last, []byte("\n")), '\n') + 1; start > 0 {
			last = append(last[:0], last[start:]...)
		}
	}
	end, err := readExportEnd(last)
	if err != nil || end == nil {
		return findings("the server ended the export before its end")
	}
	bar.clear()
	if end.Changed {
		p.complain("the board was changed while it was exported: for a copy of one moment, pause it and let its workers end what they hold")
	}
	return out.Flush()
}
