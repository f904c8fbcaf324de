package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/job"
)

// sendWithin is how long a watcher may take for what it is told of at a time.
const sendWithin = 30 * time.Second

// maxCursor is the size of the longest cursor that is looked at, in bytes.
const maxCursor = 1 << 10

type controllerKey struct{}

// WatchBoard streams what happens on a board.
func (s *service) WatchBoard(ctx context.Context, r *connect.Request[boarddv1.WatchBoardRequest], stream *connect.ServerStream[boarddv1.Event]) error {
	if done, err := passStream(ctx, s.passing, boarddv1connect.BoardServiceWatchBoardProcedure, r.Msg.GetBoard(), r.Msg, stream); done {
		return err
	}
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "WatchBoard")
	if err != nil {
		return err
	}
	if err := checkCursor(r.Msg.GetFrom()); err != nil {
		return err
	}
	if len(r.Msg.GetOwner()) > job.MaxOwner {
		return invalid("owner", "want at most %d bytes", job.MaxOwner)
	}
	ctx, release := s.untilStop(ctx)
	defer release()
	if err := stream.Send(nil); err != nil { // the headers, so that the client knows that it watches
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	frames, err := newFrames(ctx)
	if err != nil {
		return err
	}
	for events, err := range b.WatchTogether(ctx, r.Msg.GetOwner(), r.Msg.GetFrom()) {
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
				return cause
			}
			return err
		}
		if err := frames.send(events); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func checkCursor(cursor string) error {
	if len(cursor) > maxCursor {
		return invalid("from", "this is not a cursor of this board: want what an event brought")
	}
	return nil
}

// ListEvents is WatchBoard for those who would rather ask again.
func (s *service) ListEvents(ctx context.Context, r *connect.Request[boarddv1.ListEventsRequest]) (*connect.Response[boarddv1.ListEventsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListEvents")
	if err != nil {
		return nil, err
	}
	if err := checkCursor(r.Msg.GetFrom()); err != nil {
		return nil, err
	}
	most := int(r.Msg.GetMax())
	if most < 0 || most > board.MaxPage {
		return nil, invalid("max", "want 1 to %d, or 0 for %d, got %d", board.MaxPage, board.DefaultPage, most)
	}
	if most == 0 {
		most = board.DefaultPage
	}
	wait, err := waitOf(ctx, r.Msg.GetWait())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListEventsResponse{}
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) error {
		events, cursor, err := b.Events(ctx, r.Msg.GetFrom(), most, wait)
		response.Events, response.Cursor = nil, cursor
		for _, e := range events {
			response.Events = append(response.Events, toEvent(e))
		}
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	return answer(response)
}
