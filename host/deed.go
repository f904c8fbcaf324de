package host

import (
	"slices"
	"strings"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

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
		return s.host.Refused(r)
	}
	return s.host.Record(r, false)
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
