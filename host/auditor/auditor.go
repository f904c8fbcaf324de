// Package auditor keeps a host's audit log: it waits for a log that another server has,
// bounds how many refusals have records of their own, has others vouch for the log's end
// (heads), and shows a tenant its own records and nothing of how many there are besides
// (hidden).
//
// Locks: Auditor.mu is held for arithmetic only.
package auditor

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// maxRefusals is how many refusals a second have a record of their own. Those
// that follow are counted in one.
const maxRefusals = 20

// Options say where the log is and who vouches for it.
type Options struct {
	Config *config.Config
	Host   string // the host's id
	Logger *slog.Logger

	// Catalog returns where heads are published; nil while there is none.
	Catalog func() *catalog.Catalog
}

// Auditor keeps the host's audit log, if it has a data folder. A nil one keeps none.
type Auditor struct {
	options Options
	key     *audit.Key                // what the log is signed with
	log     atomic.Pointer[audit.Log] // nil as long as another server has it
	running sync.WaitGroup

	witnessed map[string]uint64 // the last heads of other servers in the log, by their ids; of publish

	mu      sync.Mutex
	second  int64
	count   int
	skipped int64 // refusals of this second without a record
}

// Open opens the log, unless another server with the same data folder has it: Begin
// waits for that. Without a data folder there is no Auditor.
func Open(o Options) (*Auditor, error) {
	if o.Config.DataDir == "" {
		return nil, nil //nolint:nilnil // a nil Auditor keeps no log
	}
	key, err := audit.OpenKey(KeyFile(o.Config))
	if err != nil {
		return nil, err
	}
	a := &Auditor{options: o, key: key}
	if err := a.open(); err != nil && job.KindOf(err) != job.Unavailable {
		return nil, err
	}
	return a, nil
}

// KeyFile is where the key of the audit log is.
func KeyFile(c *config.Config) string {
	if c.Audit.KeyFile != "" {
		return c.Audit.KeyFile
	}
	return audit.KeyFile(c.DataDir)
}

func (a *Auditor) open() error {
	c := a.options.Config
	log, err := audit.Open(audit.Options{
		Folder: filepath.Join(c.DataDir, "audit"), Host: a.options.Host, Key: a.key, Keep: c.Audit.Keep, MaxBytes: c.Audit.MaxBytes, Logger: a.options.Logger,
	})
	if err == nil {
		a.log.Store(log)
	}
	return err
}

// Begin waits for the log, if another server has it, and lets its head be
// published, until ctx ends.
func (a *Auditor) Begin(ctx context.Context) {
	if a == nil {
		return
	}
	a.running.Go(func() {
		for said := false; a.log.Load() == nil; said = true {
			if err := a.open(); err != nil && !said {
				a.options.Logger.Error("nothing can be changed as long as the audit log cannot be written", "error", err)
			}
			if a.log.Load() == nil && sleep.For(ctx, openAuditEvery) != nil {
				return
			}
		}
		a.publish(ctx)
	})
}

const openAuditEvery = time.Second

// opened returns the log.
func (a *Auditor) opened() (*audit.Log, error) {
	if log := a.log.Load(); log != nil {
		return log, nil
	}
	return nil, job.Errorf(job.Unavailable, "the audit log is in use by another server, and nothing is changed without it")
}

// Close writes what is left and publishes the log's end, after the context of Begin has
// ended.
func (a *Auditor) Close() error {
	if a == nil {
		return nil
	}
	a.running.Wait()
	log := a.log.Load()
	if log == nil {
		return nil
	}
	err := errors.Join(a.flush(0), log.Close())
	if c := a.options.Catalog(); c != nil && c.Current() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), publishWithin)
		defer cancel()
		a.publishHead(ctx, c)
	}
	return err
}

// Record puts a record into the audit log. A change that an admin made, and a
// refusal, is there when Record returns; what was done to jobs soon after. The
// error is for whoever asked: without its record nothing was done properly.
func (a *Auditor) Record(r audit.Record, soon bool) error {
	if a == nil {
		return nil
	}
	log, err := a.opened()
	switch {
	case err != nil:
		return err
	case soon:
		return log.Note(r)
	}
	return log.Append(r)
}

// CanRecord returns nil if changes can be put into the audit log. Without that,
// none is to be made.
func (a *Auditor) CanRecord() error {
	if a == nil {
		return nil
	}
	log, err := a.opened()
	if err != nil {
		return err
	}
	return log.Writable()
}

// Refused puts a refusal into the audit log: the first ones of each second one by
// one, the rest as a number.
func (a *Auditor) Refused(r audit.Record) error {
	if a == nil {
		return nil
	}
	if err := a.flush(time.Now().Unix()); err != nil {
		return err
	}
	a.mu.Lock()
	a.count++
	over := a.count > maxRefusals
	if over {
		a.skipped++
	}
	a.mu.Unlock()
	if over {
		return nil
	}
	log, err := a.opened()
	if err != nil {
		return err
	}
	return log.Append(r)
}

// flush begins another second, and puts how many refusals of the one before had
// no record into one.
func (a *Auditor) flush(second int64) error {
	a.mu.Lock()
	skipped := a.skipped
	if a.second == second {
		skipped = 0
	} else {
		a.second, a.count, a.skipped = second, 0, 0
	}
	a.mu.Unlock()
	log := a.log.Load()
	if skipped == 0 || log == nil {
		return nil
	}
	return log.Note(audit.Record{Call: "Refused", Result: "refused", Repeated: skipped})
}

// RefusedLogin puts into the audit log that somebody was not let in.
func (a *Auditor) RefusedLogin(call, remote string, err error) error {
	return a.Refused(audit.Record{Call: call, Remote: remote, Result: strings.ToLower(job.KindOf(err).String())})
}
