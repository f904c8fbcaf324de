package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

// How notifications are used.
const (
	noticeTime  = 50 * time.Millisecond  // between two looks at the jobs that were named
	noticeLater = 500 * time.Millisecond // when a job is looked at that we changed ourselves
	noticesOnce = 512                    // how many are looked at at once
	noticesMost = 16_384                 // how many may wait; with more, all jobs are looked at
)

// notices are the jobs whose keys Redis said to have changed, where the server says so.
type notices struct {
	enabled atomic.Bool
	stop    func()
	without atomic.Bool // tracking: the server refuses, or notifications are on
	failed  time.Time   // when tracking last could not be begun

	mu   sync.Mutex
	ids  map[string]notice
	over bool
}

// A notice says when a job is to be looked at.
type notice struct {
	due time.Time
	off bool // that was put off
}

func newNotices() *notices { return &notices{ids: map[string]notice{}, stop: func() {}} }

func (n *notices) on() bool { return n.enabled.Load() }

// The ends of the keys that TaskFlow changes when a claim begins or ends.
const (
	ownedSuffix    = ".owned"
	modifiedSuffix = ".last_modified"
)

// listen has Redis name the jobs of one board whose claims change, if keyspace notifications
// are on.
func (s *Store) listen(ctx context.Context, k *keys) *notices {
	n := newNotices()
	single, ok := s.client.(*redis.Client)
	if !ok || !s.notifies(ctx) { // in a cluster each node tells only of its own keys
		return n
	}
	n.without.Store(true)
	n.enabled.Store(true)
	space := "__keyspace@" + strconv.Itoa(single.Options().DB) + "__:"
	var stops []func()
	for _, suffix := range []string{ownedSuffix, modifiedSuffix} {
		stops = append(stops, s.wakes.watchPattern(space+escape(k.prefix)+"*"+suffix, func(channel, _ string) {
			n.add(k, strings.TrimPrefix(channel, space))
		}))
	}
	n.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return n
}

// notifies reports whether Redis tells of changed, deleted and expired keys.
func (s *Store) notifies(ctx context.Context) bool {
	const setting = "notify-keyspace-events"
	values, err := s.client.ConfigGet(ctx, setting).Result()
	if err != nil {
		s.logger.Info("Redis does not say whether it sends keyspace notifications", "error", err)
		return false
	}
	classes := values[setting]
	if strings.Contains(classes, "A") {
		classes += "g$x"
	}
	for _, class := range "Kg$x" {
		if !strings.ContainsRune(classes, class) {
			return false
		}
	}
	return true
}

// escape makes a glob pattern that means exactly text.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(text)
}

// add notes that keys of a board changed.
func (n *notices) add(k *keys, names ...string) {
	due := time.Now().Add(noticeTime)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ownedSuffix)
		if !ok {
			id, ok = strings.CutSuffix(name, modifiedSuffix)
		}
		if ok {
			id, ok = strings.CutPrefix(id, k.prefix)
		}
		if _, waits := n.ids[id]; !ok || waits {
			continue
		}
		if _, ok := jobNamed(id); !ok {
			continue
		}
		if len(n.ids) >= noticesMost {
			n.over = true
			return
		}
		n.ids[id] = notice{due: due}
	}
}

// again has all jobs looked at, since Redis may have named some to nobody.
func (n *notices) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}

// follow is told of changes that our own records say already, which Redis names all the
// same. A job that ended needs no look; any other gets one look for all that is done to it
// in a while, since another program may have changed it as well.
func (n *notices) follow(events []event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ids) == 0 {
		return
	}
	for i := range events {
		e := &events[i]
		id := e.id.String()
		v, waits := n.ids[id]
		switch {
		case !waits:
		case e.state == job.Complete || e.state == job.Unknown:
			delete(n.ids, id)
		case !v.off && e.kind != job.ForeignChange:
			n.ids[id] = notice{due: v.due.Add(noticeLater - noticeTime), off: true}
		}
	}
}

// take returns some of the jobs that are due, and whether there were too many
// to remember.
func (n *notices) take() (ids []string, over bool) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, v := range n.ids {
		if len(ids) == noticesOnce {
			break
		}
		if !v.due.After(now) {
			ids = append(ids, id)
			delete(n.ids, id)
		}
	}
	over, n.over = n.over, false
	return ids, over
}
