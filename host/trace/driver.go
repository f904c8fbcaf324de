package trace

import (
	"context"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Driver returns a driver whose batches have spans. They are made on this side of
// the driver's process, so they hold the way there and back, too.
func (t *Tracer) Driver(d driver.Driver, backend, name string) driver.Driver {
	if t == nil {
		return d
	}
	return &tracedDriver{Driver: d, tracer: t, on: []Attribute{{Key: "boardd.backend", Text: backend}, {Key: "boardd.driver", Text: name}}}
}

type tracedDriver struct {
	driver.Driver

	tracer *Tracer
	on     []Attribute
}

func (d *tracedDriver) start(ctx context.Context, name, board string, items int) (context.Context, Span) {
	ctx, span := d.tracer.Start(ctx, name, d.on...)
	span.Set(Attribute{Key: "boardd.key", Text: board}, Attribute{Key: "boardd.items", Count: items})
	return ctx, span
}

// Apply is one batch of changes.
func (d *tracedDriver) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	ctx, span := d.start(ctx, "driver apply", board, len(ops))
	results := d.Driver.Apply(ctx, board, ops)
	code, failed := "", 0
	for i := range results {
		if results[i].Kind != job.NoKind {
			failed++
			code = strings.ToLower(results[i].Kind.String())
		}
	}
	span.Set(Attribute{Key: "boardd.failed", Count: failed})
	if failed < len(results) {
		code = "" // refusals of single items are no failure of the batch
	}
	span.End(code)
	return results
}

// Read is one batch of jobs.
func (d *tracedDriver) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	ctx, span := d.start(ctx, "driver read", board, len(ids))
	records, err := d.Driver.Read(ctx, board, ids, parts)
	span.End(codeOf(err))
	return records, err
}

// Count asks for the numbers of a board.
func (d *tracedDriver) Count(ctx context.Context, board string) (driver.Counts, error) {
	ctx, span := d.start(ctx, "driver count", board, 0)
	counts, err := d.Driver.Count(ctx, board)
	span.End(codeOf(err))
	return counts, err
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.ToLower(job.KindOf(err).String())
}

// Policy returns a policy whose evaluations have spans.
func (t *Tracer) Policy(p policy.Policy, name string) policy.Policy {
	if _, already := p.(*tracedPolicy); t == nil || already {
		return p
	}
	return &tracedPolicy{Policy: p, tracer: t, name: name}
}

type tracedPolicy struct {
	policy.Policy

	tracer *Tracer
	name   string
}

func (p *tracedPolicy) start(ctx context.Context, what string, jobs int) (context.Context, Span) {
	return p.tracer.Start(ctx, "policy "+what, Attribute{Key: "boardd.policy", Text: p.name}, Attribute{Key: "boardd.items", Count: jobs})
}

// Eligible says who may have which job.
func (p *tracedPolicy) Eligible(ctx context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	ctx, span := p.start(ctx, "eligible", len(batch.Jobs))
	err := p.Policy.Eligible(ctx, batch, verdicts)
	span.End(codeOf(err))
	return err
}

// Score says which job comes first.
func (p *tracedPolicy) Score(ctx context.Context, batch *policy.Batch, scores []int64) error {
	ctx, span := p.start(ctx, "score", len(batch.Jobs))
	err := p.Policy.Score(ctx, batch, scores)
	span.End(codeOf(err))
	return err
}

// Used returns what the policy's last evaluations cost, if it counts that.
func (p *tracedPolicy) Used() int64 {
	if counts, ok := p.Policy.(interface{ Used() int64 }); ok {
		return counts.Used()
	}
	return 0
}

// RankKeys ranks groups of jobs, if the policy does.
func (p *tracedPolicy) RankKeys(ctx context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	ranker, ok := p.Policy.(policy.Ranker)
	if !ok {
		return job.Errorf(job.Unsupported, "the policy %s ranks nothing", p.name)
	}
	ctx, span := p.start(ctx, "rank", len(keys.Keys))
	err := ranker.RankKeys(ctx, keys, ranks)
	span.End(codeOf(err))
	return err
}

// Explain says in words how the policy came to its answer, if it does.
func (p *tracedPolicy) Explain(ctx context.Context, batch *policy.Batch) (string, error) {
	explainer, ok := p.Policy.(policy.Explainer)
	if !ok {
		return "", job.Errorf(job.Unsupported, "the policy %s explains nothing", p.name)
	}
	return explainer.Explain(ctx, batch)
}
