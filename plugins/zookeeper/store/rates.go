package store

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// The count of a rate is a node, which the transaction of a claim changes together with the
// job, by its version. It holds the end of a period and what was claimed in it, as a key's
// node does, and is of no use when that is over.

// A paced is the counters of the rates of one change, for transition.Kept.
type paced map[string]*counter

// Entry is what is kept of a rate.
func (p paced) Entry(name string) (e transition.Entry, onBoard bool, _ error) {
	c := p[strings.TrimPrefix(name, driver.RatePrefix)]
	return c.entry(), false, nil
}

func (c *counter) entry() transition.Entry {
	return transition.Entry{Until: c.until, Number: uint64(c.value)} //nolint:gosec // read so
}

// pace makes a change that counts in rates, which do carries out, with what it calls add
// for. One that was refused since another host has counted is tried with what there is now.
func (b *board) pace(ctx context.Context, rates []driver.Rate, do func(add func(*session.Multi)) error) error {
	if len(rates) == 0 {
		return do(func(*session.Multi) {})
	}
	var turns transition.Moves
	for i := range rates {
		turns = turns.Add(rates[i].Key, 0)
	}
	taken, err := b.rates.take(ctx, turns)
	if err != nil {
		return err
	}
	defer b.rates.give(taken, turns)
	counts := paced{}
	for i := range taken {
		counts[turns[i].Key] = taken[i]
	}
	for synced := false; ; {
		if err := b.readRates(ctx, counts); err != nil {
			return err
		}
		now := b.now().wall
		full, _ := transition.Paced(rates, now, counts)
		if full != "" && synced {
			return &job.Error{Kind: job.QuotaExceeded, Message: full}
		}
		var failed error
		if full == "" {
			failed = do(func(m *session.Multi) { b.addRates(m, rates, counts, now) })
			switch {
			case failed == nil:
				counts.moved(rates, now)
				return nil
			case !session.Conflict(failed):
				counts.doubt() // nobody knows whether it was counted
				return failed
			}
		}
		changed, err := b.rereadRates(ctx, counts)
		if err != nil || failed != nil && !changed {
			return errors.Join(err, failed) // it is the job that was changed
		}
		synced = true
	}
}

func (p paced) doubt() {
	for _, c := range p {
		c.known = false
	}
}

// moved notes what addRates has done.
func (p paced) moved(rates []driver.Rate, now time.Time) {
	for i := range rates {
		c := p[rates[i].Key]
		e := transition.Pace(&rates[i], now, c.entry())
		if c.until, c.value = e.Until, int64(e.Number); c.there { //nolint:gosec // a count
			c.version++
		} else {
			c.there, c.version = true, 0
		}
	}
}

// addRates adds one more claim to a transaction.
func (b *board) addRates(m *session.Multi, rates []driver.Rate, counts paced, now time.Time) {
	for i := range rates {
		c := counts[rates[i].Key]
		e := transition.Pace(&rates[i], now, c.entry())
		if path, data := b.at.rate(rates[i].Key), encodeKey(&e); c.there {
			m.Set(path, data, c.version)
		} else {
			m.Create(path, data, session.Persistent)
		}
	}
}

// readRates brings those counters up to date that are not known.
func (b *board) readRates(ctx context.Context, counts paced) error {
	for key, c := range counts {
		if err := b.readRate(ctx, key, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *board) readRate(ctx context.Context, key string, c *counter) error {
	return b.read(ctx, c, b.at.rates(), b.at.rate(key), func(data []byte) error {
		e, err := decodeKey(data)
		c.until, c.value = e.Until, int64(e.Number) //nolint:gosec // a count
		return err
	})
}

// rereadRates is rereadAll of rates' counters.
func (b *board) rereadRates(ctx context.Context, counts paced) (changed bool, err error) {
	return b.rereadAll(ctx, maps.All(counts), b.readRate)
}
