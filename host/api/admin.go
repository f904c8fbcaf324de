package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// adminService answers the calls of AdminService, each of which is one method of
// the caller's session.
type adminService struct {
	host     *host.Host
	stopping <-chan struct{} // closed when the server stops
	passing  *passing        // nil: every call is made here
}

// session returns the caller's.
func (a *adminService) session(ctx context.Context) (*admin.Session, error) {
	s, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	return admin.Of(a.host, s), nil
}

var _ boarddv1connect.AdminServiceHandler = (*adminService)(nil)

// toLimits is nil for no limits.
func toLimits(l config.Limits) map[string]int64 {
	var m map[string]int64
	for _, limit := range l.Each() {
		if *limit.Value != 0 {
			if m == nil {
				m = map[string]int64{}
			}
			m[limit.Name] = *limit.Value
		}
	}
	return m
}

// fromVersion reads a version, of which 0 is any.
func fromVersion(path string, v int64) (uint64, error) {
	if v < 0 {
		return 0, invalid(path, "want the version that an answer had, or 0 for any, got %d", v)
	}
	return uint64(v), nil
}

func toTenant(t directory.Tenant) *boarddv1.Tenant {
	return &boarddv1.Tenant{
		Name: t.Name, Limits: toLimits(t.Limits), Declared: t.Declared, Version: toInt64(t.Shown()),
		CreatedAt: toTime(t.Made), Deleted: !t.Deleted.IsZero(),
	}
}

// CreateTenant makes a tenant.
func (a *adminService) CreateTenant(ctx context.Context, r *connect.Request[boarddv1.CreateTenantRequest]) (*connect.Response[boarddv1.CreateTenantResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := admin.ParseLimits(r.Msg.GetLimits())
	if err != nil {
		return nil, session.Unless("CreateTenant", err)
	}
	t, err := session.CreateTenant(ctx, r.Msg.GetName(), limits)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.CreateTenantResponse{Tenant: toTenant(t)})
}

// ListTenants gives the tenants that the caller may know of.
func (a *adminService) ListTenants(ctx context.Context, r *connect.Request[boarddv1.ListTenantsRequest]) (*connect.Response[boarddv1.ListTenantsResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf("tenants", r.Msg.GetPageSize())
	if err != nil {
		return nil, session.Unless("ListTenants", err)
	}
	list, err := session.Tenants(r.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	entries, next, err := entriesOf(part, list, toTenant, func(t directory.Tenant) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ListTenantsResponse{Tenants: entries, NextPageToken: next})
}

// UpdateTenant changes those limits of a tenant that the request names.
func (a *adminService) UpdateTenant(ctx context.Context, r *connect.Request[boarddv1.UpdateTenantRequest]) (*connect.Response[boarddv1.UpdateTenantResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	version, err := fromVersion("version", r.Msg.GetVersion())
	var named mask
	if err == nil {
		named, err = readMask(r.Msg.GetUpdateMask(), []string{limitsField})
	}
	if err == nil {
		err = named.limits(r.Msg.GetLimits(), &config.Limits{})
	}
	if err != nil {
		return nil, session.Unless("UpdateTenant", err)
	}
	before, t, err := session.UpdateTenant(ctx, r.Msg.GetName(), version, func(l *config.Limits) error { return named.limits(r.Msg.GetLimits(), l) })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.UpdateTenantResponse{Tenant: toTenant(t), Before: toTenant(before)})
}

// DeleteTenant ends a tenant.
func (a *adminService) DeleteTenant(ctx context.Context, r *connect.Request[boarddv1.DeleteTenantRequest]) (*connect.Response[boarddv1.DeleteTenantResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	version, err := fromVersion("version", r.Msg.GetVersion())
	if err != nil {
		return nil, session.Unless("DeleteTenant", err)
	}
	if err := session.DeleteTenant(ctx, r.Msg.GetName(), version, r.Msg.GetPurge()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeleteTenantResponse{})
}

// ListBackends gives the stores on which a tenant may have boards.
func (a *adminService) ListBackends(ctx context.Context, r *connect.Request[boarddv1.ListBackendsRequest]) (*connect.Response[boarddv1.ListBackendsResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	list, err := session.ListBackends(ctx, r.Msg.GetTenant())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListBackendsResponse{}
	for _, b := range list {
		response.Backends = append(response.Backends, &boarddv1.Backend{
			Name: b.Name, Driver: b.Driver, Tenants: b.Tenants, Ready: b.Ready, Problem: clean(b.Problem), Restarts: b.Restarts,
			UsedBytes: knownBytes(b.Used), LimitBytes: knownBytes(b.Limit),
		})
	}
	return answer(response)
}

// knownBytes is a size that is absent where it is not known.
func knownBytes(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// ListPlaces gives which board lies where in a backend's store.
func (a *adminService) ListPlaces(ctx context.Context, r *connect.Request[boarddv1.ListPlacesRequest]) (*connect.Response[boarddv1.ListPlacesResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf("places", r.Msg.GetPageSize())
	if err != nil {
		return nil, session.Unless("ListPlaces", err)
	}
	list, err := session.ListPlaces(ctx, r.Msg.GetName(), r.Msg.GetPageToken(), part.limit())
	if err != nil {
		return nil, err
	}
	if part.most == 0 {
		slices.SortFunc(list, func(a, b host.PlaceInfo) int { return strings.Compare(a.Location, b.Location) })
	}
	entries, next, err := entriesOf(part, slices.Values(list), toPlace, func(p host.PlaceInfo) string { return p.Key })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ListPlacesResponse{Places: entries, NextPageToken: next})
}

// ReleasePlace frees a place in a backend's store.
func (a *adminService) ReleasePlace(ctx context.Context, r *connect.Request[boarddv1.ReleasePlaceRequest]) (*connect.Response[boarddv1.ReleasePlaceResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	place, err := session.ReleasePlace(ctx, r.Msg.GetName(), r.Msg.GetPlace(), r.Msg.GetForce())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ReleasePlaceResponse{Place: toPlace(place)})
}

func toPlace(p host.PlaceInfo) *boarddv1.Place {
	return &boarddv1.Place{Place: clean(p.Location), Tenant: p.Tenant, Board: p.Board, Servers: p.Servers}
}

// ReloadConfig reads the configuration anew.
func (a *adminService) ReloadConfig(ctx context.Context, _ *connect.Request[boarddv1.ReloadConfigRequest]) (*connect.Response[boarddv1.ReloadConfigResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := session.Reload(ctx)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ReloadConfigResponse{Changes: changes})
}

// GetAudit gives records of the audit log.
func (a *adminService) GetAudit(ctx context.Context, r *connect.Request[boarddv1.GetAuditRequest]) (*connect.Response[boarddv1.GetAuditResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	q := auditor.Query{Tenant: r.Msg.GetTenant(), All: r.Msg.GetAll(), Max: int(r.Msg.GetMax())}
	if q.After, err = fromVersion("after", r.Msg.GetAfter()); err != nil {
		return nil, session.Unless("GetAudit", err)
	}
	if q.Since, err = fromTime("since", r.Msg.GetSince(), r.Msg.Since != nil); err != nil {
		return nil, session.Unless("GetAudit", err)
	}
	if q.Until, err = fromTime("until", r.Msg.GetUntil(), r.Msg.Until != nil); err != nil {
		return nil, session.Unless("GetAudit", err)
	}
	page, err := session.Audit(ctx, q)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.GetAuditResponse{Next: toInt64(page.Next)}
	for i := range page.Records {
		response.Records = append(response.Records, toAuditRecord(&page.Records[i]))
	}
	for _, flaw := range page.Flaws {
		response.Flaws = append(response.Flaws, &boarddv1.AuditFlaw{File: flaw.File, Line: toInt64(uint64(flaw.Line)), After: toInt64(flaw.After), Reason: flaw.Reason})
	}
	if head := page.Head; head != nil {
		response.Head = &boarddv1.AuditHead{Host: head.Host, Sequence: toInt64(head.Sequence), Hash: head.Hash, Key: head.Key}
		if !head.At.IsZero() {
			response.Head.At = toTime(head.At)
		}
	}
	return answer(response)
}

func toAuditRecord(r *audit.Record) *boarddv1.AuditRecord {
	return &boarddv1.AuditRecord{
		Sequence: toInt64(r.Sequence), At: toTime(r.At), Host: r.Host, Call: r.Call, Tenant: r.Tenant, Board: r.Board, Name: r.Name,
		CallerTenant: r.CallerTenant, Caller: r.Caller, Remote: r.Remote, Request: r.Request, Result: r.Result,
		Items: r.Items, Failed: r.Failed, Repeated: r.Repeated, Previous: r.Previous, Hash: r.Hash, Signature: r.Signature,
	}
}

// fromTime reads a time that may be absent.
func fromTime(path string, t *timestamppb.Timestamp, given bool) (time.Time, error) {
	if !given {
		return time.Time{}, nil
	}
	if t.CheckValid() != nil {
		return time.Time{}, invalid(path, "want a time from the year 1 to 9999")
	}
	return t.AsTime(), nil
}
