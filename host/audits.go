package host

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// maxRefusals is how many refusals a second have a record of their own. Those
// that follow are counted in one.
const maxRefusals = 20

// auditor keeps the host's audit log, if it has a data folder. A nil one keeps
// none.
type auditor struct {
	key     *audit.Key                // what the log is signed with
	log     atomic.Pointer[audit.Log] // nil as long as another server has it
	running sync.WaitGroup

	witnessed map[string]uint64 // the last heads of other servers in the log, by their ids; of publish

	mu      sync.Mutex
	second  int64
	count   int
	skipped int64 // refusals of this second without a record
}

func (h *Host) openAudit() error {
	if h.Settings().DataDir == "" {
		return nil
	}
	key, err := audit.OpenKey(auditKeyFile(h.Settings()))
	if err != nil {
		return err
	}
	h.audit = &auditor{key: key}
	if err := h.audit.open(h); job.KindOf(err) != job.Unavailable {
		return err
	}
	return nil // another server with this folder: it is waited for
}

// auditKeyFile is where the key of the audit log is.
func auditKeyFile(c *config.Config) string {
	if c.Audit.KeyFile != "" {
		return c.Audit.KeyFile
	}
	return audit.KeyFile(c.DataDir)
}

func (a *auditor) open(h *Host) error {
	c := h.Settings()
	log, err := audit.Open(audit.Options{
		Folder: filepath.Join(c.DataDir, "audit"), Host: h.id, Key: a.key, Keep: c.Audit.Keep, MaxBytes: c.Audit.MaxBytes, Logger: h.logger,
	})
	if err == nil {
		a.log.Store(log)
	}
	return err
}

// begin waits for the log, if another server has it, and lets its head be
// published.
func (a *auditor) begin(h *Host) {
	if a == nil {
		return
	}
	a.running.Go(func() {
		for said := false; a.log.Load() == nil; said = true {
			if err := a.open(h); err != nil && !said {
				h.logger.Error("nothing can be changed as long as the audit log cannot be written", "error", err)
			}
			if a.log.Load() == nil && sleep.For(h.running, openAuditEvery) != nil {
				return
			}
		}
		a.publish(h.running, h)
	})
}

const openAuditEvery = time.Second

// opened returns the log.
func (a *auditor) opened() (*audit.Log, error) {
	if log := a.log.Load(); log != nil {
		return log, nil
	}
	return nil, job.Errorf(job.Unavailable, "the audit log is in use by another server, and nothing is changed without it")
}

func (a *auditor) close(h *Host) error {
	if a == nil {
		return nil
	}
	a.running.Wait()
	log := a.log.Load()
	if log == nil {
		return nil
	}
	err := errors.Join(a.flush(0), log.Close())
	if c := h.catalog.open(); c != nil && c.Current() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), publishWithin)
		defer cancel()
		a.publishHead(ctx, h, c)
	}
	return err
}

// Record puts a record into the audit log. A change that an admin made, and a
// refusal, is there when Record returns; what was done to jobs soon after. The
// error is for whoever asked: without its record nothing was done properly.
func (h *Host) Record(r audit.Record, soon bool) error {
	if h.audit == nil {
		return nil
	}
	log, err := h.audit.opened()
	switch {
	case err != nil:
		return err
	case soon:
		return log.Note(r)
	}
	return log.Append(r)
}

// CanRecord returns nil if changes can be put into the audit log. Without that,
// none is to be made.
func (h *Host) CanRecord() error {
	if h.audit == nil {
		return nil
	}
	log, err := h.audit.opened()
	if err != nil {
		return err
	}
	return log.Writable()
}

// Refused puts a refusal into the audit log: the first ones of each second one by
// one, the rest as a number.
func (h *Host) Refused(r audit.Record) error {
	a := h.audit
	if a == nil {
		return nil
	}
	if err := a.flush(time.Now().Unix()); err != nil {
		return err
	}
	a.mu.Lock()
	a.count++
	over := a.count > maxRefusals
	if over {
		a.skipped++
	}
	a.mu.Unlock()
	if over {
		return nil
	}
	log, err := a.opened()
	if err != nil {
		return err
	}
	return log.Append(r)
}

// flush begins another second, and puts how many refusals of the one before had
// no record into one.
func (a *auditor) flush(second int64) error {
	a.mu.Lock()
	skipped := a.skipped
	if a.second == second {
		skipped = 0
	} else {
		a.second, a.count, a.skipped = second, 0, 0
	}
	a.mu.Unlock()
	log := a.log.Load()
	if skipped == 0 || log == nil {
		return nil
	}
	return log.Note(audit.Record{Call: "Refused", Result: "refused", Repeated: skipped})
}

// Caller fills in who a record's caller is. What somebody tried with another
// tenant stays in the records of his own: the other one must not learn of him.
func (s *Session) Caller(r *audit.Record) {
	r.Caller, r.CallerTenant = s.principal.TokenName, s.principal.Home()
	if s.principal.Visits() {
		r.Tenant = s.principal.Tenant
		return
	}
	if r.Tenant != "" && r.Tenant != r.CallerTenant && !s.principal.Has(tenant.Operator) {
		r.Name, r.Tenant = strings.TrimSpace(r.Name+" of tenant "+r.Tenant), ""
	}
	if r.Tenant == "" {
		r.Tenant = r.CallerTenant
	}
}

// RefusedLogin puts into the audit log that somebody was not let in.
func (h *Host) RefusedLogin(call, remote string, err error) error {
	return h.Refused(audit.Record{Call: call, Remote: remote, Result: strings.ToLower(job.KindOf(err).String())})
}

// AuditQuery asks for records.
type AuditQuery struct {
	Tenant       string // whose; empty: the caller's
	All          bool   // of every tenant, and of none
	After        uint64 // a record's number; without All, a Next
	Max          int
	Routine      bool   // RecentAudit: also what posters and workers do all day, where it was let
	About        string // RecentAudit: only records whose call, board, name, caller or result holds this text; empty: all
	Since, Until time.Time
}

// Limits on AuditQuery.
const (
	MaxAuditPage     = 1000 // records of one call
	defaultAuditPage = 100
	maxAuditScan     = 200_000 // records that one call looks at
)

// AuditPage is a part of this host's audit log.
type AuditPage struct {
	Records []audit.Record
	Flaws   []audit.Flaw  // with All: lines among these records that cannot be read
	Next    uint64        // where to go on; 0: that was all
	Head    *catalog.Head // with All: what was last published of this host's log, and the key that it is signed with
}

// Audit returns records of this host, oldest first. Without All they are without
// their places in the chain, and Next is a number that only this host can read: a
// tenant does not learn from them how much others do.
func (s *Session) Audit(ctx context.Context, q AuditQuery) (AuditPage, error) {
	var page AuditPage
	of, err := s.principal.CheckAdmin("GetAudit", q.Tenant, "")
	if err != nil {
		return page, err
	}
	if q.All && !s.principal.Has(tenant.Operator) {
		return page, job.Errorf(job.PermissionDenied, "all: only an operator sees the records of every tenant")
	}
	if q.Max < 0 || q.Max > MaxAuditPage {
		return page, job.Errorf(job.Invalid, "max: want 1 to %d, or 0 for %d, got %d", MaxAuditPage, defaultAuditPage, q.Max)
	}
	if q.Max == 0 {
		q.Max = defaultAuditPage
	}
	a := s.host.audit
	if a == nil {
		return page, job.Errorf(job.Precondition, "this server keeps no audit log: set data_dir in its configuration")
	}
	log, err := a.opened()
	if err != nil {
		return page, err
	}
	if c := s.host.catalog.open(); c != nil && q.All {
		if head, ok, err := c.Head(ctx, s.host.id); err == nil && ok {
			page.Head = &head
		}
	}
	if page.Head == nil && q.All { // nothing was published, and the key is known all the same
		page.Head = &catalog.Head{Host: s.host.id}
	}
	if q.All {
		page.Head.Key = a.key.Public().String()
	}
	hidden := a.hidden(q.All)
	looked, last := 0, log.Head().Sequence // what is after it may be only partly written
	page.Flaws, err = log.Read(hidden.read(q.After), func(r *audit.Record) bool {
		looked++
		if r.Sequence > last || ctx.Err() != nil {
			return false
		}
		if len(page.Records) == q.Max || looked > maxAuditScan {
			page.Next = hidden.write(r.Sequence - 1)
			return false
		}
		if (q.All || r.Tenant == of) && !r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) {
			page.Records = append(page.Records, hidden.record(r))
		}
		return true
	})
	if !q.All {
		page.Flaws = nil
	}
	return page, errors.Join(err, ctx.Err())
}

// Unless returns why the caller may not make a call, and otherwise err: what is
// wrong with a request is told to nobody who may not make it.
func (s *Session) Unless(call string, err error) error {
	if denied := s.principal.Check(call, ""); denied != nil {
		return denied
	}
	return err
}
