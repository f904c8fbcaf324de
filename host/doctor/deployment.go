package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/sdk/driver"
)

// What an examination of a deployment takes for soon, and for too little.
const (
	tokenSoon       = 14 * 24 * time.Hour
	certificateSoon = 30 * 24 * time.Hour
	littleSpace     = 0.1 // of the disk
)

// deployment looks at what is around the boards: tokens, certificates, the audit log,
// the disk.
type deployment struct {
	host  host.Config
	found func(Finding)

	head   catalog.Head // that was published of the own audit log
	silent bool         // the catalog could not be read
}

func (d *deployment) tell(code string, severity driver.Severity, subject, format string, args ...any) {
	d.found(Finding{Finding: driver.Finding{Code: code, Severity: severity, Subject: subject, Problem: fmt.Sprintf(format, args...)}})
}

// catalog reads the catalog, if there is one; otherwise what it returns is empty.
func (d *deployment) catalog(ctx context.Context) *catalog.View {
	view, settings := catalog.New(nil, catalog.Options{}).View(), &d.host.Config
	name := settings.Catalog
	if name == "" {
		name = directory.CatalogBackend
	}
	c, ok := directory.Directory{Settings: settings, View: view}.Backend(name)
	e := &examination{host: d.host, backend: c, found: d.found}
	if !ok || c.Driver == config.Embedded && (settings.DataDir == "" || existing(e.folder()) == "") {
		return view
	}
	d.silent = true
	e.open(ctx, func(opened driver.Driver, _ driver.Info) {
		reading, cancel := context.WithTimeout(ctx, examinePatience)
		defer cancel()
		docs := opened.Documents()
		read, err := catalog.ReadView(reading, docs, func(err error) {
			e.found(Finding{Backend: name, Finding: driver.Finding{Code: "unreadable-record", Severity: driver.Problem, Subject: "catalog", Problem: plain(err)}})
		})
		if err == nil {
			view, d.silent = read, false
			err = errors.Join(d.readHead(reading, docs), d.remembered(reading, name, docs))
		}
		if err != nil {
			e.backendFinding("catalog-cannot-be-read", err)
		}
	})
	return view
}

// readHead reads what was published of this host's audit log.
func (d *deployment) readHead(ctx context.Context, docs driver.Documents) error {
	id, err := os.ReadFile(filepath.Join(d.host.Config.DataDir, host.IDFile))
	if errors.Is(err, fs.ErrNotExist) { // it has no log yet
		return nil
	}
	if err != nil {
		return err
	}
	d.head, _, err = catalog.New(docs, catalog.Options{}).Head(ctx, strings.TrimSpace(string(id)))
	return err
}

func (d *deployment) run(_ context.Context, view *catalog.View) {
	d.tokens(view)
	d.certificates()
	d.audit()
	d.disk()
}

// tokens looks for those that end soon.
func (d *deployment) tokens(view *catalog.View) {
	var soon []catalog.Token
	for _, t := range view.Tokens.All() {
		if !t.Expires.IsZero() && time.Until(t.Expires) < tokenSoon {
			soon = append(soon, t)
		}
	}
	slices.SortFunc(soon, func(a, b catalog.Token) int { return a.Expires.Compare(b.Expires) })
	for i := range soon {
		t := &soon[i]
		f := driver.Finding{
			Code: "token-expires", Severity: driver.Warning, Subject: t.Tenant + "/" + t.Name,
			Problem: "the token expires at " + t.Expires.UTC().Format(time.RFC3339),
			Mend:    fmt.Sprintf("boardd token create NEWNAME --tenant %s --role %s", t.Tenant, t.Roles[0]),
		}
		if !t.Expires.After(time.Now()) {
			f.Code, f.Severity, f.Problem = "token-expired", driver.Note, "the token expired at "+t.Expires.UTC().Format(time.RFC3339)
			f.Mend = fmt.Sprintf("boardd token revoke %s --tenant %s", t.Name, t.Tenant)
		}
		d.found(Finding{Tenant: t.Tenant, Finding: f})
	}
}

// certificates looks for those that end soon, and those that cannot be read.
func (d *deployment) certificates() {
	t := d.host.Config.TLS
	if t == nil {
		return
	}
	for _, path := range []string{t.CertFile, t.ClientCAFile} {
		if path == "" {
			continue
		}
		list, err := certificatesIn(path)
		if err != nil {
			d.tell("certificate-cannot-be-read", driver.Problem, path, "%v", err)
		}
		for _, c := range list {
			at := c.NotAfter.UTC().Format(time.RFC3339)
			switch left := time.Until(c.NotAfter); {
			case left <= 0:
				d.tell("certificate-expired", driver.Problem, path, "the certificate of %s expired at %s", c.Subject, at)
			case left < certificateSoon:
				d.tell("certificate-expires", driver.Warning, path, "the certificate of %s expires at %s", c.Subject, at)
			}
		}
	}
}

func certificatesIn(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return list, nil
}

// audit checks the audit log of this host.
func (d *deployment) audit() {
	folder := filepath.Join(d.host.Config.DataDir, "audit")
	if d.host.Config.DataDir == "" || existing(folder) == "" {
		return
	}
	key, err := audit.ReadPublic(auditor.KeyFile(&d.host.Config))
	if err != nil {
		d.tell("audit-key", driver.Warning, folder, "nothing tells whether the server wrote the log, since its key cannot be read: %v", err)
	}
	findings, end, err := audit.Verify(folder, key)
	start, startErr := audit.First(folder)
	if err = errors.Join(err, startErr); err != nil {
		findings = append(findings, err.Error())
	}
	if d.silent {
		d.tell("audit-head-unknown", driver.Note, folder, "nothing tells whether the log's tail was cut off, since the catalog cannot be read")
	}
	problem := audit.CheckHead(start, end, audit.Chain{Sequence: d.head.Sequence, Hash: d.head.Hash}, func(n uint64) string { return audit.Hash(folder, n) })
	if problem != "" {
		findings = append(findings, problem)
	}
	for i, problem := range findings {
		if i == MaxFindings {
			d.tell("audit-log", driver.Note, folder, "%d more findings of this sort are not shown", len(findings)-i)
			return
		}
		d.tell("audit-log", driver.Problem, folder, "%s", problem)
	}
}

// disk looks at how much room there is.
func (d *deployment) disk() {
	for _, disk := range host.Disks(&d.host.Config) {
		if disk.Low || float64(disk.Free) < littleSpace*float64(disk.Size) {
			d.tell("disk-nearly-full", driver.Warning, disk.Path, "%d MiB of %d MiB are free", disk.Free>>20, disk.Size>>20)
		}
	}
}

// versions tells which driver it is, and looks for servers of the same store that are
// of another version.
func (e *examination) versions(ctx context.Context, d driver.Driver, info driver.Info) {
	if e.backend.Driver == config.Embedded {
		return
	}
	at := func(code string, severity driver.Severity, problem string) {
		e.found(Finding{Backend: e.backend.Name, Finding: driver.Finding{Code: code, Severity: severity, Subject: "backend " + e.backend.Name, Problem: problem}})
	}
	at("driver-version", driver.Note, fmt.Sprintf("its driver is %s %s", info.Name, info.Version))
	reading, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	hosts, err := catalog.Hosts(reading, d.Documents())
	if err != nil {
		at("servers-unknown", driver.Problem, "it cannot be read which servers live: "+plain(err))
		return
	}
	for _, h := range hosts {
		if h.Version != e.host.Version {
			at("mixed-versions", driver.Warning, fmt.Sprintf("the server %s is boardd %s, and this is %s: restart it with this version", h.ID, h.Version, e.host.Version))
		}
	}
}

// remembered compares a catalog with what a server that is not running knew of it.
func (d *deployment) remembered(ctx context.Context, name string, docs driver.Documents) error {
	doubt, err := catalog.Compare(ctx, docs, acknowledged.CatalogFolder(d.host.Config.DataDir), d.host.Logger)
	if err == nil && doubt != nil {
		d.found(Finding{Backend: name, Finding: driver.Finding{
			Code: "catalog-in-doubt", Severity: driver.Problem, Subject: "catalog", Problem: doubt.String() + "; a server serves what it knows, and changes nothing",
			Mend: "boardd catalog export | boardd catalog import -, or boardd catalog accept",
		}})
	}
	return err
}
