package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A witness watches a crowd's board and remembers what it was told, and what was
// wrong with that.
type witness struct {
	name string
	done chan struct{}

	mu       sync.Mutex
	list     []driver.Change
	position driver.Position // the place to go on from
	wrong    string          // the first problem
}

// witnesses has every host's changes watched while they happen: by a stream on each
// host, and by two who ask again and again, each time on another host.
func (c *crowd) witnesses() []*witness {
	ctx, cancel := context.WithCancel(c.Context())
	var list []*witness
	begin := func(name string, watch func(*witness)) {
		w := &witness{name: name, done: make(chan struct{}), position: c.hosts[0].status.Position}
		list = append(list, w)
		go func() {
			defer close(w.done)
			watch(w)
		}()
	}
	for n, h := range c.hosts {
		begin(fmt.Sprintf("a stream on host %d", n), func(w *witness) { w.stream(ctx, h) })
	}
	for n := range 2 {
		begin(fmt.Sprintf("watcher %d, which goes on from its last change", n), func(w *witness) { w.poll(ctx, c.hosts, n) })
	}
	c.Cleanup(func() {
		cancel()
		for _, w := range list {
			<-w.done
		}
	})
	return list
}

// stream watches one host. One that ends since the store was away goes on.
func (w *witness) stream(ctx context.Context, h *env) {
	for ctx.Err() == nil {
		for changes, err := range h.driver.Watch(ctx, h.name, w.position) {
			if err != nil {
				w.ended(ctx, err)
				break
			}
			w.take(&changes, len(changes.List))
		}
	}
}

// poll watches for one step at a time, takes a part of its changes, and goes on from
// there on the next host.
func (w *witness) poll(ctx context.Context, hosts []*env, n int) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for ; ctx.Err() == nil; n++ {
		h := hosts[n%len(hosts)]
		for changes, err := range h.driver.Watch(ctx, h.name, w.position) {
			if err != nil {
				w.ended(ctx, err)
				break
			}
			part := len(changes.List)
			if part > 0 {
				part = 1 + random.IntN(part)
			}
			w.take(&changes, part)
			if part > 0 {
				break
			}
		}
	}
}

func (w *witness) ended(ctx context.Context, err error) {
	if ctx.Err() == nil && job.KindOf(err) != job.Unavailable {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.say("its watch ended with: %v", err)
	}
}

func (w *witness) say(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// take takes the first n changes of a step, and checks that it goes on where the
// ones before ended.
func (w *witness) take(changes *driver.Changes, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if changes.Resync {
		w.say("it was told at position %d to scan again, and nothing was forgotten", w.position)
		w.position = changes.Position
	}
	for i := range changes.List[:n] {
		c := &changes.List[i]
		if c.Position < w.position {
			w.say("it was told of position %d after %d: want changes in the order of their positions", c.Position, w.position)
		}
		w.position = max(w.position, c.Position)
		w.list = append(w.list, *c)
	}
	if n < len(changes.List) {
		return
	}
	if changes.Position < w.position {
		w.say("a step that goes up to position %d says that it goes up to %d", w.position, changes.Position)
	}
	w.position = max(w.position, changes.Position)
}

func (w *witness) reached(p driver.Position) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.position >= p
}

// testify waits until every witness was told of everything, and compares it with
// what was done.
func (c *crowd) testify(list []*witness) {
	last := driver.Position(c.latest.Load())
	for _, w := range list {
		c.eventually(w.name+" reaches position "+itoa(uint64(last)), func() bool { return w.reached(last) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(map[deed]bool, len(c.deeds))
	for _, d := range c.deeds {
		if done[d] {
			c.Errorf("two changes of one job have position %d", d.position)
		}
		done[d] = true
	}
	for _, w := range list {
		w.compare(c.env, done)
	}
}

func (w *witness) compare(e *env, done map[deed]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong != "" {
		e.Errorf("%s: %s", w.name, w.wrong)
	}
	known := make(map[deed]bool, len(w.list))
	for i := range w.list {
		d := deed{w.list[i].Event, w.list[i].Job, w.list[i].Position}
		if known[d] = true; !done[d] {
			e.Errorf("%s was told of %v at position %d, which nobody did: of that job it was told %s; done and acknowledged: %s",
				w.name, d.event, d.position, toldOf(w.list, d.job), acknowledged(done, d.job))
			return
		}
	}
	missed := 0
	var first deed
	for d := range done {
		if !known[d] {
			if missed++; missed == 1 || d.position < first.position {
				first = d
			}
		}
	}
	if missed > 0 {
		e.Errorf("%s was not told of %d of %d changes; the first was %v at position %d", w.name, missed, len(done), first.event, first.position)
	}
}

// toldOf says what a witness was told of one job.
func toldOf(list []driver.Change, id job.ID) string {
	var of []driver.Change
	for i := range list {
		if list[i].Job == id {
			of = append(of, list[i])
		}
	}
	return told(of)
}

// acknowledged says what was done to one job.
func acknowledged(done map[deed]bool, id job.ID) string {
	var list []string
	for d := range done {
		if d.job == id {
			list = append(list, fmt.Sprintf("%v at %d", d.event, d.position))
		}
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
