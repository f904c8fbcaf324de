package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// How fast other programs' changes are searched for.
const (
	// SweepRate is how many jobs a second are asked for, at most: those that a
	// search has met before are passed over.
	SweepRate = 50_000

	// MaxSweepPercent is how much of one processor core the search keeps Redis
	// busy for, at most.
	MaxSweepPercent = 5
)

// What a step costs Redis beyond the time between its two looks at the clock:
// what is sent has to be read and taken apart, and what is answered, written.
const (
	wireCost = 15                    // hundredths of what the commands take
	tripCost = 60 * time.Microsecond // for each time that Redis is asked
	longRest = time.Second           // after a step: one slow answer is no reason to search no more
)

// A pace adds up what the steps of a search cost Redis, and says how long to
// rest after each. Redis tells by its own clock, so that neither the network nor
// what else Redis has to do is taken for cost.
type pace struct {
	budget *searchBudget
	busy   time.Duration
	looked int
	hurry  bool // what the numbers tell of is searched for: the credit may be used
}

// timed sends commands to a board's server in one go, behind each other, and
// returns the time by Redis's clock.
func (p *pace) timed(ctx context.Context, b *board, key string, queue func(redis.Pipeliner)) (time.Time, error) {
	node, err := b.store.nodeOf(ctx, key)
	if err != nil {
		return time.Time{}, readFailed(ctx, err)
	}
	var before, after *redis.TimeCmd
	// No transaction: in one, the clock of newer servers does not advance.
	_, err = node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		before = pipe.Time(ctx)
		queue(pipe)
		after = pipe.Time(ctx)
		return nil
	})
	if err != nil {
		return time.Time{}, readFailed(ctx, err)
	}
	p.busy += tripCost + max(after.Val().Sub(before.Val()), 0)*(100+wireCost)/100
	return before.Val(), nil
}

// restFor returns how long to rest for what kept Redis busy.
func restFor(busy time.Duration) time.Duration { return busy * 100 / MaxSweepPercent }

// rest returns how long to wait for what was done since it was last asked.
func (p *pace) rest() time.Duration {
	due := max(restFor(p.busy), time.Duration(p.looked)*time.Second/SweepRate)
	p.busy, p.looked = 0, 0
	return p.budget.take(min(due, longRest), p.hurry)
}
