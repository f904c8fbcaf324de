package store

import (
	"context"
	"encoding/binary"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A ledger is what a board's counters have to say by the keys that they count.
type ledger struct {
	open, claimed, finals, bytes, posts int64
	trashed, ended                      int64
	position, epoch                     uint64
	limits                              map[string]int64
}

// hash reads a hash of the board.
func hash(ctx context.Context, t *testing.T, c *redis.Client, key string) map[string]string {
	t.Helper()
	all, err := c.HGetAll(ctx, key).Result()
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return all
}

// addLimits adds what a job or a claim counts.
func (l *ledger) addLimits(raw []byte) {
	for u := (unpacker{b: raw}); len(u.b) > 0; {
		key := u.text()
		l.limits[key] += int64(u.u64())
	}
}

// addJob adds one of our records of a job.
func (l *ledger) addJob(t *testing.T, id, raw string) {
	t.Helper()
	m, ok := decodeMeta([]byte(raw))
	if !ok {
		t.Errorf("the record of job %s cannot be read", id)
	}
	l.position = max(l.position, m.position)
	if m.trashed {
		l.trashed++
		return
	}
	l.open++
	u := unpacker{b: []byte(raw)}
	u.take(2 + 5*8 + 16)
	u.blob()
	l.addLimits(u.take(u.u16()))
	if m.claim || m.foreign {
		l.claimed++
	}
	if m.claim {
		l.addLimits(m.extra)
		l.epoch = max(l.epoch, m.token.Epoch)
	}
}

// countKeys goes through all keys of a board.
func countKeys(ctx context.Context, t *testing.T, c *redis.Client, k *keys) ledger {
	t.Helper()
	l := ledger{limits: map[string]int64{}}
	listings, trash := hash(ctx, t, c, k.listings), hash(ctx, t, c, k.trash)
	jobs := hash(ctx, t, c, k.jobs)
	for id, raw := range jobs {
		l.addJob(t, id, raw)
		_, listed := listings[id]
		_, trashed := trash[id]
		if isTrashed := flagsOf(raw)&flagTrashed != 0; isTrashed != trashed || isTrashed == listed {
			t.Errorf("job %s is by our record in the trash: %v; it is there: %v, and on the board: %v", id, isTrashed, trashed, listed)
		}
	}
	for id := range listings {
		if _, ok := jobs[id]; !ok {
			t.Errorf("job %s is on the board, and no record of ours", id)
		}
	}
	ended := hash(ctx, t, c, k.ended)
	l.ended = int64(len(ended))
	for id, raw := range ended {
		p, _ := decodePast([]byte(raw))
		l.position = max(l.position, p.position)
		if _, ok := jobs[id]; ok {
			t.Errorf("job %s has ended, and stands", id)
		}
	}
	for _, raw := range hash(ctx, t, c, k.finals) {
		l.finals++
		l.bytes += int64(binary.BigEndian.Uint64([]byte(raw)))
	}
	if text := c.Get(ctx, k.sequence).Val(); text != "" {
		l.posts, _ = strconv.ParseInt(text, 10, 64)
	}
	return l
}

// audit compares what a board's counters say with its keys, of which all posts are ours
// but so many.
func audit(ctx context.Context, t *testing.T, c *redis.Client, k *keys, foreignPosts int64) bool {
	t.Helper()
	if t.Failed() {
		return false
	}
	l, head := countKeys(ctx, t, c, k), hash(ctx, t, c, k.head)
	number := func(name string) int64 { return parseInt(head[name]) }
	same := func(what string, said, want int64) {
		t.Helper()
		if said != want {
			t.Errorf("%s is said to be %d, and is %d by the keys", what, said, want)
		}
	}
	same("open", number("open"), l.open)
	same("claimed", number("claimed"), l.claimed)
	same("finals", number("finals"), l.finals)
	same("bytes", number("bytes"), l.bytes)
	same("posts", number("posts")+foreignPosts, l.posts)
	same("the order of the trash", c.ZCard(ctx, k.trashBy).Val(), l.trashed)
	same("the order of what ended", c.ZCard(ctx, k.endedBy).Val(), l.ended)
	same("the order of the finals", c.ZCard(ctx, k.finalsBy).Val(), l.finals)
	same("the times of the finals", c.ZCard(ctx, k.finalsDue).Val(), l.finals)
	if at := number("position"); at < int64(l.position) {
		t.Errorf("the position is %d, and a job has %d", at, l.position)
	}
	if at := number("epoch"); at < int64(l.epoch) {
		t.Errorf("the epoch is %d, and a claim has %d", at, l.epoch)
	}
	last, err := c.XRevRangeN(ctx, k.events, "+", "-", 1).Result()
	if err != nil || len(last) == 1 && strings.TrimSuffix(last[0].ID, "-0") != head["position"] {
		t.Errorf("the stream's last entry is %v, and the position %s (%v)", last, head["position"], err)
	}
	limits := map[string]int64{}
	for key, text := range hash(ctx, t, c, k.limits) {
		limits[key] = parseInt(text)
	}
	if !maps.Equal(limits, l.limits) {
		t.Errorf("the limits stand at %v, and are %v by the keys", limits, l.limits)
	}
	return !t.Failed()
}
