package store

import (
	"context"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// One call of the script carries at most so much, so that Redis is never busy
// with it for long.
const (
	maxScriptOps   = 128
	maxScriptBytes = 1 << 20
	maxScriptJobs  = 512 // candidates of claims count one each
)

// Apply carries out the ops, a part of them in each call of the script.
func (s *Store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return failAll(results, err)
	}
	st := b.opening.Load()
	if st.spec.Observe {
		return failAll(results, observed(name))
	}
	var part batch
	for i := range ops {
		raw, err := encodeOp(&ops[i], st.capabilities)
		if err != nil {
			results[i] = driver.Failed(err)
			continue
		}
		jobs := 1
		if ops[i].Claim != nil {
			jobs = len(ops[i].Claim.Candidates)
		}
		if !part.fits(len(raw), jobs) {
			b.applyPart(ctx, st, &part, ops, results)
			part = batch{}
		}
		part.add(i, raw, jobs)
	}
	b.applyPart(ctx, st, &part, ops, results)
	for i := range results {
		if results[i].Kind == job.NotFound && results[i].Record == nil {
			if why := b.bad.problem(ops[i].Job); why != "" { // it lies under a name that TaskFlow would read
				results[i].Kind, results[i].Message = job.Corrupt, why
			}
		}
	}
	return results
}

func observed(name string) error {
	return job.Errorf(job.Precondition, "board %q is only observed: nothing may be changed", name)
}

func failAll(results []driver.Result, err error) []driver.Result {
	for i := range results {
		results[i] = driver.Failed(err)
	}
	return results
}

// A batch is the ops of one call of the script.
type batch struct {
	index []int // where each stands in the ops of Apply
	raw   []any
	size  int
	jobs  int
}

func (p *batch) fits(size, jobs int) bool {
	return len(p.index) == 0 || len(p.index) < maxScriptOps && p.size+size <= maxScriptBytes && p.jobs+jobs <= maxScriptJobs
}

func (p *batch) add(i int, raw []byte, jobs int) {
	p.index = append(p.index, i)
	p.raw = append(p.raw, raw)
	p.size += len(raw)
	p.jobs += jobs
}

func (b *board) applyPart(ctx context.Context, st *opening, part *batch, ops []driver.Op, results []driver.Result) {
	if len(part.index) == 0 {
		return
	}
	answers, at, err := b.script(ctx, st, part.raw)
	var waiting []undecided
	for n, i := range part.index {
		if err != nil {
			results[i] = driver.Failed(err)
			continue
		}
		if id, claims := unreadIn(answers[n]); id != "" {
			waiting = append(waiting, undecided{index: i, raw: part.raw[n], id: id, begun: claims})
			continue
		}
		results[i] = decodeResult(answers[n], &ops[i], at)
	}
	b.decide(ctx, st, waiting, ops, results)
}

// script runs the script on packed ops and returns its answers, one for each.
// It waits for the outcome even if ctx ends, since otherwise the outcome is unknown.
func (b *board) script(ctx context.Context, st *opening, ops []any) ([]string, scene, error) {
	if err := ended(ctx); err != nil {
		return nil, scene{}, err
	}
	if st.expired() {
		return nil, scene{}, lookAgain(b.name)
	}
	keys, mayDrop, err := b.declared(ctx, st, ops)
	if err != nil {
		return nil, scene{}, err
	}
	args := make([]any, 0, 6+len(ops))
	args = append(args, st.keys.prefix, b.numbers(st), st.keys.wake, newBoardID(), st.server, mayDrop)
	b.store.calls.Add(1)
	failpoint.Hit("redis/apply/before-script")
	reply, err := applyScript.run(context.WithoutCancel(ctx), b.store.client, keys, append(args, ops...)...).Slice()
	failpoint.Hit("redis/apply/after-script")
	if err != nil {
		return nil, scene{}, changeFailed(err)
	}
	return b.readReply(st, reply, len(ops))
}

func (b *board) readReply(st *opening, reply []any, n int) ([]string, scene, error) {
	unreadable := job.Errorf(job.OutcomeUnknown, "the script's answer cannot be read")
	if len(reply) == 3 {
		st.expire()
		return nil, scene{}, lookAgain(b.name)
	}
	if len(reply) != 6 {
		return nil, scene{}, unreadable
	}
	position, _ := reply[2].(int64)
	at, _ := reply[3].(int64)
	changes, _ := reply[4].(int64)
	list, _ := reply[5].([]any)
	if len(list) != n {
		return nil, scene{}, unreadable
	}
	if st.expired() || changes > 0 && !b.saw(st, mark{position: uint64(position), at: time.UnixMicro(at).UTC()}) {
		if n == 0 {
			return nil, scene{}, lookAgain(b.name)
		}
		return nil, scene{}, job.Errorf(job.OutcomeUnknown, "Redis was restarted or put back while the change was made: "+
			"whether it stands is known once board %q was opened again", b.name)
	}
	answers := make([]string, n)
	for i := range list {
		answers[i] = answerText(list[i])
	}
	return answers, scene{now: time.UnixMicro(at), generation: st.generation, window: st.spec.Window}, nil
}

// answerText puts an answer together, which is a text or a list of pieces.
func answerText(reply any) string {
	pieces, ok := reply.([]any)
	if !ok {
		text, _ := reply.(string)
		return text
	}
	size := 0
	for _, piece := range pieces {
		text, _ := piece.(string)
		size += len(text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, piece := range pieces {
		text, _ := piece.(string)
		b.WriteString(text)
	}
	return b.String()
}
