package tenant

import "time"

// Passed is a principal as one server tells another one of it, with the call that it
// passes on.
type Passed struct {
	Tenant    string    `json:"tenant"`
	TokenName string    `json:"token"`
	TokenID   string    `json:"token_id,omitempty"`
	Roles     []Role    `json:"roles"`
	Boards    []string  `json:"boards,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Issuer    string    `json:"issuer,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	TenantID  string    `json:"tenant_id,omitempty"`
	Home      string    `json:"home,omitempty"`
}

// Pass returns the principal as another server is told of it.
func (p *Principal) Pass() Passed {
	return Passed{
		Tenant: p.Tenant, TokenName: p.TokenName, TokenID: p.TokenID, Roles: p.Roles, Boards: p.Boards, Expires: p.Expires,
		Issuer: p.Issuer, Subject: p.Subject, TenantID: p.TenantID, Home: p.home,
	}
}

// Principal returns the principal. Its Life does not end: the server that let it in ends
// the call when it must.
func (p Passed) Principal() *Principal {
	return &Principal{
		Tenant: p.Tenant, TokenName: p.TokenName, TokenID: p.TokenID, Roles: p.Roles, Boards: p.Boards, Expires: p.Expires,
		Issuer: p.Issuer, Subject: p.Subject, TenantID: p.TenantID, home: p.Home,
	}
}
