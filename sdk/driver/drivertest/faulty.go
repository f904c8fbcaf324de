package drivertest

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Trouble is what a Faulty driver does to an op.
type Trouble uint8

// The troubles.
const (
	FailBefore Trouble = iota + 1 // the op is not done, and says so: Unavailable
	FailAfter                     // the op is done, and its outcome unknown
	LoseBefore                    // the op is not done, and its outcome unknown
	Delay                         // the op is done after Fault.Delay
	Hang                          // the op is not done; when ctx ends, its outcome is unknown
)

// Fault says which ops get into trouble.
type Fault struct {
	Trouble Trouble
	Op      driver.OpKind // 0: of any kind
	Job     job.ID        // zero: of any job; that of a claim's first candidate counts
	Times   int           // how often; 0: until Heal
	Delay   time.Duration // for Delay
}

// Faulty is a Driver that gets into trouble when it is told to. Its zero value
// with a Driver does what that driver does.
type Faulty struct {
	driver.Driver

	mu     sync.Mutex
	faults []*Fault
	down   error
	cut    chan struct{} // closed to end the streams; nil while there are none
}

// Fail makes coming ops fail. The first fault that an op fits is its own.
func (f *Faulty) Fail(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
}

// Down makes every call fail as Unavailable, and ends the streams, until Heal.
func (f *Faulty) Down() {
	f.mu.Lock()
	f.down = job.Errorf(job.Unavailable, "the store was told to be down")
	f.mu.Unlock()
	f.Cut()
}

// Cut ends the streams that are open, as when a connection is lost.
func (f *Faulty) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != nil {
		close(f.cut)
		f.cut = nil
	}
}

// Heal ends all trouble.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.down = nil, nil
}

// fault returns what is to happen to op.
func (f *Faulty) fault(op *driver.Op) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := op.Job
	switch {
	case op.Posting != nil:
		id = op.Posting.ID
	case op.Claim != nil && len(op.Claim.Candidates) > 0:
		id = op.Claim.Candidates[0].Job
	}
	for i, fault := range f.faults {
		if fault.Op != 0 && fault.Op != op.Kind || fault.Job != (job.ID{}) && fault.Job != id {
			continue
		}
		found := *fault
		if fault.Times--; fault.Times == 0 {
			f.faults = append(f.faults[:i:i], f.faults[i+1:]...)
		}
		return found
	}
	return Fault{}
}

func (f *Faulty) isDown() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// streams returns what is closed when the streams are to end.
func (f *Faulty) streams() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == nil {
		f.cut = make(chan struct{})
	}
	return f.cut
}

// Apply does the ops that are in no trouble as one batch.
func (f *Faulty) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	var through []driver.Op
	var places []int
	troubles := make([]Trouble, len(ops))
	for i := range ops {
		if err := f.isDown(); err != nil {
			results[i] = driver.Failed(err)
			continue
		}
		fault := f.fault(&ops[i])
		troubles[i] = fault.Trouble
		switch fault.Trouble {
		case FailBefore:
			results[i] = driver.Result{Kind: job.Unavailable, Message: "the op was told to fail"}
			continue
		case LoseBefore:
			continue
		case Hang:
			<-ctx.Done()
			continue
		case Delay:
			pause(ctx, fault.Delay)
		case FailAfter:
		}
		through, places = append(through, ops[i]), append(places, i)
	}
	if len(through) > 0 {
		for n, r := range f.Driver.Apply(ctx, board, through) {
			results[places[n]] = r
		}
	}
	for i, trouble := range troubles {
		if trouble == FailAfter || trouble == LoseBefore || trouble == Hang {
			results[i] = driver.Result{Kind: job.OutcomeUnknown, Message: "the op's answer was told to be lost"}
		}
	}
	return results
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// OpenBoard fails while the store is down.
func (f *Faulty) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := f.isDown(); err != nil {
		return driver.BoardStatus{}, err
	}
	return f.Driver.OpenBoard(ctx, spec)
}

// Read fails while the store is down.
func (f *Faulty) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	if err := f.isDown(); err != nil {
		return nil, err
	}
	return f.Driver.Read(ctx, board, ids, parts)
}

// Count fails while the store is down.
func (f *Faulty) Count(ctx context.Context, board string) (driver.Counts, error) {
	if err := f.isDown(); err != nil {
		return driver.Counts{}, err
	}
	return f.Driver.Count(ctx, board)
}

// Health fails while the store is down.
func (f *Faulty) Health(ctx context.Context) error {
	if err := f.isDown(); err != nil {
		return err
	}
	return f.Driver.Health(ctx)
}

// Scan ends when it is cut.
func (f *Faulty) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return cutShort(ctx, f, func(ctx context.Context) iter.Seq2[driver.Page, error] { return f.Driver.Scan(ctx, board, req) })
}

// Watch ends when it is cut.
func (f *Faulty) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return cutShort(ctx, f, func(ctx context.Context) iter.Seq2[driver.Changes, error] { return f.Driver.Watch(ctx, board, after) })
}

// cutShort ends a stream as Unavailable when the streams are cut.
func cutShort[V any](ctx context.Context, f *Faulty, stream func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if err := f.isDown(); err != nil {
			yield(none, err)
			return
		}
		cut := f.streams()
		ctx, cancel := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() {
			select {
			case <-cut:
				cancel()
			case <-ctx.Done():
			}
		})
		for v, err := range stream(ctx) {
			select {
			case <-cut:
				yield(none, job.Errorf(job.Unavailable, "the stream was cut"))
				return
			default:
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
