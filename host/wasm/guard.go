package wasm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// When a policy is not asked any more, and for how long.
const (
	MaxFaults = 3               // within FaultTime
	FaultTime = time.Minute     //
	MinRest   = time.Second     // after the first time; doubles each time that the next trial fails
	MaxRest   = 5 * time.Minute //
)

// Guard is a policy that may fail, with what happens then: who is not known to be
// eligible is denied (or allowed, if its manifest says so), and an order falls
// back to the policy before it, then to no opinion. A policy that fails again
// and again is left alone for a while, so that it costs nothing.
type Guard struct {
	policy   policy.Policy
	previous policy.Policy // may be nil
	log      *slog.Logger

	mu     sync.Mutex
	faults []time.Time // since the last rest, MaxFaults at most
	rest   time.Duration
	until  time.Time // the end of the present rest
	trial  bool      // the rest is over, and somebody tries
	last   error
}

// NewGuard guards a policy. previous is the version that worked before, nil if
// there is none; it is asked only while the other one fails. The guard closes
// neither.
func NewGuard(p, previous policy.Policy, log *slog.Logger) *Guard {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{policy: p, previous: previous, log: log}
}

var (
	_ policy.Ranker    = (*Guard)(nil)
	_ policy.Explainer = (*Guard)(nil)
)

// Health says how a guarded policy is.
type Health struct {
	Resting bool      // it is not asked
	Until   time.Time // of the rest
	Last    error     // the last fault; nil if there was none
}

// Health returns how the policy is.
func (g *Guard) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Health{Resting: time.Now().Before(g.until), Until: g.until, Last: g.last}
}

// Manifest returns the policy's.
func (g *Guard) Manifest() policy.Manifest { return g.policy.Manifest() }

// Eligible asks the policy. If it fails and its manifest does not allow then,
// that is an error, which denies.
func (g *Guard) Eligible(ctx context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	err := g.ask(func() error { return g.policy.Eligible(ctx, batch, verdicts) })
	if err == nil || interrupted(ctx, err) || g.policy.Manifest().OnError != policy.OnErrorAllow {
		return err
	}
	for i := range batch.Jobs {
		verdicts[i] = policy.Verdict{Decision: policy.Allow}
	}
	return nil
}

// Score asks the policy, or the one before it, or has no opinion.
func (g *Guard) Score(ctx context.Context, batch *policy.Batch, scores []int64) error {
	err := g.ask(func() error { return g.policy.Score(ctx, batch, scores) })
	if err == nil || interrupted(ctx, err) {
		return err
	}
	if g.previous != nil && g.previous.Manifest().Ordering && g.previous.Score(ctx, batch, scores) == nil {
		return nil
	}
	for i := range batch.Jobs {
		scores[i] = policy.NoOpinion
	}
	return nil
}

// RankKeys asks the policy, or the one before it. Otherwise a policy that orders
// ranks all alike, and one that only limits is treated as in Eligible.
func (g *Guard) RankKeys(ctx context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	err := g.ask(func() error { return rankWith(ctx, g.policy, keys, ranks) })
	if err == nil || interrupted(ctx, err) {
		return err
	}
	if g.previous != nil && rankWith(ctx, g.previous, keys, ranks) == nil {
		return nil
	}
	m := g.policy.Manifest()
	full := !m.Ordering && m.OnError != policy.OnErrorAllow
	for i := range keys.Keys {
		ranks[i] = policy.Rank{Full: full}
	}
	return nil
}

func rankWith(ctx context.Context, p policy.Policy, keys *policy.Keys, ranks []policy.Rank) error {
	r, ok := p.(policy.Ranker)
	if !ok || p.Manifest().Counts == "" {
		return job.Errorf(job.Unsupported, "the policy %s ranks no keys", p.Manifest().Name)
	}
	return r.RankKeys(ctx, keys, ranks)
}

// Explain asks the policy; a fault of this counts, too.
func (g *Guard) Explain(ctx context.Context, batch *policy.Batch) (text string, err error) {
	e, ok := g.policy.(policy.Explainer)
	if !ok || !g.policy.Manifest().Explains {
		return "", job.Errorf(job.Unsupported, "the policy %s explains nothing", g.policy.Manifest().Name)
	}
	err = g.ask(func() error { text, err = e.Explain(ctx, batch); return err })
	return text, err
}

// interrupted reports whether an error says something of the caller only.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// ask calls the policy unless it rests, and remembers what came of it.
func (g *Guard) ask(call func() error) error {
	if err := g.resting(); err != nil {
		return err
	}
	err := call()
	g.mu.Lock()
	defer g.mu.Unlock()
	tried := g.trial
	g.trial = false
	if err == nil {
		if tried {
			g.rest, g.faults = 0, nil
			g.log.Info("a policy works again", "policy", g.policy.Manifest().Name)
		}
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, job.Invalid) {
		return err // the caller's doing
	}
	g.last = err
	g.count(tried)
	return err
}

// resting returns an error while the policy is left alone. After that one caller
// tries it; the others still get the error.
func (g *Guard) resting() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() || g.rest == 0 {
		return nil
	}
	if time.Now().Before(g.until) || g.trial {
		return &job.Error{Kind: job.Unavailable, Err: g.last, Message: "the policy " + g.policy.Manifest().Name +
			" failed again and again and is not asked until " + g.until.UTC().Format(time.RFC3339)}
	}
	g.trial = true
	return nil
}

// count notes a fault, and begins a rest after too many of them.
func (g *Guard) count(tried bool) {
	now := time.Now()
	for len(g.faults) > 0 && now.Sub(g.faults[0]) >= FaultTime {
		g.faults = g.faults[1:]
	}
	if g.faults = append(g.faults, now); len(g.faults) < MaxFaults && !tried {
		return
	}
	g.faults = nil
	g.rest = min(max(2*g.rest, MinRest), MaxRest)
	g.until = now.Add(g.rest)
	g.log.Warn("a policy fails again and again, and is left alone for a while", "policy", g.policy.Manifest().Name, "rest", g.rest, "error", g.last)
}
