package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/fleet"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// ListServers gives the servers of the fleet.
func (a *adminService) ListServers(ctx context.Context, _ *connect.Request[boarddv1.ListServersRequest]) (*connect.Response[boarddv1.ListServersResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	list, err := session.ListServers()
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListServersResponse{}
	for i := range list {
		response.Servers = append(response.Servers, a.toServer(&list[i]))
	}
	return answer(response)
}

// DrainServer has a server give its boards to the others.
func (a *adminService) DrainServer(ctx context.Context, r *connect.Request[boarddv1.DrainServerRequest]) (*connect.Response[boarddv1.DrainServerResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	s, err := session.DrainServer(ctx, r.Msg.GetServer(), r.Msg.GetUndo())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.DrainServerResponse{Server: a.toServer(&s)})
}

func (a *adminService) toServer(s *fleet.Seen) *boarddv1.Server {
	return &boarddv1.Server{
		Server: clean(s.Advertise), Public: clean(s.Public), Version: clean(s.Version), State: clean(string(s.State)), Live: s.Live,
		Since: toTime(s.Since), Silent: toDuration(s.Silent), Boards: int64(s.Boards), Digest: clean(s.Digest), Here: s.ID == a.host.ID(),
	}
}
