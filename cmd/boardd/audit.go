package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/audit"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) auditCommand() *cobra.Command {
	return p.group("audit", "Read and check the audit logs of servers", "", p.auditListCommand(), p.auditExportCommand(), p.auditVerifyCommand())
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

// each hands over the records after the given one, page by page, and returns the head that was
// published of the log. Each page is handed to begin before its records.
func (f *auditFlags) each(
	ctx context.Context, a *client.Admin, after uint64, do func(*boarddv1.AuditRecord) error, begin func(*boarddv1.GetAuditResponse) error,
) (*boarddv1.AuditHead, error) {
	f.request.Since, f.request.Until, f.request.Max, f.request.After = f.since.proto(), f.until.proto(), auditPage, int64(after)
	for {
		page, err := a.GetAudit(ctx, &f.request)
		if err != nil {
			return nil, err
		}
		if err := begin(page); err != nil {
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
	c := p.command("list", "Show who did what", "Oldest first, of every server that --addr names: each keeps a log of its own.", "boardd audit list --since 24h",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			answer := &boarddv1.GetAuditResponse{}
			err := p.eachServer(func(_ string, a *client.Admin) error {
				var last []*boarddv1.AuditRecord
				_, err := f.each(ctx, a, 0, func(r *boarddv1.AuditRecord) error {
					if last = append(last, r); len(last) > most {
						last = last[1:]
					}
					return nil
				}, p.warnOfFlaws)
				answer.Records = append(answer.Records, last...)
				return err
			})
			if err != nil {
				return err
			}
			slices.SortStableFunc(answer.GetRecords(), func(a, b *boarddv1.AuditRecord) int { return a.GetAt().AsTime().Compare(b.GetAt().AsTime()) })
			answer.Records = answer.GetRecords()[max(0, len(answer.GetRecords())-most):]
			return p.showRecords(answer)
		})
	f.add(c)
	c.Flags().IntVar(&most, "last", 1000, "show so many, the newest ones")
	return c
}

func (p *program) showRecords(answer *boarddv1.GetAuditResponse) error {
	return p.show(answer, func(t *table) {
		t.row("SERVER", "NUMBER", "AT", "CALL", "RESULT", "TENANT", "BOARD", "NAME", "BY", "FROM", "ITEMS", "FAILED")
		for _, r := range answer.GetRecords() {
			t.row(r.GetHost(), r.GetSequence(), r.GetAt(), r.GetCall(), r.GetResult(), r.GetTenant(), r.GetBoard(), r.GetName(),
				r.GetCallerTenant()+"/"+r.GetCaller(), r.GetRemote(), r.GetItems(), r.GetFailed())
		}
	})
}

func (p *program) auditExportCommand() *cobra.Command {
	f := &auditFlags{}
	c := p.command("export", "Write records as JSON, one a line", "Those of every server that --addr names, one server after the other.", "boardd audit export --all > audit.jsonl",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.eachServer(func(_ string, a *client.Admin) error {
				_, err := f.each(ctx, a, 0, func(r *boarddv1.AuditRecord) error { return p.showJSON(r) }, p.warnOfFlaws)
				return err
			})
		})
	f.add(c)
	return c
}

func (p *program) auditVerifyCommand() *cobra.Command {
	var data, keyFile string
	var gone []string
	c := p.command("verify [--data DIR [--audit-key FILE]]", "Check that no record was edited, removed, swapped or cut off",
		"It asks each server that --addr names for its whole log, which needs an operator's token, and\ncompares it with the head that was published in the catalog, with the server's key and with what the\nother servers have seen of it. A server that they have seen and that was not asked is a finding;\n--gone names those that were taken out of service. With --data it reads the files of a server\ninstead, which need not run; then nothing tells whether the tail was cut off.",
		"boardd audit verify --addr https://a:7422 --addr https://b:7422\n  boardd audit verify --data /var/lib/boardd",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			if data != "" {
				return p.verifyFiles(data, keyFile)
			}
			return p.verifyServers(ctx, gone)
		})
	c.Flags().StringArrayVar(&gone, "gone", nil, "id of a server that is no more; may be repeated")
	c.Flags().StringVar(&data, "data", "", "data folder of a server")
	c.Flags().StringVar(&keyFile, "audit-key", "", "with --data: the server's key_file, if its configuration names one")
	return c
}

func (p *program) verifyFiles(data, keyFile string) error {
	if keyFile == "" {
		keyFile = audit.KeyFile(data)
	}
	folder := filepath.Join(data, "audit")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return usagef("there is no audit log in %s", folder)
	}
	key, err := audit.ReadPublic(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("the key that the log is signed with is not in %s: name its file by --audit-key", keyFile)
	}
	if err != nil {
		return err
	}
	found, end, err := audit.Verify(folder, key)
	if err != nil {
		return err
	}
	return p.verdict(found, int(end.Sequence))
}

// verifyServers checks the logs of all servers, each by itself and against the others.
func (p *program) verifyServers(ctx context.Context, gone []string) error {
	var all audit.Verifier
	if err := p.readLogs(ctx, &all, map[string]string{}); err != nil {
		return err
	}
	return p.verdict(all.Findings(gone), all.Records())
}

// readLogs reads every log, and then what came to each meanwhile: a server may have
// seen a head of another one that is newer than what was read of that. hosts is whose
// log each address leads to.
func (p *program) readLogs(ctx context.Context, all *audit.Verifier, hosts map[string]string) error {
	for _, add := range []func(string, *audit.Record){all.Add, all.Extend} {
		err := p.eachServer(func(addr string, a *client.Admin) error {
			f := &auditFlags{}
			f.request.All = true
			head, err := f.each(ctx, a, all.End(hosts[addr]).Sequence, func(r *boarddv1.AuditRecord) error {
				record := auditRecord(r)
				if hosts[addr] == "" {
					if slices.Contains(slices.Collect(maps.Values(hosts)), record.Host) {
						return usagef("two of the addresses lead to the same server, %s", record.Host)
					}
					hosts[addr] = record.Host
				}
				add(hosts[addr], &record)
				return nil
			}, func(page *boarddv1.GetAuditResponse) error { return judgePage(all, page) })
			if head != nil && err == nil {
				all.Published(head.GetHost(), audit.Chain{Sequence: uint64(max(0, head.GetSequence())), Hash: head.GetHash()})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// judgePage tells a verifier what a page says of a log besides its records.
func judgePage(all *audit.Verifier, page *boarddv1.GetAuditResponse) error {
	host := page.GetHead().GetHost()
	if text := page.GetHead().GetKey(); text != "" {
		key, err := audit.ParsePublic(text)
		if err != nil {
			return err
		}
		all.Signed(host, key)
	}
	for _, f := range page.GetFlaws() {
		all.Flawed(host, audit.Flaw{File: f.GetFile(), Line: int(f.GetLine()), After: uint64(max(0, f.GetAfter())), Reason: f.GetReason()})
	}
	return nil
}

// warnOfFlaws says which lines of a log are not among the records that are shown.
func (p *program) warnOfFlaws(page *boarddv1.GetAuditResponse) error {
	for _, f := range page.GetFlaws() {
		fmt.Fprintf(p.err, "boardd: %s: line %d, after record %d, cannot be read: %s\n", printable(f.GetFile()), f.GetLine(), f.GetAfter(), printable(f.GetReason()))
	}
	return nil
}

// eachServer administers the servers one after the other, and not one of them as
// other commands do.
func (p *program) eachServer(do func(addr string, a *client.Admin) error) error {
	addrs := p.addrs
	if len(addrs) == 0 {
		addrs = []string{client.DefaultAddr}
	}
	defer func() { p.addrs = addrs }()
	for _, addr := range addrs {
		p.addrs = []string{addr}
		if err := p.administer(func(a *client.Admin) error { return do(addr, a) }); err != nil {
			return err
		}
	}
	return nil
}

// auditRecord is the record of which the server made a message.
func auditRecord(r *boarddv1.AuditRecord) audit.Record {
	return audit.Record{
		Sequence: uint64(max(0, r.GetSequence())), At: r.GetAt().AsTime(), Host: r.GetHost(), Call: r.GetCall(), Tenant: r.GetTenant(),
		Board: r.GetBoard(), Name: r.GetName(), CallerTenant: r.GetCallerTenant(), Caller: r.GetCaller(), Remote: r.GetRemote(),
		Request: r.GetRequest(), Result: r.GetResult(), Items: r.GetItems(), Failed: r.GetFailed(), Repeated: r.GetRepeated(),
		Previous: r.GetPrevious(), Hash: r.GetHash(), Signature: r.GetSignature(),
	}
}

// verdict says what came of a check.
func (p *program) verdict(found []string, records int) error {
	for _, problem := range found {
		fmt.Fprintln(p.out, printable(problem))
	}
	if len(found) > 0 {
		return findings("%s", plural(len(found), "finding"))
	}
	fmt.Fprintf(p.out, "nothing is wrong: %s\n", plural(records, "record"))
	return nil
}
