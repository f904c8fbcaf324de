package board

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// A side is the open jobs as one of the two orders of a comparison sees them.
type side struct {
	number int // of its orders and stocks in a contender
	c      *comparison
	ask    func(ctx context.Context, now time.Time, keys []policy.Key, ranks []policy.Rank) error // nil: keys do not count
	served func(keys []policy.Key)                                                                // asked once about each, since claims go on meanwhile

	per time.Duration // if not 0: of the policy's manifest

	stocks map[string]*stock
	kept   int
}

// A stock is the jobs of one key.
type stock struct {
	per     bool // what was claimed in a period counts, which the side learns with what was served
	key     policy.Key
	rank    policy.Rank
	first   []*contender // of the waiting, in order
	older   int64        // when the oldest of the others was created, in unix microseconds
	granted int64        // in the period, before the line began
	served  int64        // before the line began; 0 if none waits
}

// A contender is a job that could be given, as both sides see it.
type contender struct {
	id     job.ID
	orders [2]index.Order
	stocks [2]*stock
	places [2]int // in the lines; MaxShadowLine: behind
}

// MaxShadowKeys is how many keys a comparison looks at. Jobs of those that come
// later in the line are left out.
const MaxShadowKeys = 1 << 16

// maxKept bounds the jobs that a side keeps, besides the first of each key.
const maxKept = 1 << 15

func newSide(number int, c *comparison) *side {
	return &side{number: number, c: c, stocks: map[string]*stock{}, served: func([]policy.Key) {}}
}

// stock returns the stock of a key, nil if it is left out.
func (s *side) stock(key string) *stock {
	st, ok := s.stocks[key]
	if !ok && len(s.stocks) < MaxShadowKeys {
		st = &stock{per: s.per != 0, key: policy.Key{Key: key}, older: math.MaxInt64}
		s.stocks[key] = st
	}
	return st
}

// run counts a running job.
func (st *stock) run() {
	if !st.per {
		st.key.Running++
	}
}

// add counts a waiting job, and keeps it if it is one of the first.
func (s *side) add(st *stock, x *contender) {
	st.key.Waiting++
	n := len(st.first)
	at := n
	if n > 0 && s.before(x, st.first[n-1]) < 0 { // rarely: a walk is in the order of the board
		at, _ = slices.BinarySearchFunc(st.first, x, s.before)
	}
	if n == 0 || n < MaxShadowLine && s.kept < maxKept {
		s.kept++
		st.first = slices.Insert(st.first, at, x)
		return
	}
	left := x
	if at < n {
		left = st.first[n-1]
		st.first = slices.Insert(st.first[:n-1], at, x)
	}
	st.older = min(st.older, left.orders[0].CreatedAt)
}

// line gives the next jobs, each as if those before it were running. It ends early
// where more jobs of a key would come than are kept.
func (s *side) line(ctx context.Context) (line []*contender, err error) {
	best, err := s.best(ctx)
	for err == nil && len(line) < MaxShadowLine && len(best) > 0 {
		st := slices.MinFunc(best, s.compare)
		if st.full() || len(st.first) == 0 {
			break
		}
		line = append(line, st.give())
		if st.key.Waiting == 0 {
			best = slices.DeleteFunc(best, func(x *stock) bool { return x == st })
		} else {
			err = s.rank(ctx, []*stock{st})
		}
	}
	if err != nil {
		return nil, err
	}
	return line, s.c.rest(ctx)
}

// best ranks all stocks and returns the best of those with something to give: as
// many as there can be in a line, since what one gives changes no other's rank.
func (s *side) best(ctx context.Context) (best []*stock, err error) {
	batch := make([]*stock, 0, policy.MaxBatch)
	flush := func() error {
		s.learnServed(batch)
		if err := s.rank(ctx, batch); err != nil {
			return err
		}
		best = append(best, batch...)
		slices.SortFunc(best, s.compare)
		best = best[:min(len(best), MaxShadowLine)]
		batch = batch[:0]
		return s.c.rest(ctx)
	}
	for _, st := range s.stocks {
		if st.key.Waiting == 0 {
			continue
		}
		if batch = append(batch, st); len(batch) == policy.MaxBatch {
			if err = flush(); err != nil {
				return nil, err
			}
		}
	}
	err = flush()
	return best, err
}

func (s *side) learnServed(stocks []*stock) {
	keys := make([]policy.Key, len(stocks))
	for i, st := range stocks {
		keys[i].Key = st.key.Key
	}
	s.served(keys)
	for i, st := range stocks {
		st.served = keys[i].Served
		st.key.Served = st.served
		if st.per {
			st.granted = keys[i].Running
			st.key.Running = st.granted
		}
	}
}

// servedAs writes what another side knows, whose keys are the same.
func (s *side) servedAs(keys []policy.Key) {
	for i := range keys {
		if st := s.stocks[keys[i].Key]; st != nil {
			keys[i].Served, keys[i].Running = st.served, st.granted
		}
	}
}

// rank asks the policy about at most a batch of stocks.
func (s *side) rank(ctx context.Context, stocks []*stock) error {
	if s.ask == nil || len(stocks) == 0 {
		return nil
	}
	keys, ranks := make([]policy.Key, len(stocks)), make([]policy.Rank, len(stocks))
	for i, st := range stocks {
		keys[i] = st.key
		keys[i].Oldest = st.oldest()
	}
	ctx, cancel := context.WithTimeout(ctx, rankTime)
	defer cancel()
	if err := s.ask(ctx, s.c.now, keys, ranks); err != nil {
		return err
	}
	for i, st := range stocks {
		st.rank = ranks[i]
	}
	return nil
}

// compare orders stocks that have something to give as the board orders keys: equal
// ones by which has the first job.
func (s *side) compare(a, b *stock) int {
	switch {
	case a.worth() != b.worth():
		return cmp.Compare(b.worth(), a.worth())
	case a == b, len(a.first) == 0, len(b.first) == 0:
		return len(a.first) - len(b.first)
	}
	return s.before(a.first[0], b.first[0])
}

// before orders jobs by what they are without their keys.
func (s *side) before(a, b *contender) int {
	if a.orders[s.number].Less(b.orders[s.number]) {
		return -1
	}
	return 1
}

// full reports whether nothing of the stock may be given now.
func (st *stock) full() bool { return st.worth() == ranking.FullKey }

func (st *stock) worth() int64 { return ranking.Worth(st.rank, st.key.Running) }

// give has the first job run.
func (st *stock) give() *contender {
	x := st.first[0]
	st.first = st.first[1:]
	st.key.Running++
	st.key.Served++
	st.key.Waiting--
	return x
}

// oldest returns when the oldest of the waiting was created.
func (st *stock) oldest() time.Time {
	if st.key.Waiting == 0 {
		return time.Time{}
	}
	oldest := st.older
	for _, x := range st.first {
		oldest = min(oldest, x.orders[0].CreatedAt)
	}
	return time.UnixMicro(oldest).UTC()
}
