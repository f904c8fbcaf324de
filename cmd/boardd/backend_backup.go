package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/backup"
	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func (p *program) backendBackupCommand() *cobra.Command {
	var to, rate string
	c := p.command("backup NAME --to DIR|-", "Copy a store that is in use",
		"The server goes on to work. What was acknowledged before the backup began is in it. DIR must be\nempty or not there, and appears when all of the backup is on the disk; with - it is written to the\nstandard output, as a tar archive that check and restore read. For operators. Stores with a way of\ntheir own (Redis, ZooKeeper, PostgreSQL) are saved by that.",
		"boardd backend backup main --to /backup/main-$(date +%F)\n  boardd backend backup main --to - | gzip > main.tar.gz",
		func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("want one backend, as boardd backend list shows it")
			}
			if to == "" {
				return usagef("want --to: a folder, or - for the standard output")
			}
			request := &boarddv1.BackupBackendRequest{Name: args[0]}
			if rate != "" {
				n, err := config.ParseBytes(rate)
				if err != nil || n <= 0 {
					return usagef("--rate: want bytes a second such as 16MiB, got %q", rate)
				}
				request.Rate = n
			}
			return p.administer(func(a *client.Admin) error {
				if to == "-" {
					return copyBackup(ctx, a, request, p.out)
				}
				return p.backupInto(ctx, a, request, to)
			})
		})
	c.Flags().StringVar(&to, "to", "", "folder for the backup, or - for the standard output")
	c.Flags().StringVar(&rate, "rate", "", "bytes of the store that are read in a second at most, such as 16MiB (default 64MiB)")
	return c
}

// copyBackup writes a backup to w as it comes.
func copyBackup(ctx context.Context, a *client.Admin, r *boarddv1.BackupBackendRequest, w io.Writer) error {
	for data, err := range a.BackupBackend(ctx, r) {
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// backupInto puts a backup into a folder.
func (p *program) backupInto(ctx context.Context, a *client.Admin, r *boarddv1.BackupBackendRequest, folder string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	var copying sync.WaitGroup
	copying.Go(func() { _ = in.CloseWithError(copyBackup(ctx, a, r, in)) }) // which reaches Unpack
	m, err := backup.Archive(out).Unpack(folder, true)
	_ = out.Close() // never fails
	cancel()
	copying.Wait()
	if refused, ok := errors.AsType[*job.Error](err); ok {
		return refused
	}
	if err != nil {
		return findings("%v", err)
	}
	return p.showBackup(m)
}

func (p *program) backendCheckCommand() *cobra.Command {
	return p.command("check BACKUP", "Check that a backup is whole",
		"BACKUP is a folder, a tar archive, or - for one on the standard input. It ends with 1 where the\nbackup was cut off or damaged, and says which file is and why. It needs no server.",
		"boardd backend check /backup/main-2026-11-23\n  gunzip < main.tar.gz | boardd backend check -",
		func(_ context.Context, args []string) error {
			return p.withBackup(args, func(s *backup.Source) (*backup.Manifest, error) { return s.Check() })
		})
}

func (p *program) backendRestoreCommand() *cobra.Command {
	var to string
	c := p.command("restore BACKUP --to DIR", "Put a backup into the folder of a store",
		"DIR is the backend's folder, backends/NAME in the server's data_dir, and must be empty or not there.\nThe server must not run. It finds that the store was put back, reports the loss of what was\nacknowledged since, and ends every claim from before. A backup that check would refuse is refused.",
		"boardd backend restore /backup/main-2026-11-23 --to /var/lib/boardd/backends/main",
		func(_ context.Context, args []string) error {
			if to == "" {
				return usagef("want --to: the folder of the store, such as /var/lib/boardd/backends/main")
			}
			if err := p.withBackup(args, func(s *backup.Source) (*backup.Manifest, error) { return s.Unpack(to, false) }); err != nil || p.output == "json" {
				return err
			}
			return p.line("it was put back into %s, which the server's user has to own; boardd board acknowledge-loss BOARD says, "+
				"once the server runs, that the loss of what came later is known", printable(to))
		})
	c.Flags().StringVar(&to, "to", "", "folder of the store")
	return c
}

// withBackup has something done with the backup that the arguments name.
func (p *program) withBackup(args []string, do func(*backup.Source) (*backup.Manifest, error)) error {
	if len(args) != 1 {
		return usagef("want one backup: a folder, a tar archive, or - for the standard input")
	}
	source := backup.Archive(p.in)
	if args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return usagef("%v", err)
		}
		defer f.Close()
		source = backup.Archive(f)
		if info, err := f.Stat(); err == nil && info.IsDir() {
			source = backup.Folder(args[0])
		}
	}
	m, err := do(source)
	if err != nil {
		return findings("%s: %v", args[0], err)
	}
	return p.showBackup(m)
}

func (p *program) showBackup(m *backup.Manifest) error {
	if p.output == "json" {
		return json.NewEncoder(p.out).Encode(m)
	}
	fmt.Fprintf(p.out, "the backup of %s (%s) has all that was acknowledged before %s: %s, %s\n",
		printable(m.Backend), printable(m.Driver), m.Begun.Format("2006-01-02T15:04:05Z"), plural(len(m.Files), "file"), plural(int(m.Bytes()), "byte"))
	return nil
}
