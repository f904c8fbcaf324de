package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

// RegisterEntity notes who works on a board, for as long as it says.
func (s *service) RegisterEntity(ctx context.Context, r *connect.Request[boarddv1.RegisterEntityRequest]) (*connect.Response[boarddv1.RegisterEntityResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "RegisterEntity")
	if err != nil {
		return nil, err
	}
	given := r.Msg.GetEntity()
	if given == nil {
		return nil, invalid("entity", "want an entity with kind and name")
	}
	ttl, err := fromDuration("ttl", r.Msg.GetTtl(), 0)
	if err != nil {
		return nil, err
	}
	entity, err := b.RegisterEntity(ctx, board.Entity{Kind: given.GetKind(), Name: given.GetName(), Metadata: given.GetMetadata()}, ttl)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.RegisterEntityResponse{Entity: toEntity(entity)})
}

// RemoveEntity takes an entity away before its time.
func (s *service) RemoveEntity(ctx context.Context, r *connect.Request[boarddv1.RemoveEntityRequest]) (*connect.Response[boarddv1.RemoveEntityResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "RemoveEntity")
	if err != nil {
		return nil, err
	}
	if err := b.RemoveEntity(ctx, r.Msg.GetKind(), r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.RemoveEntityResponse{})
}

// ListEntities gives those who work on a board.
func (s *service) ListEntities(ctx context.Context, r *connect.Request[boarddv1.ListEntitiesRequest]) (*connect.Response[boarddv1.ListEntitiesResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListEntities")
	if err != nil {
		return nil, err
	}
	entities, err := b.Entities(ctx)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListEntitiesResponse{}
	for _, e := range entities {
		response.Entities = append(response.Entities, toEntity(e))
	}
	return answer(response)
}

func toEntity(e board.Entity) *boarddv1.Entity {
	answer := &boarddv1.Entity{Kind: clean(e.Kind), Name: clean(e.Name), SeenAt: toTime(e.SeenAt), ExpiresAt: toTime(e.ExpiresAt)}
	if wirejson.Valid(e.Metadata) { // another program may have written it
		answer.Metadata = e.Metadata
	}
	return answer
}
