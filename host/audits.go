package host

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// publishEvery is how often the head of the audit log is put into the catalog,
// where whoever cuts off the log's tail does not reach.
const publishEvery = time.Minute

// maxRefusals is how many refusals a second have a record of their own. Those
// that follow are counted in one.
const maxRefusals = 20

// auditor keeps the host's audit log, if it has a data folder. A nil one keeps
// none.
type auditor struct {
	log     *audit.Log
	running sync.WaitGroup

	mu      sync.Mutex
	second  int64
	count   int
	skipped int64 // refusals of this second without a record
}

func (h *Host) openAudit() error {
	dir := h.Settings().DataDir
	if dir == "" {
		return nil
	}
	folder := filepath.Join(dir, "audit")
	log, err := audit.Open(folder, h.id, h.logger)
	if err != nil {
		return err
	}
	h.audit = &auditor{log: log}
	return nil
}

// begin lets the log's head be published.
func (a *auditor) begin(h *Host) {
	if a != nil {
		a.running.Go(func() { a.publish(h.running, h) })
	}
}

// publish compares the log with its last published head, and then publishes it
// now and then.
func (a *auditor) publish(ctx context.Context, h *Host) {
	for compared := false; ; {
		if c := h.catalog.open(); c != nil && c.Current() == nil {
			if !compared {
				compared = a.compare(ctx, h, c) == nil
			}
			a.publishHead(ctx, h, c)
		}
		if err := a.flush(time.Now().Unix()); err != nil {
			h.logger.Warn("refusals could not be counted in the audit log", "error", err)
		}
		wait := publishEvery
		if !compared {
			wait = time.Second
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
	}
}

func (a *auditor) publishHead(ctx context.Context, h *Host, c *catalog.Catalog) {
	head := a.log.Head()
	if head.Sequence == 0 {
		return
	}
	err := c.PublishHead(ctx, catalog.Head{Host: h.id, Sequence: head.Sequence, Hash: head.Hash, At: time.Now().UTC()})
	if err != nil && ctx.Err() == nil {
		h.logger.Warn("the head of the audit log could not be published", "error", err)
	}
}

// compare finds out whether the log lost its tail while the host was away.
func (a *auditor) compare(ctx context.Context, h *Host, c *catalog.Catalog) error {
	head, ok, err := c.Head(ctx, h.id)
	if err != nil || !ok {
		return err
	}
	if problem := a.against(head); problem != "" {
		h.logger.Error("the audit log was changed while the server was away", "problem", problem)
		return a.log.Append(audit.Record{Call: "AuditTampered", Result: problem})
	}
	return nil
}

func (a *auditor) against(head catalog.Head) string {
	end := a.log.Head()
	at := func(n uint64) (hash string) {
		_ = a.log.Read(n-1, func(r *audit.Record) bool { // what cannot be read has no hash
			hash = r.Hash
			return false
		})
		return hash
	}
	return audit.CheckHead(end, audit.Chain{Sequence: head.Sequence, Hash: head.Hash}, at)
}

func (a *auditor) close() error {
	if a == nil {
		return nil
	}
	a.running.Wait()
	return errors.Join(a.flush(0), a.log.Close())
}

// Record puts a record into the audit log. A change that an admin made, and a
// refusal, is there when Record returns; what was done to jobs soon after. The
// error is for whoever asked: without its record nothing was done properly.
func (h *Host) Record(r audit.Record, soon bool) error {
	switch {
	case h.audit == nil:
		return nil
	case soon:
		return h.audit.log.Note(r)
	}
	return h.audit.log.Append(r)
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
	return a.log.Append(r)
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
	if skipped == 0 {
		return nil
	}
	return a.log.Note(audit.Record{Call: "Refused", Result: "refused", Repeated: skipped})
}

// Caller fills in who a record's caller is. What somebody tried with another
// tenant stays in the records of his own: the other one must not learn of him.
func (s *Session) Caller(r *audit.Record) {
	r.Caller, r.CallerTenant = s.principal.TokenName, s.principal.Tenant
	if r.Tenant != "" && r.Tenant != r.CallerTenant && !s.principal.Has(tenant.Operator) {
		r.Name, r.Tenant = strings.TrimSpace(r.Name+" of tenant "+r.Tenant), ""
	}
	if r.Tenant == "" {
		r.Tenant = r.CallerTenant
	}
}

// Did puts into the audit log what somebody did to a board in another way than by
// a call of the API. err is how that ended as a whole.
func (s *Session) Did(call, board, remote string, items, failed int, err error) error {
	r := audit.Record{Call: call, Board: board, Remote: remote, Items: int64(items), Failed: int64(failed), Result: "ok"}
	s.Caller(&r)
	if err != nil {
		r.Result = strings.ToLower(job.KindOf(err).String())
	}
	if kind := job.KindOf(err); kind == job.PermissionDenied || kind == job.Unauthenticated {
		return s.host.Refused(r)
	}
	return s.host.Record(r, false)
}

// RefusedLogin puts into the audit log that somebody was not let in.
func (h *Host) RefusedLogin(call, remote string, err error) error {
	return h.Refused(audit.Record{Call: call, Remote: remote, Result: strings.ToLower(job.KindOf(err).String())})
}

// AuditQuery asks for records.
type AuditQuery struct {
	Tenant       string // whose; empty: the caller's
	All          bool   // of every tenant, and of none
	After        uint64
	Max          int
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
	Next    uint64        // where to go on; 0: that was all
	Head    *catalog.Head // what was last published of this host's log
}

// Audit returns records of this host, oldest first.
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
	if c := s.host.catalog.open(); c != nil && q.All {
		if head, ok, err := c.Head(ctx, s.host.id); err == nil && ok {
			page.Head = &head
		}
	}
	looked := 0
	err = a.log.Read(q.After, func(r *audit.Record) bool {
		looked++
		if (len(page.Records) == q.Max || looked > maxAuditScan) || ctx.Err() != nil {
			page.Next = r.Sequence - 1
			return false
		}
		if (q.All || r.Tenant == of) && !r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) {
			page.Records = append(page.Records, *r)
		}
		return true
	})
	return page, err
}

// Unless returns why the caller may not make a call, and otherwise err: what is
// wrong with a request is told to nobody who may not make it.
func (s *Session) Unless(call string, err error) error {
	if denied := s.principal.Check(call, ""); denied != nil {
		return denied
	}
	return err
}
