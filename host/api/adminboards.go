package api

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/nearest"
)

func toBoardSettings(b host.BoardRecord) *boarddv1.BoardSettings {
	answer := &boarddv1.BoardSettings{
		Tenant: b.Tenant, Name: b.Name, Backend: b.Backend, Config: b.Settings, Mode: "serve", Fencing: "token",
		Lease: toDuration(b.Lease), MaxLease: toDuration(b.MaxLease), AllowNoExpiry: b.AllowNoExpiry,
		IdempotencyWindow: toDuration(b.IdempotencyWindow), History: toDuration(b.History),
		MaxAttempts: b.Retry.MaxAttempts, Backoff: toDuration(b.Retry.Backoff), MaxBackoff: toDuration(b.Retry.MaxBackoff),
		Limits: toLimits(b.Limits), Declared: b.Declared, Version: toInt64(b.Version), CreatedAt: toTime(b.Made),
		HideDetails: b.HideDetails, Record: toDuration(b.Record), Eligibility: toRules(b.Eligibility...),
	}
	if b.Ordering != nil {
		answer.Ordering = toRules(*b.Ordering)[0]
	}
	if b.Observe {
		answer.Mode = "observe"
	}
	if b.FenceByOwner {
		answer.Fencing = "owner"
	}
	return answer
}

// fromBoardSettings reads the settings of a board: what is absent has its
// default. The host checks whether they make sense.
func fromBoardSettings(s *boarddv1.BoardSettings) (config.Board, error) {
	b := config.NewBoard(s.GetName())
	b.Backend, b.Settings, b.AllowNoExpiry = s.GetBackend(), s.GetConfig(), s.GetAllowNoExpiry()
	b.Retry.MaxAttempts, b.HideDetails = s.GetMaxAttempts(), s.GetHideDetails()
	var err error
	if b.Observe, err = either("board.mode", s.GetMode(), "serve", "observe"); err != nil {
		return b, err
	}
	if b.FenceByOwner, err = either("board.fencing", s.GetFencing(), "token", "owner"); err != nil {
		return b, err
	}
	for _, d := range []struct {
		path  string
		given *durationpb.Duration
		to    *time.Duration
	}{
		{"board.maxLease", s.GetMaxLease(), &b.MaxLease},
		{"board.lease", s.GetLease(), &b.Lease},
		{"board.idempotencyWindow", s.GetIdempotencyWindow(), &b.IdempotencyWindow},
		{"board.history", s.GetHistory(), &b.History},
		{"board.record", s.GetRecord(), &b.Record},
		{"board.backoff", s.GetBackoff(), &b.Retry.Backoff},
		{"board.maxBackoff", s.GetMaxBackoff(), &b.Retry.MaxBackoff},
	} {
		if d.given == nil {
			continue
		}
		if *d.to, err = fromDuration(d.path, d.given, time.Millisecond); err != nil {
			return b, err
		}
	}
	if s.GetLease() == nil {
		b.Lease = min(b.Lease, b.MaxLease)
	}
	if b.Limits, err = host.ParseLimits(s.GetLimits()); err != nil {
		return b, err
	}
	return b, fromRules(s, &b)
}

// fromRules reads the policies of a board's settings. The host checks whether
// there are such.
func fromRules(s *boarddv1.BoardSettings, b *config.Board) error {
	read := func(path string, r *boarddv1.PolicyRule) (config.Rule, error) {
		params, err := host.ParseParams(r.GetParams())
		if err != nil {
			err = invalid(path+".params", "want a JSON object")
		}
		return config.Rule{Policy: r.GetPolicy(), Params: params, OnError: r.GetOnError(), Module: r.GetDigest()}, err
	}
	for i, r := range s.GetEligibility() {
		rule, err := read(fmt.Sprintf("board.eligibility[%d]", i), r)
		if err != nil {
			return err
		}
		b.Eligibility = append(b.Eligibility, rule)
	}
	if s.GetOrdering() == nil {
		return nil
	}
	rule, err := read("board.ordering", s.GetOrdering())
	b.Ordering = &rule
	return err
}

func toRules(rules ...config.Rule) (list []*boarddv1.PolicyRule) {
	for _, r := range rules {
		list = append(list, &boarddv1.PolicyRule{Policy: r.Policy, Params: r.Params, OnError: r.OnError, Digest: r.Module})
	}
	return list
}

// either reads one of two words, of which the first is the default.
func either(path, given, first, second string) (isSecond bool, err error) {
	switch given {
	case "", first:
		return false, nil
	case second:
		return true, nil
	}
	return false, invalid(path, "want %s or %s, got %q%s", first, second, clip(given), nearest.Hint(clip(given), []string{first, second}))
}

// CreateBoard makes a board.
func (*adminService) CreateBoard(ctx context.Context, r *connect.Request[boarddv1.CreateBoardRequest]) (*connect.Response[boarddv1.CreateBoardResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	b, err := fromBoardSettings(r.Msg.GetBoard())
	if err != nil {
		return nil, session.Unless("CreateBoard", err)
	}
	made, err := session.CreateBoard(ctx, tenantOf(r.Msg.GetTenant(), r.Msg.GetBoard()), b)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.CreateBoardResponse{Board: toBoardSettings(made)})
}

// tenantOf is the tenant that a request names, in one of two places.
func tenantOf(given string, b *boarddv1.BoardSettings) string {
	if given == "" {
		return b.GetTenant()
	}
	return given
}

// UpdateBoard gives a board other settings.
func (*adminService) UpdateBoard(ctx context.Context, r *connect.Request[boarddv1.UpdateBoardRequest]) (*connect.Response[boarddv1.UpdateBoardResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	b, err := fromBoardSettings(r.Msg.GetBoard())
	version, versionErr := fromVersion("version", r.Msg.GetVersion())
	if err == nil {
		err = versionErr
	}
	if err != nil {
		return nil, session.Unless("UpdateBoard", err)
	}
	changed, err := session.UpdateBoard(ctx, tenantOf(r.Msg.GetTenant(), r.Msg.GetBoard()), b, version)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.UpdateBoardResponse{Board: toBoardSettings(changed)})
}

// DeleteBoard serves a board no more.
func (*adminService) DeleteBoard(ctx context.Context, r *connect.Request[boarddv1.DeleteBoardRequest]) (*connect.Response[boarddv1.DeleteBoardResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	version, err := fromVersion("version", r.Msg.GetVersion())
	if err != nil {
		return nil, session.Unless("DeleteBoard", err)
	}
	if err := session.DeleteBoard(ctx, r.Msg.GetTenant(), r.Msg.GetName(), version, r.Msg.GetPurge()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeleteBoardResponse{})
}

// ListTenantBoards gives a tenant's boards and their settings.
func (*adminService) ListTenantBoards(ctx context.Context, r *connect.Request[boarddv1.ListTenantBoardsRequest]) (*connect.Response[boarddv1.ListTenantBoardsResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := session.TenantBoards(r.Msg.GetTenant())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListTenantBoardsResponse{}
	for _, b := range list {
		response.Boards = append(response.Boards, toBoardSettings(b))
	}
	return answer(response)
}
