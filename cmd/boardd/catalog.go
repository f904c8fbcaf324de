package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) catalogCommand() *cobra.Command {
	return p.group("catalog", "Look at what was made through the API as a whole, and mend its loss",
		"The catalog is the tenants, tokens, boards and policies that were made through the API. Each\n"+
			"server remembers it. When its store loses some of it that nobody deleted, servers go on with\n"+
			"what they remember and change nothing, until an operator says what holds: import puts back\n"+
			"what export wrote, and accept takes the store's word.",
		p.catalogStatusCommand(), p.catalogAcceptCommand(), p.catalogExportCommand(), p.catalogImportCommand())
}

func (p *program) catalogStatusCommand() *cobra.Command {
	return p.command("status", "Say whether the store has the catalog still", "It ends with 1 when the store lost something.", "boardd catalog status",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				state, err := a.GetCatalog(ctx)
				if err != nil {
					return err
				}
				err = p.show(state, func(t *table) {
					t.line("id", state.GetId())
					t.line("generation", state.GetGeneration())
					t.line("records", state.GetRecords())
					if state.GetInDoubt() {
						t.line("in doubt since", state.GetSince())
						t.line("problem", state.GetProblem())
						t.line("records of it", strings.Join(state.GetNames(), " "))
					}
				})
				if err == nil && state.GetInDoubt() {
					err = findings("the catalog is in doubt: boardd catalog export | boardd catalog import - puts back what the server remembers, boardd catalog accept gives it up")
				}
				return err
			})
		})
}

func (p *program) catalogAcceptCommand() *cobra.Command {
	return p.command("accept", "Take what the store has now for the catalog",
		"Every server forgets what it remembers besides: boards that the store has lost are served no\nmore, and the recordings of them are taken away.", "boardd catalog accept",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				done, err := a.AcceptCatalog(ctx)
				if err != nil {
					return err
				}
				return p.show(done, func(t *table) {
					t.line("generation", done.GetGeneration())
					t.line("records", done.GetRecords())
				})
			})
		})
}

func (p *program) catalogExportCommand() *cobra.Command {
	return p.command("export", "Write the catalog as JSON, one record a line",
		"What the server remembers, also where the store has lost it, with the modules of policies.\nTokens are in it as the hashes of their secrets. The last line says that it is whole.", "boardd catalog export > catalog.jsonl",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error { return p.exportCatalog(ctx, a) })
		})
}

// catalogEnd is what the last line of an export says.
type catalogEnd struct {
	Records int    `json:"records"`
	SHA256  string `json:"sha256"` // of the lines before
}

func (p *program) exportCatalog(ctx context.Context, a *client.Admin) error {
	sum, end := sha256.New(), catalogEnd{}
	out := io.MultiWriter(p.out, sum)
	for after := ""; ; {
		page, err := a.ExportCatalog(ctx, after)
		if err != nil {
			return err
		}
		for _, record := range page.GetRecords() {
			if err := writeJSON(out, record); err != nil {
				return err
			}
			end.Records++
		}
		for _, digest := range page.GetMissing() {
			p.complain("the module " + digest + " of a policy is neither in the store nor remembered: put it again")
		}
		if after = page.GetNext(); after == "" {
			break
		}
	}
	end.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return json.NewEncoder(p.out).Encode(map[string]catalogEnd{"end": end})
}

func (p *program) catalogImportCommand() *cobra.Command {
	var replace bool
	c := p.command("import FILE|-", "Put records into the catalog and take the result for it",
		"It reads what export wrote. Records that the store has stay as they are, unless --replace is\ngiven. In the end it does what accept does. What is not whole, to the line with which export ends,\nis refused.", "boardd catalog export | boardd catalog import -",
		func(ctx context.Context, args []string) error {
			path, err := one(args, "file")
			if err != nil {
				return err
			}
			in, done, err := p.open(path)
			if err != nil {
				return err
			}
			defer done()
			list, err := catalogRecords(in)
			switch {
			case errors.Is(err, errCutOff):
				return usagef("%s: %v: write it anew with boardd catalog export", path, err)
			case err != nil:
				return usagef("%s: %v", path, err)
			case len(list) == 0:
				return usagef("%s: there is no record in it: boardd catalog accept takes what the store has", path)
			}
			return p.administer(func(a *client.Admin) error { return p.importCatalog(ctx, a, list, replace) })
		})
	c.Flags().BoolVar(&replace, "replace", false, "write over records that are there")
	return c
}

// open opens a file, or standard input for "-".
func (p *program) open(path string) (io.Reader, func(), error) {
	if path == "-" {
		return p.in, func() {}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	return file, func() { _ = file.Close() }, nil
}

// catalogRecords reads what export wrote. All of it is read, to its end, before anything is
// written: what it lacks would be given up.
func catalogRecords(in io.Reader) ([]*boarddv1.CatalogRecord, error) {
	var list []*boarddv1.CatalogRecord
	for lines := newExportLines(in); ; {
		text, err := lines.read()
		if err != nil {
			return nil, err
		}
		var line struct {
			Name string      `json:"name"`
			Data []byte      `json:"data"`
			End  *catalogEnd `json:"end"`
		}
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&line); err != nil {
			return nil, fmt.Errorf("line %d: %w", lines.number, err)
		}
		if line.End != nil {
			return list, lines.catalogEnded(line.End, len(list))
		}
		_, _ = lines.sum.Write(text) // never fails
		list = append(list, &boarddv1.CatalogRecord{Name: line.Name, Data: line.Data})
	}
}

// catalogEnded compares the end with what was read.
func (l *exportLines) catalogEnded(e *catalogEnd, records int) error {
	if err := l.fits(e.SHA256); err != nil {
		return err
	}
	if records != e.Records {
		return fmt.Errorf("line %d: there are %d records, and it says %d", l.number, records, e.Records)
	}
	return l.nothingFollows()
}

// Bounds on one call of an import.
const (
	importBytes = 1 << 20
	importMost  = 500
)

// importCatalog writes records, some at a time, and accepts what the store has then.
func (p *program) importCatalog(ctx context.Context, a *client.Admin, list []*boarddv1.CatalogRecord, replace bool) error {
	total := &boarddv1.ImportCatalogResponse{}
	for last := false; !last; {
		n, size := 0, 0
		for n < min(len(list), importMost) && (n == 0 || size+len(list[n].GetData()) <= importBytes) {
			size += len(list[n].GetData())
			n++
		}
		last = n == len(list)
		done, err := a.ImportCatalog(ctx, &boarddv1.ImportCatalogRequest{Records: list[:n], Replace: replace, Accept: last})
		if err != nil {
			return err
		}
		total.Written += done.GetWritten()
		total.Kept += done.GetKept()
		list = list[n:]
	}
	return p.show(total, func(t *table) {
		t.line("written", total.GetWritten())
		t.line("kept", total.GetKept())
	})
}
