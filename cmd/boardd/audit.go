package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/audit"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) auditCommand() *cobra.Command {
	return p.group("audit", "Read and check a server's audit log", "", p.auditListCommand(), p.auditExportCommand(), p.auditVerifyCommand())
}

// auditFlags say which records are meant.
type auditFlags struct {
	request      boarddv1.GetAuditRequest
	since, until past
}

func (f *auditFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.request.All, "all", false, "of every tenant; for operators")
	c.Flags().Var(&f.since, "since", "not before: a time, or a duration before now")
	c.Flags().Var(&f.until, "until", "before: a time, or a duration before now")
	tenantFlag(c, &f.request.Tenant)
}

// each hands over the records, page by page, and returns the head that was
// published of the log.
func (f *auditFlags) each(ctx context.Context, a *client.Admin, do func(*boarddv1.AuditRecord) error) (*boarddv1.AuditHead, error) {
	f.request.Since, f.request.Until, f.request.Max = f.since.proto(), f.until.proto(), auditPage
	for {
		page, err := a.GetAudit(ctx, &f.request)
		if err != nil {
			return nil, err
		}
		for _, r := range page.GetRecords() {
			if err := do(r); err != nil {
				return nil, err
			}
		}
		if page.GetNext() == 0 {
			return page.GetHead(), nil
		}
		f.request.After = page.GetNext()
	}
}

const auditPage = 1000

func (p *program) auditListCommand() *cobra.Command {
	f := &auditFlags{}
	var most int
	c := p.command("list", "Show who did what", "Oldest first. Each server keeps a log of its own.", "boardd audit list --since 24h",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				answer := &boarddv1.GetAuditResponse{}
				_, err := f.each(ctx, a, func(r *boarddv1.AuditRecord) error {
					if answer.Records = append(answer.Records, r); len(answer.GetRecords()) > most {
						answer.Records = answer.GetRecords()[1:]
					}
					return nil
				})
				if err != nil {
					return err
				}
				return p.show(answer, func(t *table) {
					t.row("NUMBER", "AT", "CALL", "RESULT", "TENANT", "BOARD", "NAME", "BY", "FROM", "ITEMS", "FAILED")
					for _, r := range answer.GetRecords() {
						t.row(r.GetSequence(), r.GetAt(), r.GetCall(), r.GetResult(), r.GetTenant(), r.GetBoard(), r.GetName(),
							r.GetCallerTenant()+"/"+r.GetCaller(), r.GetRemote(), r.GetItems(), r.GetFailed())
					}
				})
			})
		})
	f.add(c)
	c.Flags().IntVar(&most, "last", 1000, "show so many, the newest ones")
	return c
}

func (p *program) auditExportCommand() *cobra.Command {
	f := &auditFlags{}
	c := p.command("export", "Write records as JSON, one a line", "", "boardd audit export --all > audit.jsonl",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				_, err := f.each(ctx, a, func(r *boarddv1.AuditRecord) error { return p.showJSON(r) })
				return err
			})
		})
	f.add(c)
	return c
}

func (p *program) auditVerifyCommand() *cobra.Command {
	var data string
	c := p.command("verify [--data DIR]", "Check that no record was edited, removed, swapped or cut off",
		"It asks a server for its whole log, which needs an operator's token, and compares it with the\nhead that was published in the catalog. With --data it reads the files of a server instead,\nwhich need not run; then nothing tells whether the tail was cut off.",
		"boardd audit verify\n  boardd audit verify --data /var/lib/boardd",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			if data != "" {
				return p.verifyFiles(filepath.Join(data, "audit"))
			}
			return p.administer(func(a *client.Admin) error { return p.verifyServer(ctx, a) })
		})
	c.Flags().StringVar(&data, "data", "", "data folder of a server")
	return c
}

func (p *program) verifyFiles(folder string) error {
	found, end, err := audit.Verify(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("there is no audit log in %s", folder)
	}
	if err != nil {
		return err
	}
	return p.verdict(found, end)
}

func (p *program) verifyServer(ctx context.Context, a *client.Admin) error {
	f := &auditFlags{}
	f.request.All = true
	var end audit.Chain
	var found []string
	hashes := map[uint64]string{}
	head, err := f.each(ctx, a, func(r *boarddv1.AuditRecord) error {
		record := auditRecord(r)
		if err := end.Next(&record); err != nil {
			found = append(found, err.Error())
		}
		hashes[record.Sequence] = record.Hash
		return nil
	})
	if err != nil {
		return err
	}
	published := audit.Chain{Sequence: uint64(max(0, head.GetSequence())), Hash: head.GetHash()}
	if problem := audit.CheckHead(end, published, func(n uint64) string { return hashes[n] }); problem != "" {
		found = append(found, problem)
	}
	return p.verdict(found, end)
}

// auditRecord is the record of which the server made a message.
func auditRecord(r *boarddv1.AuditRecord) audit.Record {
	return audit.Record{
		Sequence: uint64(max(0, r.GetSequence())), At: r.GetAt().AsTime(), Host: r.GetHost(), Call: r.GetCall(), Tenant: r.GetTenant(),
		Board: r.GetBoard(), Name: r.GetName(), CallerTenant: r.GetCallerTenant(), Caller: r.GetCaller(), Remote: r.GetRemote(),
		Request: r.GetRequest(), Result: r.GetResult(), Items: r.GetItems(), Failed: r.GetFailed(), Repeated: r.GetRepeated(),
		Previous: r.GetPrevious(), Hash: r.GetHash(),
	}
}

// verdict says what came of a check.
func (p *program) verdict(found []string, end audit.Chain) error {
	for _, problem := range found {
		fmt.Fprintln(p.out, printable(problem))
	}
	if len(found) > 0 {
		return findings("%s", plural(len(found), "finding"))
	}
	fmt.Fprintf(p.out, "nothing is wrong: %s\n", plural(int(end.Sequence), "record"))
	return nil
}
