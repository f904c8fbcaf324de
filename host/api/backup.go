package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// DefaultBackupRate is how many bytes of a store a backup reads in a second, unless its
// caller says otherwise.
const DefaultBackupRate = 64 << 20

// MinBackupRate is how many bytes a second a backup reads at least: at less, so much time
// passes between two parts that a proxy on the way takes the stream for dead.
const MinBackupRate = 64 << 10

// BackupBackend streams a copy of a backend's store.
func (a *adminService) BackupBackend(ctx context.Context, r *connect.Request[boarddv1.BackupBackendRequest], stream *connect.ServerStream[boarddv1.BackupBackendResponse]) error {
	session, err := a.session(ctx)
	if err != nil {
		return err
	}
	rate := r.Msg.GetRate()
	if rate == 0 {
		rate = DefaultBackupRate
	}
	if rate < MinBackupRate {
		return session.Unless("BackupBackend", invalid("rate", "want at least %d bytes a second, or 0 for %d, got %d", MinBackupRate, DefaultBackupRate, rate))
	}
	ctx, release := untilStop(ctx, a.stopping)
	defer release()
	err = session.Backup(ctx, r.Msg.GetName(), rate, backupWriter(func(b []byte) error {
		return sendOne(ctx, func() error { return stream.Send(&boarddv1.BackupBackendResponse{Data: b}) })
	}))
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errStopping) {
		return cause
	}
	return err
}

// backupWriter sends what is written to it.
type backupWriter func([]byte) error

// Write waits until the caller has room.
func (w backupWriter) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
