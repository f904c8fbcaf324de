package replay

import (
	"container/heap"
	"context"
	"slices"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// maxClasses is how many kinds of workers a replay knows the jobs of at a time; the
// one that was not there for longest is judged anew when it comes back.
const maxClasses = 64

// class is the workers that are alike to the policies and want the same: it has the
// jobs that they may have, in order.
type class struct {
	who    *taker
	own    bool // its order is another one than that of others
	judged int  // of the arrivals
	lines  map[int32]*line
	used   int64
}

// class returns a class, and judges for a new one what stands open.
func (s *sim) class(n int32) *class {
	s.uses++
	if c := s.classes[n]; c != nil {
		c.used = s.uses
		return c
	}
	if len(s.classes) >= maxClasses {
		oldest := n
		for k, c := range s.classes {
			if oldest == n || c.used < s.classes[oldest].used {
				oldest = k
			}
		}
		delete(s.classes, oldest)
	}
	c := &class{who: &s.takers[n], judged: -1, lines: map[int32]*line{}, used: s.uses}
	if r := s.ordering; r != nil && r.manifest.Ordering && r.manifest.ByWorker {
		c.own = len(shown(c.who.worker, r.manifest.WorkerLabels)) > 0
	}
	s.classes[n] = c
	return c
}

// judge finds out which of the jobs that came since the class may have.
func (s *sim) judge(ctx context.Context, c *class) error {
	var list []int32
	if c.judged < 0 {
		for n := range s.jobs {
			if s.jobs[n].place == open {
				list = append(list, int32(n))
			}
		}
	} else {
		for _, a := range s.arrivals[c.judged:] {
			if j := &s.jobs[a.job]; j.place == open && j.stamp == a.stamp {
				list = append(list, a.job)
			}
		}
	}
	c.judged = len(s.arrivals)
	list, err := s.allowed(ctx, c.who, list)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(list, policy.MaxBatch) {
		var own []int64
		if c.own {
			if own, err = s.scores(ctx, c.who.worker, part); err != nil {
				return err
			}
		}
		for i, n := range part {
			e := entry{arrival: arrival{n, s.jobs[n].stamp}, order: s.orderOf(n)}
			if c.own {
				if e.own = e.order.Score; own != nil {
					e.own = own[i]
				}
			}
			c.enter(s, e)
		}
	}
	return nil
}

// enter puts a job into its line.
func (c *class) enter(s *sim, e entry) {
	key := int32(0)
	if s.counts != nil {
		key = s.counts.of[e.arrival.job]
	}
	l := c.lines[key]
	if l == nil {
		l = &line{sim: s}
		c.lines[key] = l
	}
	heap.Push(l, e)
}

// first returns the first job of a class; -1: there is none.
func (s *sim) first(ctx context.Context, c *class) (int32, error) {
	if s.counts != nil {
		return s.counts.first(ctx, s, c)
	}
	if l := c.lines[0]; l != nil {
		if e, ok := l.top(); ok {
			return e.arrival.job, nil
		}
	}
	return -1, nil
}

// line is jobs in order. Those that left it in other ways are found out when they
// come to its head.
type line struct {
	sim  *sim
	list []entry
}

// entry is a job with what decided its place when it came.
type entry struct {
	arrival arrival
	own     int64 // its score for this class, which counts first
	order   ranking.Order
}

// top returns the first job that still stands there.
func (l *line) top() (entry, bool) {
	for len(l.list) > 0 {
		e := l.list[0]
		if j := &l.sim.jobs[e.arrival.job]; j.place == open && j.stamp == e.arrival.stamp {
			return e, true
		}
		heap.Pop(l)
	}
	return entry{}, false
}

// before is the order of a board, for one class of workers.
func (a *entry) before(b *entry) bool {
	if a.own != b.own {
		return a.own > b.own
	}
	return a.order.Before(&b.order)
}

func (s *sim) orderOf(n int32) ranking.Order {
	j := &s.as[s.jobs[n].as].order
	return ranking.Order{
		Score: s.jobs[n].score, Priority: j.Priority, OperationPriority: j.OperationPriority,
		CreatedAt: ranking.Created(j.CreatedAt), Sequence: j.Sequence, ID: j.ID,
	}
}

// Len implements heap.Interface, as those that follow.
func (l *line) Len() int           { return len(l.list) }
func (l *line) Less(a, b int) bool { return l.list[a].before(&l.list[b]) }
func (l *line) Swap(a, b int)      { l.list[a], l.list[b] = l.list[b], l.list[a] }

// Push implements heap.Interface.
func (l *line) Push(x any) { l.list = append(l.list, x.(entry)) }

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := l.list[len(l.list)-1]
	l.list = slices.Delete(l.list, len(l.list)-1, len(l.list))
	return last
}
