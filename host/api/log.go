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

// AppendLog adds entries to the log of a claimed job.
func (s *service) AppendLog(ctx context.Context, r *connect.Request[boarddv1.AppendLogRequest]) (*connect.Response[boarddv1.AppendLogResponse], error) {
	b, ref, err := s.refOf(ctx, r.Msg.GetBoard(), "AppendLog", r.Msg.GetClaim())
	if err != nil {
		return nil, err
	}
	request := board.LogRequest{Ref: ref, Index: r.Msg.GetIndex(), RequestID: r.Msg.GetRequestId()}
	for _, e := range r.Msg.GetEntries() {
		request.Entries = append(request.Entries, job.LogEntry{Type: e.GetType(), Message: e.GetMessage()})
	}
	result, err := b.AppendLog(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.AppendLogResponse{LastSerial: result.Last, CancelRequested: result.CancelRequested})
}

// GetLog streams the log of a job.
func (s *service) GetLog(ctx context.Context, r *connect.Request[boarddv1.GetLogRequest], stream *connect.ServerStream[boarddv1.LogEntry]) error {
	if done, err := passStream(ctx, s.passing, boarddv1connect.BoardServiceGetLogProcedure, r.Msg, stream); done {
		return err
	}
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "GetLog")
	if err != nil {
		return err
	}
	id, err := logOf(r.Msg.GetUuid(), r.Msg.GetNewerThan())
	if err != nil {
		return err
	}
	ctx, release := s.untilStop(ctx)
	defer release()
	if r.Msg.GetFollow() {
		// A job that is not known is an error, and errors come before the headers.
		if _, err := b.ReadLog(ctx, id, r.Msg.GetNewerThan(), 1, 0); err != nil {
			return err
		}
		if err := sendOne(ctx, func() error { return stream.Send(nil) }); err != nil { // the headers, so that the client knows that it follows
			return err
		}
	}
	for entry, err := range b.FollowLog(ctx, id, r.Msg.GetNewerThan(), r.Msg.GetFollow()) {
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
				return cause
			}
			return err
		}
		if err := sendOne(ctx, func() error { return stream.Send(toLogEntry(&entry)) }); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func logOf(uuid string, newerThan int64) (job.ID, error) {
	if newerThan < 0 {
		return job.ID{}, invalid("newerThan", "want a serial, or 0 for all entries, got %d", newerThan)
	}
	return fromID("uuid", uuid)
}

func toLogEntry(e *job.LogEntry) *boarddv1.LogEntry {
	return &boarddv1.LogEntry{Serial: e.Serial, Index: e.Index, At: toTime(e.At), Type: clean(e.Type), Message: clean(e.Message)}
}

// ReadLog is GetLog for those who would rather ask again.
func (s *service) ReadLog(ctx context.Context, r *connect.Request[boarddv1.ReadLogRequest]) (*connect.Response[boarddv1.ReadLogResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ReadLog")
	if err != nil {
		return nil, err
	}
	id, err := logOf(r.Msg.GetUuid(), r.Msg.GetNewerThan())
	if err != nil {
		return nil, err
	}
	if most := r.Msg.GetMax(); most < 0 || most > board.MaxLogBatch {
		return nil, invalid("max", "want 1 to %d, or 0 for %d, got %d", board.MaxLogBatch, board.MaxLogBatch, most)
	}
	wait, err := waitOf(ctx, r.Msg.GetWait())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ReadLogResponse{}
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) error {
		page, err := b.ReadLog(ctx, id, r.Msg.GetNewerThan(), int(r.Msg.GetMax()), wait)
		response.Entries, response.LastSerial, response.Ended = nil, page.Last, page.Ended
		for i := range page.Entries {
			response.Entries = append(response.Entries, toLogEntry(&page.Entries[i]))
		}
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	return answer(response)
}
