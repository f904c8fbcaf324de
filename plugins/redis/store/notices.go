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

// begin notes that Redis names jobs from now on. It may have named some to nobody before,
// so all of them are looked at.
func (n *notices) begin() {
	n.again()
	n.enabled.Store(true)
}

// The ends of the keys that TaskFlow changes when a claim begins or ends.
const (
	ownedSuffix    = ".owned"
	modifiedSuffix = ".last_modified"
)

// ownerOf takes the name of a key of a job apart: what the keys of its board begin with,
// and the job.
func ownerOf(key string) (prefix, id string, ok bool) {
	name, ok := strings.CutSuffix(key, ownedSuffix)
	if !ok {
		name, ok = strings.CutSuffix(key, modifiedSuffix)
	}
	at := len(name) - idSize
	if !ok || at < 0 {
		return "", "", false
	}
	_, ok = jobNamed(name[at:])
	return name[:at], name[at:], ok
}

// idSize is how long a uuid is, as text.
const idSize = 36

// listen has Redis name the jobs of one board whose claims change, if keyspace notifications
// are on.
func (s *Store) listen(ctx context.Context, k *keys) *notices {
	n := newNotices()
	single, ok := s.client.(*redis.Client)
	if !ok || !s.notifies(ctx) { // in a cluster each node tells only of its own keys
		return n
	}
	n.stop = s.wakes.listen(strconv.Itoa(single.Options().DB), k.prefix, n)
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

// add notes that keys of a job changed.
func (n *notices) add(id string) {
	due := time.Now().Add(noticeTime)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, waits := n.ids[id]; waits {
		return
	}
	if len(n.ids) >= noticesMost {
		n.over = true
		return
	}
	n.ids[id] = notice{due: due}
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
