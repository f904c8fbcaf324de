package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// Audit returns records of this host, oldest first, as auditor.Page does. An empty
// tenant is the caller's.
func (s *Session) Audit(ctx context.Context, q auditor.Query) (auditor.Page, error) {
	if err := s.mayAudit(&q); err != nil {
		return auditor.Page{}, err
	}
	return s.host.Auditor().Page(ctx, q)
}

// RecentAudit returns records of this host, newest first, as auditor.Recent does.
func (s *Session) RecentAudit(ctx context.Context, q auditor.Query, before uint64) ([]audit.Record, uint64, error) {
	if err := s.mayAudit(&q); err != nil {
		return nil, 0, err
	}
	return s.host.Auditor().Recent(ctx, q, before)
}

// mayAudit refuses callers that may not read the records, and fills in the tenant.
func (s *Session) mayAudit(q *auditor.Query) (err error) {
	if q.Tenant, err = s.principal.CheckAdmin("GetAudit", q.Tenant, ""); err != nil {
		return err
	}
	if q.All && !s.principal.Has(tenant.Operator) {
		return job.Errorf(job.PermissionDenied, "all: only an operator sees the records of every tenant")
	}
	return nil
}

// Deed is what somebody did, or tried, in another way than by a call of the API.
type Deed struct {
	Call   string // that does the same
	Tenant string // whose things it was about; empty: the caller's
	Board  string
	Name   string // of the token, tenant or policy that it was about
	Remote string
	Items  int // jobs, of which Failed were left as they are
	Failed int
}

// Did puts a deed into the audit log. err is how it ended as a whole.
func (s *Session) Did(d Deed, err error) error {
	r := audit.Record{
		Call: d.Call, Tenant: d.Tenant, Board: d.Board, Name: d.Name, Remote: d.Remote,
		Items: int64(d.Items), Failed: int64(d.Failed), Result: "ok",
	}
	s.Caller(&r)
	if err != nil {
		r.Result = strings.ToLower(job.KindOf(err).String())
	}
	if kind := job.KindOf(err); kind == job.PermissionDenied || kind == job.Unauthenticated {
		return s.host.Auditor().Refused(r)
	}
	return s.host.Auditor().Record(r, false)
}

// MayAdminister reports whether the session may make a call of AdminService about
// its own tenant, and there about a board if one is named.
func (s *Session) MayAdminister(call, board string) bool {
	if s.Holds() != nil {
		return false
	}
	_, err := s.principal.CheckAdmin(call, "", board)
	return err == nil
}

// Grants returns the roles that the session may give a token.
func (s *Session) Grants() []tenant.Role {
	return slices.DeleteFunc(tenant.Roles(), func(r tenant.Role) bool { return s.principal.MayGrant([]tenant.Role{r}) != nil })
}
