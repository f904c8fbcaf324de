package client

import (
	"context"
	"iter"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// Admin makes the calls of boardd.v1.AdminService. Each takes and returns the
// messages of the API. A call that changes something is made once and not retried:
// when its outcome is unknown, the change may have been made.
type Admin struct {
	client *Client // for calls that change nothing
	once   *Client // for the others
}

// Admin returns the calls that need the right to administer something.
func (c *Client) Admin() *Admin {
	once := *c
	once.retryFor = -1
	return &Admin{client: c, once: &once}
}

// CreateTenant makes a tenant.
func (a *Admin) CreateTenant(ctx context.Context, r *boarddv1.CreateTenantRequest) (*boarddv1.CreateTenantResponse, error) {
	return call(ctx, a.once, "create tenant", 0, a.once.admin.CreateTenant, r)
}

// ListTenants lists the tenants that the token may know of, by name. Like the other lists of what
// grows, it asks for a page after the other.
func (a *Admin) ListTenants(ctx context.Context) ([]*boarddv1.Tenant, error) {
	return whole(pages(func(token string) ([]*boarddv1.Tenant, string, error) {
		answer, err := call(ctx, a.client, "list tenants", 0, a.client.admin.ListTenants,
			&boarddv1.ListTenantsRequest{PageSize: pageSize, PageToken: token})
		return answer.GetTenants(), answer.GetNextPageToken(), err
	}), (*boarddv1.Tenant).GetName)
}

// UpdateTenant gives a tenant other limits.
func (a *Admin) UpdateTenant(ctx context.Context, r *boarddv1.UpdateTenantRequest) (*boarddv1.UpdateTenantResponse, error) {
	return call(ctx, a.once, "update tenant", 0, a.once.admin.UpdateTenant, r)
}

// DeleteTenant ends a tenant.
func (a *Admin) DeleteTenant(ctx context.Context, r *boarddv1.DeleteTenantRequest) (*boarddv1.DeleteTenantResponse, error) {
	return call(ctx, a.once, "delete tenant", 0, a.once.admin.DeleteTenant, r)
}

// CreateToken makes a token. Its secret is in the answer and nowhere else.
func (a *Admin) CreateToken(ctx context.Context, r *boarddv1.CreateTokenRequest) (*boarddv1.CreateTokenResponse, error) {
	return call(ctx, a.once, "create token", 0, a.once.admin.CreateToken, r)
}

// ListTokens lists a tenant's tokens, by name; "" is the token's own tenant, here and in
// the other calls.
func (a *Admin) ListTokens(ctx context.Context, tenant string) ([]*boarddv1.Token, error) {
	return whole(pages(func(token string) ([]*boarddv1.Token, string, error) {
		answer, err := call(ctx, a.client, "list tokens", 0, a.client.admin.ListTokens,
			&boarddv1.ListTokensRequest{Tenant: tenant, PageSize: pageSize, PageToken: token})
		return answer.GetTokens(), answer.GetNextPageToken(), err
	}), (*boarddv1.Token).GetName)
}

// RevokeToken ends a token, and what goes on in its name.
func (a *Admin) RevokeToken(ctx context.Context, r *boarddv1.RevokeTokenRequest) (*boarddv1.RevokeTokenResponse, error) {
	return call(ctx, a.once, "revoke token", 0, a.once.admin.RevokeToken, r)
}

// CreateBoard makes a board.
func (a *Admin) CreateBoard(ctx context.Context, r *boarddv1.CreateBoardRequest) (*boarddv1.CreateBoardResponse, error) {
	return call(ctx, a.once, "create board", 0, a.once.admin.CreateBoard, r)
}

// UpdateBoard gives a board other settings.
func (a *Admin) UpdateBoard(ctx context.Context, r *boarddv1.UpdateBoardRequest) (*boarddv1.UpdateBoardResponse, error) {
	return call(ctx, a.once, "update board", 0, a.once.admin.UpdateBoard, r)
}

// DeleteBoard ends a board.
func (a *Admin) DeleteBoard(ctx context.Context, r *boarddv1.DeleteBoardRequest) (*boarddv1.DeleteBoardResponse, error) {
	return call(ctx, a.once, "delete board", 0, a.once.admin.DeleteBoard, r)
}

// ListBoards lists a tenant's boards with their settings, by name.
func (a *Admin) ListBoards(ctx context.Context, tenant string) ([]*boarddv1.BoardSettings, error) {
	return whole(pages(func(token string) ([]*boarddv1.BoardSettings, string, error) {
		answer, err := call(ctx, a.client, "list boards", 0, a.client.admin.ListTenantBoards,
			&boarddv1.ListTenantBoardsRequest{Tenant: tenant, PageSize: pageSize, PageToken: token})
		return answer.GetBoards(), answer.GetNextPageToken(), err
	}), (*boarddv1.BoardSettings).GetName)
}

// PutWebhook writes a webhook. A secret that was made for it is in the answer and nowhere else.
func (a *Admin) PutWebhook(ctx context.Context, r *boarddv1.PutWebhookRequest) (*boarddv1.PutWebhookResponse, error) {
	return call(ctx, a.once, "put webhook", 0, a.once.admin.PutWebhook, r)
}

// GetWebhook returns a webhook of a board, without its secrets.
func (a *Admin) GetWebhook(ctx context.Context, r *boarddv1.GetWebhookRequest) (*boarddv1.Webhook, error) {
	answer, err := call(ctx, a.client, "get webhook", 0, a.client.admin.GetWebhook, r)
	return answer.GetWebhook(), err
}

// ListWebhooks lists the webhooks of a board, without their secrets.
func (a *Admin) ListWebhooks(ctx context.Context, r *boarddv1.ListWebhooksRequest) ([]*boarddv1.Webhook, error) {
	answer, err := call(ctx, a.client, "list webhooks", 0, a.client.admin.ListWebhooks, r)
	return answer.GetWebhooks(), err
}

// DeleteWebhook takes a webhook away.
func (a *Admin) DeleteWebhook(ctx context.Context, r *boarddv1.DeleteWebhookRequest) (*boarddv1.DeleteWebhookResponse, error) {
	return call(ctx, a.once, "delete webhook", 0, a.once.admin.DeleteWebhook, r)
}

// PauseWebhook has the deliveries of a webhook wait.
func (a *Admin) PauseWebhook(ctx context.Context, r *boarddv1.PauseWebhookRequest) (*boarddv1.Webhook, error) {
	answer, err := call(ctx, a.once, "pause webhook", 0, a.once.admin.PauseWebhook, r)
	return answer.GetWebhook(), err
}

// ResumeWebhook has the deliveries of a webhook go on.
func (a *Admin) ResumeWebhook(ctx context.Context, r *boarddv1.ResumeWebhookRequest) (*boarddv1.Webhook, error) {
	answer, err := call(ctx, a.once, "resume webhook", 0, a.once.admin.ResumeWebhook, r)
	return answer.GetWebhook(), err
}

// TestWebhook posts a delivery that tells nothing, and returns which job it is on which board.
func (a *Admin) TestWebhook(ctx context.Context, r *boarddv1.TestWebhookRequest) (*boarddv1.TestWebhookResponse, error) {
	return call(ctx, a.once, "test webhook", 0, a.once.admin.TestWebhook, r)
}

// PutPolicy keeps a module as the newest version of a policy.
func (a *Admin) PutPolicy(ctx context.Context, r *boarddv1.PutPolicyRequest) (*boarddv1.PutPolicyResponse, error) {
	return call(ctx, a.client, "put policy", 0, a.client.admin.PutPolicy, r) // safe to retry: a module is named by its digest
}

// ListPolicies lists a tenant's policies.
func (a *Admin) ListPolicies(ctx context.Context, tenant string) ([]*boarddv1.Policy, error) {
	answer, err := call(ctx, a.client, "list policies", 0, a.client.admin.ListPolicies, &boarddv1.ListPoliciesRequest{Tenant: tenant})
	return answer.GetPolicies(), err
}

// PromotePolicy has a board ask a version of a policy, and returns what the board
// was given.
func (a *Admin) PromotePolicy(ctx context.Context, r *boarddv1.PromotePolicyRequest) (*boarddv1.PromotePolicyResponse, error) {
	return call(ctx, a.once, "promote policy", 0, a.once.admin.PromotePolicy, r)
}

// RollbackPolicy has a board ask the version before, or none.
func (a *Admin) RollbackPolicy(ctx context.Context, r *boarddv1.RollbackPolicyRequest) (*boarddv1.RollbackPolicyResponse, error) {
	return call(ctx, a.once, "roll back policy", 0, a.once.admin.RollbackPolicy, r)
}

// SimulatePolicy replays a board's recording with a policy and without.
func (a *Admin) SimulatePolicy(ctx context.Context, r *boarddv1.SimulatePolicyRequest) (*boarddv1.SimulatePolicyResponse, error) {
	return call(ctx, a.client, "simulate policy", 0, a.client.admin.SimulatePolicy, r)
}

// ShadowPolicy has a board ask a version of a policy beside the others, and
// returns how they disagree so far.
func (a *Admin) ShadowPolicy(ctx context.Context, r *boarddv1.ShadowPolicyRequest) (*boarddv1.ShadowPolicyResponse, error) {
	return call(ctx, a.client, "shadow policy", 0, a.client.admin.ShadowPolicy, r)
}

// DeletePolicy takes a policy away.
func (a *Admin) DeletePolicy(ctx context.Context, r *boarddv1.DeletePolicyRequest) (*boarddv1.DeletePolicyResponse, error) {
	return call(ctx, a.once, "delete policy", 0, a.once.admin.DeletePolicy, r)
}

// ListBackends lists the stores on which a tenant may have boards.
func (a *Admin) ListBackends(ctx context.Context, tenant string) ([]*boarddv1.Backend, error) {
	answer, err := call(ctx, a.client, "list backends", 0, a.client.admin.ListBackends, &boarddv1.ListBackendsRequest{Tenant: tenant})
	return answer.GetBackends(), err
}

// ListPlaces lists which board lies where in a backend's store, by place.
func (a *Admin) ListPlaces(ctx context.Context, backend string) ([]*boarddv1.Place, error) {
	return whole(pages(func(token string) ([]*boarddv1.Place, string, error) {
		answer, err := call(ctx, a.client, "list places", 0, a.client.admin.ListPlaces,
			&boarddv1.ListPlacesRequest{Name: backend, PageSize: pageSize, PageToken: token})
		return answer.GetPlaces(), answer.GetNextPageToken(), err
	}), (*boarddv1.Place).GetPlace)
}

// ListServers lists the servers of the fleet.
func (a *Admin) ListServers(ctx context.Context) ([]*boarddv1.Server, error) {
	answer, err := call(ctx, a.client, "list servers", 0, a.client.admin.ListServers, &boarddv1.ListServersRequest{})
	return answer.GetServers(), err
}

// DrainServer has a server of the fleet give its boards to the others, or serve again.
func (a *Admin) DrainServer(ctx context.Context, r *boarddv1.DrainServerRequest) (*boarddv1.Server, error) {
	answer, err := call(ctx, a.client, "drain server", 0, a.client.admin.DrainServer, r)
	return answer.GetServer(), err
}

// ReleasePlace frees a place that a board has in a backend's store.
func (a *Admin) ReleasePlace(ctx context.Context, r *boarddv1.ReleasePlaceRequest) (*boarddv1.ReleasePlaceResponse, error) {
	return call(ctx, a.once, "release place", 0, a.once.admin.ReleasePlace, r)
}

// BackupBackend copies a backend's store, and yields the copy, a tar archive, part by
// part. It ends with the first error, which comes without a part: what came before it is
// no backup then.
func (a *Admin) BackupBackend(ctx context.Context, r *boarddv1.BackupBackendRequest) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		request := connect.NewRequest(r)
		a.once.credentials.sign(request.Header())
		stream, err := a.once.admin.BackupBackend(ctx, request)
		if err == nil {
			defer func() { _ = stream.Close() }() // its error is that of the stream
			for stream.Receive() {
				if !yield(stream.Msg().GetData(), nil) {
					return
				}
			}
			err = stream.Err()
		}
		if err != nil {
			yield(nil, callError("backup backend", err))
		}
	}
}

// ExportBoard yields all that a board keeps, as JSON lines, part by part; a part may end in the
// middle of a line. It ends with the first error, which comes without a part: what came before
// it is no whole export then, and lacks the last line that says so.
func (a *Admin) ExportBoard(ctx context.Context, r *boarddv1.ExportBoardRequest) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		request := connect.NewRequest(r)
		a.once.credentials.sign(request.Header())
		stream, err := a.once.admin.ExportBoard(ctx, request)
		if err == nil {
			defer func() { _ = stream.Close() }() // its error is that of the stream
			for stream.Receive() {
				if !yield(stream.Msg().GetData(), nil) {
					return
				}
			}
			err = stream.Err()
		}
		if err != nil {
			yield(nil, callError("export board", err))
		}
	}
}

// ImportBoard takes lines of an export into a board that is paused. It may be repeated.
func (a *Admin) ImportBoard(ctx context.Context, r *boarddv1.ImportBoardRequest) (*boarddv1.ImportBoardResponse, error) {
	return call(ctx, a.client, "import board", 0, a.client.admin.ImportBoard, r)
}

// MoveBoard begins to move a board to another backend, or with DryRun says what that would be.
func (a *Admin) MoveBoard(ctx context.Context, r *boarddv1.MoveBoardRequest) (*boarddv1.MoveBoardResponse, error) {
	return call(ctx, a.once, "move board", 0, a.once.admin.MoveBoard, r)
}

// GetMove returns the last move of a board.
func (a *Admin) GetMove(ctx context.Context, r *boarddv1.GetMoveRequest) (*boarddv1.GetMoveResponse, error) {
	return call(ctx, a.client, "get move", 0, a.client.admin.GetMove, r)
}

// AbandonMove gives the move of a board up. It may be repeated.
func (a *Admin) AbandonMove(ctx context.Context, r *boarddv1.AbandonMoveRequest) (*boarddv1.AbandonMoveResponse, error) {
	return call(ctx, a.client, "abandon move", 0, a.client.admin.AbandonMove, r)
}

// GetAudit reads a page of the server's audit log.
func (a *Admin) GetAudit(ctx context.Context, r *boarddv1.GetAuditRequest) (*boarddv1.GetAuditResponse, error) {
	return call(ctx, a.client, "get audit", 0, a.client.admin.GetAudit, r)
}

// ReloadConfig has the server read its configuration anew.
func (a *Admin) ReloadConfig(ctx context.Context) (*boarddv1.ReloadConfigResponse, error) {
	return call(ctx, a.once, "reload", 0, a.once.admin.ReloadConfig, &boarddv1.ReloadConfigRequest{})
}

// GetCatalog returns what the server knows of its catalog, and whether the store has it
// still.
func (a *Admin) GetCatalog(ctx context.Context) (*boarddv1.GetCatalogResponse, error) {
	return call(ctx, a.client, "catalog", 0, a.client.admin.GetCatalog, &boarddv1.GetCatalogRequest{})
}

// AcceptCatalog makes what the store has now the catalog, on every server.
func (a *Admin) AcceptCatalog(ctx context.Context) (*boarddv1.AcceptCatalogResponse, error) {
	return call(ctx, a.once, "accept the catalog", 0, a.once.admin.AcceptCatalog, &boarddv1.AcceptCatalogRequest{})
}

// ExportCatalog returns a page of the catalog's records.
func (a *Admin) ExportCatalog(ctx context.Context, after string) (*boarddv1.ExportCatalogResponse, error) {
	return call(ctx, a.client, "export the catalog", 0, a.client.admin.ExportCatalog, &boarddv1.ExportCatalogRequest{After: after})
}

// ImportCatalog writes records into the catalog's store.
func (a *Admin) ImportCatalog(ctx context.Context, r *boarddv1.ImportCatalogRequest) (*boarddv1.ImportCatalogResponse, error) {
	return call(ctx, a.client, "import the catalog", 0, a.client.admin.ImportCatalog, r)
}
