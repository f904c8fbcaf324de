// Package embedded is the driver that boardd has built in: boards in one file
// of the local disk, for one process at a time. Every change is on the disk
// before it is acknowledged; changes that arrive together share the cost.
//
// Locks, in the order in which they are taken where several are held: board.opening,
// Store.gate, Store.mu. committer.mu is held alone.
//
// board.opening is held by OpenBoard and DropBoard while the board is read and the
// committer is waited for, so that whoever opens or drops the same board waits as long.
// The committer never takes it. The gate is locked for writing (closed) only to exchange
// what is in memory, after the journal or the file was written. It is held for reading
// while memory is looked at and while a transaction of the file begins, and it must not
// be taken inside such a transaction, nor in prime, which runs with it held. Store.mu and
// committer.mu are held while memory is read or written.
package embedded

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Program returns the driver.
func Program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "embedded",
			Version: "1.0.0",
			Summary: "Keeps boards durably in one file of the local disk, for one host.",
			Config: driver.Schema{Fields: []driver.Field{{
				Name: "path", Type: driver.String,
				Doc: "the folder that holds the store; absent: the backend's folder in data_dir",
			}}},
			OneHost: true,
		},
		Open: func(ctx context.Context, c driver.Config) (driver.Driver, error) {
			path, err := storePath(c)
			if err != nil {
				return nil, err
			}
			return open(ctx, path, options{logger: c.Logger})
		},
	}
}

func storePath(c driver.Config) (string, error) {
	var settings struct {
		Path string `json:"path"`
	}
	if len(c.Settings) > 0 {
		if err := json.Unmarshal(c.Settings, &settings); err != nil {
			return "", job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
		}
	}
	switch {
	case settings.Path != "":
		return settings.Path, nil
	case c.DataDir != "":
		return c.DataDir, nil
	}
	return "", job.Errorf(job.Invalid, "path is missing, and the host has no data_dir: say in which folder the store is to be")
}

// options are what tests replace. The zero value is what everybody else gets.
type options struct {
	logger *slog.Logger
	clock  clock
	exit   func(code int) // ends the process; tests watch instead
	disk   wal.Disk       // makes a record of the journal durable; tests make it fail
	commit commitFunc     // makes a transaction of the file durable; likewise
	limits storageLimits  // how much of the past is kept

	patience time.Duration // with a backup that keeps the file from growing
}
