package drivertest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const (
	killedHosts = 4
	killedAfter = 150 // steps of all programs together
)

// randomKilled has as many programs run at once as there are drivers on one store, on one
// board, while the store's process is killed again and again. Each program asks any of the
// drivers, and asks again until it is told what became of an op. What was said not to be done
// is not done, what was acknowledged is, and what nobody knew is the one or the other: what
// the drivers say in the end, and how the jobs stand after each step, is as in memdriver.
func randomKilled(e *env) {
	if e.suite.harness.Killable == nil {
		e.Logf("the harness has no store that it can kill")
		return
	}
	open, kill := e.suite.harness.Killable(e.T)
	hosts := make([]*env, killedHosts)
	for i := range hosts {
		d, err := open()
		if err != nil {
			e.Fatalf("a driver on a store that is to be killed: %v", err)
		}
		hosts[i] = &env{T: e.T, suite: e.suite, driver: d, name: e.name + "-killed"}
		hosts[i].join(nil)
		e.Cleanup(hosts[i].close)
	}
	k := newKilling(hosts)
	var group sync.WaitGroup
	for range hosts {
		group.Go(k.work)
	}
	go func() { group.Wait(); close(k.due) }()
	kills := 0
	for range k.due {
		kill()
		kills++
	}
	e.Logf("%d programs, %d kills, %d answers that said nothing of an op, and %d that said it was not done", k.ended.Load(), kills, k.unknown.Load(), k.refused.Load())
}

// killing is what the programs of randomKilled have in common.
type killing struct {
	hosts    []*env
	seed     uint64
	programs int64
	due      chan struct{} // the next kill is

	next, ended, steps, unknown, refused atomic.Int64
	failed                               atomic.Bool
}

func newKilling(hosts []*env) *killing {
	h := &hosts[0].suite.harness
	k := &killing{hosts: hosts, seed: h.Seed, programs: int64(h.Programs), due: make(chan struct{}, 1)}
	if k.seed == 0 {
		k.seed = rand.Uint64()
	}
	if k.programs == 0 {
		k.programs = defaultPrograms
	}
	return k
}

// work runs one program after the other, until all have run or one has failed.
func (k *killing) work() {
	for !k.failed.Load() {
		n := k.next.Add(1) - 1
		if n >= k.programs {
			return
		}
		seed := k.seed + uint64(n) //nolint:gosec // it is not negative
		e := k.hosts[0]
		p, end := e.play(rand.New(rand.NewPCG(seed, 0)).IntN)
		p.driver = &insistent{Driver: e.driver, killing: k}
		if trouble := p.run(programSteps); trouble != "" {
			k.failed.Store(true)
			e.Errorf("a random program while its store was killed, with Seed: %d and Programs: 1: %s", seed, trouble)
		} else {
			k.ended.Add(1)
		}
		end()
	}
}

// insistent is a driver that has each call be made by any of several hosts, and made again
// until one of them answers.
type insistent struct {
	driver.Driver // of the first host

	*killing
	untold bool // an earlier try of the last op may have done it
}

// Apply applies one op.
func (i *insistent) Apply(ctx context.Context, board string, ops []driver.Op) (results []driver.Result) {
	if i.steps.Add(1)%killedAfter == 0 {
		select {
		case i.due <- struct{}{}:
		default:
		}
	}
	i.untold = false
	i.insist(ctx, func(d driver.Driver) bool {
		results = d.Apply(ctx, board, ops)
		switch results[0].Kind {
		case job.OutcomeUnknown:
			i.untold = true
			i.unknown.Add(1)
			return false
		case job.Unavailable:
			i.refused.Add(1)
			return false
		}
		return true
	})
	return results
}

// Read reads jobs.
func (i *insistent) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) (records []driver.Record, err error) {
	i.insist(ctx, func(d driver.Driver) bool {
		records, err = d.Read(ctx, board, ids, parts)
		return job.KindOf(err) != job.Unavailable
	})
	return records, err
}

// insist has hosts try until one has done what was asked, for at most two minutes. A host that
// has not opens the board again, as a server does.
func (i *insistent) insist(ctx context.Context, done func(driver.Driver) bool) {
	for deadline := time.Now().Add(2 * time.Minute); ctx.Err() == nil && time.Now().Before(deadline); {
		h := i.hosts[rand.IntN(len(i.hosts))]
		if done(h.driver) {
			return
		}
		pause(ctx, 10*time.Millisecond) // nobody tells when the store is back
		status, err := h.driver.OpenBoard(ctx, h.suite.spec(h.name))
		if err == nil && (status.Loss != "" || status.Generation != h.status.Generation) {
			h.Errorf("after a kill the board says that it has lost %q, and is of generation %d, after %d", status.Loss, status.Generation, h.status.Generation)
		}
	}
}
