package api

import (
	"bytes"
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// exportFormat is the version of the lines that ExportBoard gives.
const exportFormat = "1"

// exportPart is how many bytes of an export are sent at once, or one line.
const exportPart = 64 << 10

// ExportBoard streams all that a board keeps.
func (a *adminService) ExportBoard(ctx context.Context, r *connect.Request[boarddv1.ExportBoardRequest], stream *connect.ServerStream[boarddv1.ExportBoardResponse]) error {
	if done, err := passStream(ctx, a.passing, boarddv1connect.AdminServiceExportBoardProcedure, r.Msg, stream); done {
		return err
	}
	session, err := a.session(ctx)
	if err != nil {
		return err
	}
	ctx, release := untilStop(ctx, a.stopping)
	defer release()
	w := &partWriter{send: func(b []byte) error {
		return sendOne(ctx, func() error { return stream.Send(&boarddv1.ExportBoardResponse{Data: b}) })
	}}
	err = session.ExportBoard(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), exportHeader, w)
	if err == nil {
		err = w.flush()
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errStopping) {
		return cause
	}
	return err
}

// exportHeader is the first line of an export.
func exportHeader(b directory.Board) ([]byte, error) {
	settings, err := codec{"json"}.Marshal(toBoardSettings(b))
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	line.WriteString(`{"export":` + exportFormat + `,"exportedAt":"` + time.Now().UTC().Format(time.RFC3339Nano) + `","board":`)
	line.Write(settings)
	line.WriteString("}\n")
	return line.Bytes(), nil
}

// ImportBoard takes lines of an export into a board.
func (a *adminService) ImportBoard(ctx context.Context, r *connect.Request[boarddv1.ImportBoardRequest]) (*connect.Response[boarddv1.ImportBoardResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	sum, err := session.ImportBoard(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetLines(), max(r.Msg.GetFirst(), 1))
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ImportBoardResponse{Jobs: sum.Jobs, Known: sum.Known})
}

// partWriter sends what is written to it in parts of some size.
type partWriter struct {
	send   func([]byte) error
	buffer []byte
}

// Write waits until the caller has room.
func (w *partWriter) Write(b []byte) (int, error) {
	w.buffer = append(w.buffer, b...)
	if len(w.buffer) < exportPart {
		return len(b), nil
	}
	return len(b), w.flush()
}

func (w *partWriter) flush() error {
	part := w.buffer
	w.buffer = nil
	if len(part) == 0 {
		return nil
	}
	return w.send(part)
}
