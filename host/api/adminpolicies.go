package api

import (
	"context"

	"connectrpc.com/connect"

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
func (*adminService) PutPolicy(ctx context.Context, r *connect.Request[boarddv1.PutPolicyRequest]) (*connect.Response[boarddv1.PutPolicyResponse], error) {
	session, err := sessionOf(ctx)
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
func (*adminService) ListPolicies(ctx context.Context, r *connect.Request[boarddv1.ListPoliciesRequest]) (*connect.Response[boarddv1.ListPoliciesResponse], error) {
	session, err := sessionOf(ctx)
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
func (*adminService) DeletePolicy(ctx context.Context, r *connect.Request[boarddv1.DeletePolicyRequest]) (*connect.Response[boarddv1.DeletePolicyResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.DeletePolicy(ctx, r.Msg.GetTenant(), r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeletePolicyResponse{})
}

// policyCall is a request of a call that runs a policy on a board.
type policyCall interface {
	GetTenant() string
	GetBoard() string
}

// runPolicy answers the calls that need policies to be run.
func runPolicy[Answer any](ctx context.Context, call string, r policyCall) (*connect.Response[Answer], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	return nil, session.RunPolicy(call, r.GetTenant(), r.GetBoard())
}

// SimulatePolicy is not there yet.
func (*adminService) SimulatePolicy(ctx context.Context, r *connect.Request[boarddv1.SimulatePolicyRequest]) (*connect.Response[boarddv1.SimulatePolicyResponse], error) {
	return runPolicy[boarddv1.SimulatePolicyResponse](ctx, "SimulatePolicy", r.Msg)
}

// ShadowPolicy is not there yet.
func (*adminService) ShadowPolicy(ctx context.Context, r *connect.Request[boarddv1.ShadowPolicyRequest]) (*connect.Response[boarddv1.ShadowPolicyResponse], error) {
	return runPolicy[boarddv1.ShadowPolicyResponse](ctx, "ShadowPolicy", r.Msg)
}

// PromotePolicy is not there yet.
func (*adminService) PromotePolicy(ctx context.Context, r *connect.Request[boarddv1.PromotePolicyRequest]) (*connect.Response[boarddv1.PromotePolicyResponse], error) {
	return runPolicy[boarddv1.PromotePolicyResponse](ctx, "PromotePolicy", r.Msg)
}

// RollbackPolicy is not there yet.
func (*adminService) RollbackPolicy(ctx context.Context, r *connect.Request[boarddv1.RollbackPolicyRequest]) (*connect.Response[boarddv1.RollbackPolicyResponse], error) {
	return runPolicy[boarddv1.RollbackPolicyResponse](ctx, "RollbackPolicy", r.Msg)
}
