package host

import (
	"context"
	"io"
	"time"

	"github.com/boardd/boardd/host/backup"
	"github.com/boardd/boardd/sdk/job"
)

// Backup writes a copy of a backend's store, which goes on to work, to w: at most rate
// bytes a second.
func (h *Host) Backup(ctx context.Context, name string, rate int64, w io.Writer) error {
	on, r, err := h.declaredBackend(ctx, name)
	if err != nil {
		return err
	}
	unsupported := func() error {
		return job.Errorf(job.Unsupported, "the driver %s of the backend %s makes no backups: save its store by the store's own means, which docs/operating.md names", on.config.Driver, name)
	}
	if r.backuper == nil {
		return unsupported()
	}
	m := backup.Manifest{Boardd: h.config.Version, Backend: name, Driver: on.config.Driver, Begun: time.Now().UTC()}
	h.logger.Info("a backup begins", "backend", name)
	err = backup.Write(ctx, w, &m, r.backuper.Backup(ctx), rate)
	switch {
	case job.KindOf(err) == job.Unsupported:
		return unsupported()
	case err != nil:
		h.logger.Warn("a backup was not finished", "backend", name, "error", err)
		return err
	}
	h.logger.Info("a backup was made", "backend", name, "files", len(m.Files), "took", time.Since(m.Begun))
	return nil
}
