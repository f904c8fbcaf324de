package board

import (
	"context"
	"errors"
	"sync"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Run opens the board on its driver, reads what is on it, follows what changes
// and ends claims whose lease ran out, until ctx ends; then it returns nil. It
// survives a store that goes away. It may run once.
func (b *Board) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // before the wait
	group.Go(func() { b.expireForever(ctx) })
	group.Go(func() { b.followPause(ctx) })

	f := follower{Board: b}
	var wait backoff
	for ctx.Err() == nil {
		err := f.session(ctx, &wait)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errResync) {
			continue
		}
		b.log.Warn("the board lost its store and tries again", "error", err)
		if !sleep(ctx, wait.next()) {
			break
		}
	}
	b.gate.shut("the board is closed")
	return nil
}

var errResync = errors.New("the changes since are not known any more")

func reason(err error) string {
	if err == nil {
		return "the driver ended its stream of changes"
	}
	return err.Error()
}

// follower is what Run knows from one session with the driver to the next.
type follower struct {
	*Board
	loaded     bool
	generation uint64
	position   driver.Position
	memory     []byte
}

// session opens the board and follows it until the stream breaks.
func (f *follower) session(ctx context.Context, wait *backoff) error {
	status, err := f.driver.OpenBoard(ctx, driver.BoardSpec{
		Name: f.spec.Key, Settings: f.spec.Settings, Window: f.spec.Window,
		MaxTombstones: driver.DefaultMaxTombstones, MaxFinals: driver.DefaultMaxTombstones,
		Observe: f.spec.Observe, Memory: f.memory,
	})
	if err != nil {
		f.gate.shut(reason(err))
		return err
	}
	f.memory = status.Memory
	if status.Loss != "" {
		f.log.Error("the store lost changes that it had acknowledged", "loss", status.Loss, "generation", status.Generation)
	}
	if err := f.readPause(ctx); err != nil {
		f.gate.shut(reason(err))
		return err
	}
	if !f.loaded || f.generation != status.Generation {
		if err := f.load(ctx, status); err != nil {
			f.gate.shut(reason(err))
			return err
		}
	}
	f.gate.open(status)
	for changes, err := range f.driver.Watch(ctx, f.spec.Key, f.position) {
		if err != nil {
			return err
		}
		if changes.Resync {
			f.log.Info("the board reads everything again: its place in the changes is not known any more")
			f.loaded = false
			return errResync
		}
		f.follow(ctx, &changes)
		f.position = max(f.position, changes.Position)
		wait.wait = 0
	}
	return nil
}

// load reads the open jobs into the index while what it holds stays in use.
func (f *follower) load(ctx context.Context, status driver.BoardStatus) error {
	again := f.loaded && f.generation != status.Generation
	var sync *index.Sync
	if again {
		sync = f.index.Reset()
	} else {
		sync = f.index.Sync()
	}
	f.metrics.Loads.Add(1)
	position, first := status.Position, true
	for page, err := range f.driver.Scan(ctx, f.spec.Key, driver.ScanRequest{Set: driver.OpenJobs}) {
		if err != nil {
			return err
		}
		if first {
			position, first = page.Position, false
		}
		for _, bad := range page.Bad {
			f.metrics.BadRecords.Add(1)
			f.log.Warn("something in the store cannot be read as a job; it is left as it is", "key", bad.Key, "problem", bad.Problem)
		}
		records := make([]*driver.Record, 0, len(page.Records))
		for i := range page.Records {
			if s := page.Records[i].State; s == job.Unclaimed || s == job.Claimed {
				records = append(records, &page.Records[i])
			}
		}
		f.absorb(records...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	sync.End(position)
	f.leaving.clear()
	f.loaded, f.generation, f.position = true, status.Generation, position
	f.hub.restart(status.Generation, position)
	return nil
}
