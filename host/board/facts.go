package board

import (
	"context"
	"sync"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// facts keeps what policies want to know of jobs' details, so that these are read
// once. Nothing is kept where no policy names a fact.
type facts struct {
	specs []policy.FactSpec // of all policies, each once

	mu    sync.Mutex
	known map[job.ID]jobFacts
	sweep int // at this size, those of jobs that left are thrown out
}

// jobFacts is what is known of one job's details.
type jobFacts struct {
	sequence uint64 // of its posting: a later job may have the same id
	values   []policy.Fact
}

// sweepFacts is the size from which on it pays to look for jobs that left.
const sweepFacts = 1 << 14

func newFacts(all []*boundPolicy) *facts {
	f := &facts{known: map[job.ID]jobFacts{}, sweep: sweepFacts}
	for _, a := range all {
		for _, spec := range a.manifest.Facts {
			spec.Name = ""
			at := len(f.specs)
			for i := range f.specs {
				if f.specs[i] == spec {
					at = i
				}
			}
			if at == len(f.specs) {
				f.specs = append(f.specs, spec)
			}
			a.facts = append(a.facts, at)
		}
	}
	return f
}

func (f *facts) wanted() bool { return len(f.specs) > 0 }

// learn keeps the facts of a job whose details are at hand.
func (f *facts) learn(id job.ID, sequence uint64, details []byte) {
	if !f.wanted() {
		return
	}
	values := policy.Facts(details, f.specs)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[id] = jobFacts{sequence, values}
}

func (f *facts) forget(id job.ID) {
	if !f.wanted() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, id)
}

// get returns the facts of a job, if they are known.
func (f *facts) get(id job.ID, sequence uint64) ([]policy.Fact, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, ok := f.known[id]
	if !ok || of.sequence != sequence {
		return nil, false
	}
	return of.values, true
}

// need reads the details of those of these jobs whose facts are not known, and keeps
// their facts.
func (b *Board) need(ctx context.Context, f *facts, entries []*index.Entry, which []int) error {
	if !f.wanted() {
		return nil
	}
	var ids []job.ID
	var sequences []uint64
	f.mu.Lock()
	for _, i := range which {
		e := entries[i]
		if of, ok := f.known[e.ID]; !ok || of.sequence != e.Sequence {
			ids, sequences = append(ids, e.ID), append(sequences, e.Sequence)
		}
	}
	f.mu.Unlock()
	err := b.eachDetails(ctx, ids, func(i int, of *driver.Record, details []byte) {
		sequence := of.Posting.Sequence
		if of.State == job.Unknown {
			sequence = sequences[i] // it is not read again until the index knows more
		}
		f.learn(ids[i], sequence, details)
	})
	b.sweepFacts(f)
	return err
}

// sweepFacts drops the facts of jobs that are not in the index any more.
func (b *Board) sweepFacts(f *facts) {
	f.mu.Lock()
	if len(f.known) < f.sweep {
		f.mu.Unlock()
		return
	}
	ids := make([]job.ID, 0, len(f.known))
	for id := range f.known {
		ids = append(ids, id)
	}
	f.mu.Unlock()
	left := len(ids)
	for _, id := range ids {
		if _, ok := b.index.Get(id); !ok {
			f.forget(id)
			left--
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep = max(sweepFacts, 2*left)
}

// pick returns the facts of a job in the order in which one policy names them.
func (f *facts) pick(a *boundPolicy, e *index.Entry) []policy.Fact {
	if len(a.facts) == 0 {
		return nil
	}
	values, ok := f.get(e.ID, e.Sequence)
	if !ok {
		return nil
	}
	picked := make([]policy.Fact, len(a.facts))
	for i, at := range a.facts {
		picked[i] = values[at]
	}
	return picked
}

// factParts is what has to be read of jobs so that their facts are known.
func (b *Board) factParts() driver.Parts {
	if b.rules.Load().facts.wanted() {
		return driver.Details
	}
	return 0
}

// learnFacts keeps the facts of a job whose details were read, or posted. The sequence is the one
// that the store gave the posting.
func (b *Board) learnFacts(p *driver.Posting, sequence uint64) {
	if f := b.rules.Load().facts; f.wanted() && len(p.Details) > 0 {
		details := p.Details
		if p.Encoding != job.JSON {
			details = nil
		}
		f.learn(p.ID, sequence, details)
	}
}
