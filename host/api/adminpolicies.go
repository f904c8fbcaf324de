package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/catalog"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

func toPolicy(p catalog.Policy) *boarddv1.Policy {
	answer := &boarddv1.Policy{Tenant: p.Tenant, Name: p.Name}
	for _, v := range p.Versions {
		answer.Versions = append(answer.Versions, &boarddv1.PolicyVersion{
			Digest: v.Digest, Size: int64(v.Size), CreatedAt: toTime(v.Made), CreatedBy: v.By,
		})
	}
	if len(p.Versions) > 0 {
		answer.Digest = p.Versions[0].Digest
	}
	return answer
}

// PutPolicy keeps a module as the newest version of a policy.
func (a *adminService) PutPolicy(ctx context.Context, r *connect.Request[boarddv1.PutPolicyRequest]) (*connect.Response[boarddv1.PutPolicyResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	p, err := session.PutPolicy(ctx, r.Msg.GetTenant(), r.Msg.GetName(), r.Msg.GetModule())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PutPolicyResponse{Policy: toPolicy(p)})
}

// ListPolicies gives a tenant's policies.
func (a *adminService) ListPolicies(ctx context.Context, r *connect.Request[boarddv1.ListPoliciesRequest]) (*connect.Response[boarddv1.ListPoliciesResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	list, err := session.Policies(r.Msg.GetTenant())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListPoliciesResponse{}
	for _, p := range list {
		response.Policies = append(response.Policies, toPolicy(p))
	}
	return answer(response)
}

// DeletePolicy takes a policy away.
func (a *adminService) DeletePolicy(ctx context.Context, r *connect.Request[boarddv1.DeletePolicyRequest]) (*connect.Response[boarddv1.DeletePolicyResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.DeletePolicy(ctx, r.Msg.GetTenant(), r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeletePolicyResponse{})
}

// ShadowPolicy asks a policy beside the others and tells how they disagree.
func (a *adminService) ShadowPolicy(ctx context.Context, r *connect.Request[boarddv1.ShadowPolicyRequest]) (*connect.Response[boarddv1.ShadowPolicyResponse], error) {
	session, p, err := a.promoting(ctx, "ShadowPolicy", r.Msg, r.Msg.GetParams())
	if err != nil {
		return nil, err
	}
	report, err := session.Shadow(ctx, p, r.Msg.GetStop())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ShadowPolicyResponse{
		Policy: report.Policy, Judged: report.Judged, Denies: report.Denies, Allows: report.Allows,
		Pairs: report.Pairs, Swaps: report.Swaps, Errors: report.Errors,
	}
	for _, d := range report.Examples {
		response.Examples = append(response.Examples, &boarddv1.Disagreement{Uuid: d.Job.String(), Active: d.Active, Shadow: d.Shadow})
	}
	return answer(response)
}

// promotionRequest is a request that names a version of a policy for a board.
type promotionRequest interface {
	GetTenant() string
	GetBoard() string
	GetName() string
	GetDigest() string
}

// promoting returns who makes a call, and what they want of which board.
func (a *adminService) promoting(ctx context.Context, call string, r promotionRequest, params []byte) (session *admin.Session, p admin.Promotion, err error) {
	if session, err = a.session(ctx); err != nil {
		return nil, p, err
	}
	p = admin.Promotion{Tenant: r.GetTenant(), Board: r.GetBoard(), Name: r.GetName(), Digest: r.GetDigest()}
	if p.Params, err = admin.ParseParams(params); err != nil {
		err = session.Unless(call, err)
	}
	return session, p, err
}

func toBoardPolicies(d catalog.Deployment) []*boarddv1.BoardPolicy {
	list := []*boarddv1.BoardPolicy{}
	for _, x := range d.Policies {
		p := &boarddv1.BoardPolicy{
			Name: x.Name, Digest: x.Releases[0].Digest, Params: x.Releases[0].Params, Eligibility: x.Eligibility, Ordering: x.Ordering,
		}
		for _, r := range x.Releases[1:] {
			p.Earlier = append(p.Earlier, r.Digest)
		}
		list = append(list, p)
	}
	return list
}

// PromotePolicy has a board ask a version of a policy.
func (a *adminService) PromotePolicy(ctx context.Context, r *connect.Request[boarddv1.PromotePolicyRequest]) (*connect.Response[boarddv1.PromotePolicyResponse], error) {
	session, p, err := a.promoting(ctx, "PromotePolicy", r.Msg, r.Msg.GetParams())
	if err != nil {
		return nil, err
	}
	p.OnError = r.Msg.GetOnError()
	d, err := session.Promote(ctx, p)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PromotePolicyResponse{Policies: toBoardPolicies(d)})
}

// RollbackPolicy has a board ask the version before, or none.
func (a *adminService) RollbackPolicy(ctx context.Context, r *connect.Request[boarddv1.RollbackPolicyRequest]) (*connect.Response[boarddv1.RollbackPolicyResponse], error) {
	session, p, err := a.promoting(ctx, "RollbackPolicy", r.Msg, nil)
	if err != nil {
		return nil, err
	}
	d, err := session.Rollback(ctx, p)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.RollbackPolicyResponse{Policies: toBoardPolicies(d)})
}
