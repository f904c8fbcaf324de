package board

import (
	"context"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// postAll posts the items that passed the checks. A job that waits for another job of
// the same call is posted after that one.
func (p *poster) postAll(ctx context.Context) error {
	post := func(items []int) []*index.Entry { return p.post(ctx, items) }
	if !p.someWait {
		return p.board.rounds(ctx, p.ids, post)
	}
	levels, err := p.levels(ctx)
	if err != nil {
		return err
	}
	for _, level := range levels {
		level = p.ready(level)
		p.await(ctx, level)
		ids := make([]job.ID, len(level))
		for i, item := range level {
			ids[i] = p.ids[item]
		}
		err := p.board.rounds(ctx, ids, func(items []int) []*index.Entry {
			those := make([]int, len(items))
			for i, at := range items {
				those[i] = level[at]
			}
			return post(those)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// await gives the jobs that the items wait for a status record, on a board that other
// programs use too: of a job without one, a store may not know how they ended it.
func (p *poster) await(ctx context.Context, level []int) {
	if !p.opened.Capabilities.Shared {
		return
	}
	var ids []job.ID
	for _, item := range level {
		for _, a := range p.extras[item].After {
			ids = append(ids, a.ID)
		}
	}
	a := &alteration{board: p.board, opened: p.opened, ids: ids, errs: make([]error, len(ids))}
	a.enough = func(_ int, s *currentJob) bool { return s != nil }
	a.plan = func(_ int, s *currentJob) (driver.Op, error) {
		if s == nil || !isOpen(s.state) || len(s.entry.Status) > 0 {
			return driver.Op{}, errUnchanged
		}
		after := s.status
		after.Awaited = true
		encoded := after.Encode()
		return driver.Op{
			Kind: driver.Update, Version: s.entry.Version, Status: &encoded,
			Event: job.OperationEvent, Reason: "another job waits for this one",
		}, nil
	}
	if err := a.run(ctx); err != nil {
		p.board.log.WarnContext(ctx, "jobs that others wait for could not be marked", "jobs", len(ids), "error", err)
	}
}

// ready leaves out what waits for a job of the same call that was refused.
func (p *poster) ready(level []int) []int {
	kept := level[:0:0]
next:
	for _, item := range level {
		for i, a := range p.extras[item].After {
			at, ok := p.byID[a.ID]
			if ok && p.results[p.of[at]].Err != nil {
				p.refuse(item, "after[%d].uuid: job %s was not posted", i, a.ID)
				continue next
			}
		}
		kept = append(kept, item)
	}
	return kept
}

func (p *poster) refuse(item int, format string, args ...any) {
	e := job.Errorf(job.Invalid, format, args...)
	e.Job = p.ids[item]
	p.results[p.of[item]].Err = e
}

// levels sorts the items so that none waits for one of its own level or of a
// later one. It refuses those that wait for jobs that are not known, and for
// themselves by way of others.
func (p *poster) levels(ctx context.Context) ([][]int, error) {
	p.byID = make(map[job.ID]int, len(p.ids))
	for item, id := range p.ids {
		if _, twice := p.byID[id]; !twice {
			p.byID[id] = item
		}
	}
	if err := p.checkKnown(ctx); err != nil {
		return nil, err
	}
	depth := make([]int, len(p.ids)) // 0: not looked at; -1: being looked at
	var levels [][]int
	for item := range p.ids {
		if p.results[p.of[item]].Err != nil {
			continue
		}
		d := p.depth(item, depth)
		if d == 0 {
			continue // it was refused
		}
		for len(levels) < d {
			levels = append(levels, nil)
		}
		levels[d-1] = append(levels[d-1], item)
	}
	return levels, nil
}

// depth returns one more than the greatest depth of what the item waits for; 0 if
// that comes back to the item, which is refused.
func (p *poster) depth(item int, depth []int) int {
	if depth[item] != 0 {
		return max(depth[item], 0)
	}
	depth[item] = -1
	deepest := 0
	for i, a := range p.extras[item].After {
		other, ok := p.byID[a.ID]
		if !ok {
			continue
		}
		d := p.depth(other, depth)
		if d == 0 {
			if p.results[p.of[item]].Err == nil {
				p.refuse(item, "after[%d].uuid: job %s is one of some that wait for each other", i, a.ID)
			}
			return 0
		}
		deepest = max(deepest, d)
	}
	depth[item] = deepest + 1
	return depth[item]
}

// checkKnown refuses what waits for jobs that are neither known nor posted with
// it, unless it stands already itself. What waits only for jobs that have ended
// well is not held.
func (p *poster) checkKnown(ctx context.Context) error {
	var ids []job.ID
	of := make(map[job.ID]int)
	ask := func(id job.ID) {
		if _, ok := of[id]; !ok {
			of[id] = len(ids)
			ids = append(ids, id)
		}
	}
	for item := range p.ids {
		if len(p.extras[item].After) == 0 {
			continue
		}
		ask(p.ids[item])
		for _, a := range p.extras[item].After {
			ask(a.ID)
		}
	}
	records, err := p.board.read(ctx, ids, 0)
	if err != nil {
		return err
	}
	for item := range p.ids {
		after := p.extras[item].After
		if len(after) == 0 || records[of[p.ids[item]]].State != job.Unknown {
			continue
		}
		p.checkPrerequisites(item, func(id job.ID) *driver.Record { return &records[of[id]] })
	}
	return nil
}

func (p *poster) checkPrerequisites(item int, found func(job.ID) *driver.Record) {
	after, met := p.extras[item].After, true
	for i := range after {
		rec := found(after[i].ID)
		if _, posted := p.byID[after[i].ID]; rec.State == job.Unknown {
			if !posted {
				p.refuse(item, "after[%d].uuid: there is no job %s on this board", i, after[i].ID)
				return
			}
			met = false
			continue
		}
		ok, _ := meets(rec, &after[i], false)
		met = met && ok
	}
	if !met {
		return
	}
	op := &p.ops[item]
	op.Hold = nil
	if until := p.extras[item].NotBefore; until.After(p.now) {
		op.Hold = &driver.Hold{Until: until}
	}
	s := record.Status{Operations: record.NewOperations(p.extras[item].Operations), Met: true}
	s.OperationPriority = s.Operations.Priority()
	encoded := s.Encode()
	op.Status = &encoded
}
