package host

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// maxRecentScan is how many records back RecentAudit looks at once.
const maxRecentScan = 20_000

// wants reports whether a record is one of those that RecentAudit is asked for.
func (q *AuditQuery) wants(r *audit.Record) bool {
	if !q.Routine && r.Result == "ok" && r.CallerTenant == r.Tenant && tenant.Routine(r.Call) {
		return false
	}
	holds := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(q.About)) }
	return q.About == "" || slices.ContainsFunc([]string{r.Call, r.Board, r.Name, r.Caller, r.Result}, holds)
}

// RecentAudit returns records of this host before a sequence number (0: the last
// ones), newest first, and before which one to go on; 0: there are no more. Where
// the tenant has few among many, a page may have none and still not be the last. What
// a tenant does not learn is as with Audit.
func (s *Session) RecentAudit(ctx context.Context, q AuditQuery, before uint64) ([]audit.Record, uint64, error) {
	of, err := s.principal.CheckAdmin("GetAudit", q.Tenant, "")
	if err != nil {
		return nil, 0, err
	}
	a := s.host.audit
	switch {
	case q.All && !s.principal.Has(tenant.Operator):
		return nil, 0, job.Errorf(job.PermissionDenied, "all: only an operator sees the records of every tenant")
	case q.Max < 1 || q.Max > MaxAuditPage:
		return nil, 0, job.Errorf(job.Invalid, "max: want 1 to %d, got %d", MaxAuditPage, q.Max)
	case a == nil:
		return nil, 0, job.Errorf(job.Precondition, "this server keeps no audit log: set data_dir in its configuration")
	}
	log, err := a.opened()
	if err != nil {
		return nil, 0, err
	}
	start, err := audit.First(log.Folder)
	if err != nil {
		return nil, 0, err
	}
	hidden := a.hidden(q.All)
	end := log.Head().Sequence
	if before > 0 {
		end = min(end, max(hidden.read(before), 1)-1)
	}
	from := end - min(end, maxRecentScan)
	var records []audit.Record
	_, err = log.Read(from, func(r *audit.Record) bool {
		if r.Sequence > end || ctx.Err() != nil {
			return false
		}
		if (q.All || r.Tenant == of) && q.wants(r) {
			if records = append(records, *r); len(records) >= 2*q.Max {
				records = append(records[:0], records[len(records)-q.Max:]...)
			}
		}
		return true
	})
	if over := len(records) - q.Max; over > 0 {
		records = records[over:]
	}
	next := from + 1
	if len(records) == q.Max {
		next = records[0].Sequence
	}
	if next <= start.Sequence+1 {
		next = 0
	} else {
		next = hidden.write(next)
	}
	slices.Reverse(records)
	for i := range records {
		records[i] = hidden.record(&records[i])
	}
	return records, next, err
}
