package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// How notifications are used.
const (
	noticeTime  = 50 * time.Millisecond // between two looks at the jobs that were named
	noticesOnce = 512                   // how many are looked at then
	noticesMost = 16_384                // how many may wait; with more, all jobs are looked at
)

// notices are the jobs that Redis's keyspace notifications named, where the
// server sends any.
type notices struct {
	enabled bool
	stop    func()

	mu   sync.Mutex
	ids  map[string]bool
	over bool
}

func newNotices() *notices { return &notices{ids: map[string]bool{}, stop: func() {}} }

func (n *notices) on() bool { return n.enabled }

// listen subscribes to the notifications of one board's claims.
func (s *Store) listen(ctx context.Context, k *keys) *notices {
	n := newNotices()
	single, ok := s.client.(*redis.Client)
	if !ok || !s.notifies(ctx) { // in a cluster each node tells only of its own keys
		return n
	}
	n.enabled = true
	space := "__keyspace@" + strconv.Itoa(single.Options().DB) + "__:"
	var stops []func()
	for _, suffix := range []string{".owned", ".last_modified"} {
		stops = append(stops, s.wakes.watchPattern(space+escape(k.prefix)+"*"+suffix, func(channel, _ string) {
			n.add(strings.TrimSuffix(strings.TrimPrefix(channel, space+k.prefix), suffix))
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
		s.logger.Info("Redis does not say whether it sends keyspace notifications; boardd looks for other programs' changes by itself", "error", err)
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

func (n *notices) add(id string) {
	if len(id) != 36 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ids) >= noticesMost {
		n.over = true
		return
	}
	n.ids[id] = true
}

// take returns some of the jobs that were named, and whether there were too many
// to remember.
func (n *notices) take() (ids []string, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.ids {
		if len(ids) == noticesOnce {
			break
		}
		ids = append(ids, id)
		delete(n.ids, id)
	}
	over, n.over = n.over, false
	return ids, over
}
