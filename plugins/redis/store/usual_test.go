package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestUsual takes random ops, between which other programs change keys, through the script
// as it is and through one that knows no usual ops: all answers and all keys are the same
// after each step. Time is what the test says.
func TestUsual(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	c := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	timed := rewritten(t, applyScript.text, "call('TIME')", "call('HMGET', 'clock', 's', 'u')")
	timed = rewritten(t, timed, "call('PTTL', okey(id))", "(call('EXISTS', okey(id)) == 1 and 3600000 or -2)")
	const way = "if answer then return answer end"
	const free = "if one then return nil, one end"
	usual := rewritten(t, timed, way, "if answer then call('HINCRBY', 'ways', raw:byte(), 1) return answer end")
	usual = rewritten(t, usual, free, "if one then call('HINCRBY', 'ways', 'free', 1) return nil, one end")
	general := rewritten(t, timed, way, "")
	general = rewritten(t, general, "local quick = group_.passage == '' and usual_[byte(raw)]", "local quick")
	general = rewritten(t, general, "local one = usual_.free(o, c, out)", "local one")
	ways := map[string]int{}
	for seed := range uint64(4) {
		one := walk{t: t, c: c, random: rand.New(rand.NewPCG(seed, 1)), text: general} //nolint:gosec // the same each time
		other := walk{t: t, c: c, random: rand.New(rand.NewPCG(seed, 1)), text: usual} //nolint:gosec // likewise
		want, got := one.take(250), other.take(250)
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("seed %d, step %d:\n%s\nthe usual way:\n%s", seed, i, want[i], got[i])
			}
		}
		for name, n := range hash(t.Context(), t, c, "ways") {
			times, _ := strconv.Atoi(n) // Redis counted
			ways[name] += times
		}
	}
	for _, name := range []string{"1", "6", "free"} { // a post, a consuming, a candidate
		if ways[name] < 20 {
			t.Errorf("%d usual ops were of the sort %q, want 20 at least", ways[name], name)
		}
	}
}

// rewritten replaces what stands in the script exactly once.
func rewritten(t *testing.T, text, old, by string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("the script has %q %d times", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, by, 1)
}

// A walk is a row of random steps on an empty Redis.
type walk struct {
	t      *testing.T
	c      *redis.Client
	random *rand.Rand
	text   string

	script *script
	keys   keys
	said   []string
	tokens []driver.Claimed
	step   uint64
	count  uint64
	clock  int64
}

func (w *walk) take(steps int) []string {
	w.do("FLUSHALL")
	w.script = &script{text: w.text, sha: w.c.ScriptLoad(w.t.Context(), w.text).Val()}
	w.keys, w.clock = keysOf("t:"), 1_700_000_000
	for range steps {
		w.step++
		w.clock += w.random.Int64N(3)
		w.do("HSET", "clock", "s", w.clock, "u", w.random.IntN(1_000_000))
		if w.one(3) {
			w.interfere()
		}
		ops := make([]driver.Op, 1+w.random.IntN(5))
		for i := range ops {
			ops[i] = w.op()
		}
		w.apply(ops)
	}
	return w.said
}

func (w *walk) do(args ...any) {
	w.t.Helper()
	if err := w.c.Do(w.t.Context(), args...).Err(); err != nil && err != redis.Nil {
		w.t.Fatal(args, err)
	}
}

// one reports whether something comes to pass that does once in n times.
func (w *walk) one(n int) bool { return w.random.IntN(n) == 0 }

// id is one of few jobs, others after a while.
func (w *walk) id() job.ID { return w.fixed(w.step/5+w.random.Uint64N(12), 1) }

func (w *walk) fixed(n uint64, sort byte) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], n)
	b[15] = sort
	return b
}

func (w *walk) fresh() [16]byte {
	w.count++
	return w.fixed(w.count, 2)
}

func (w *walk) op() driver.Op {
	switch w.random.IntN(7) {
	case 0, 1:
		return w.post()
	case 2, 3:
		return w.claim()
	case 4, 5:
		if len(w.tokens) > 0 {
			return w.end()
		}
	}
	op := driver.Op{Kind: driver.Update, Job: w.id(), Request: w.fresh(), Event: job.OperationEvent}
	switch w.random.IntN(5) {
	case 0:
		op.Kind, op.Event = driver.Trash, job.TrashedEvent
	case 1:
		op.Kind, op.Event = driver.Restore, job.Restored
	case 2:
		op.Hold = &driver.Hold{Always: w.one(2)}
	case 3:
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte("b")}}
	default:
		op.Status = w.status()
	}
	return op
}

func (w *walk) status() *[]byte {
	s := []byte(strings.Repeat("s", w.random.IntN(40)))
	return &s
}

func (w *walk) post() driver.Op {
	id := w.id()
	op := driver.Op{Kind: driver.Post, Job: id, Event: job.Posted, Posting: &driver.Posting{
		ID: id, Name: "n", Details: []byte(`{"a":"` + strings.Repeat("x", w.random.IntN(300)) + `"}`), Digest: w.fixed(uint64(w.random.IntN(3)), 3),
		Extra: make([]byte, w.random.IntN(3)),
	}}
	if !w.one(4) {
		op.Request = w.fresh()
	}
	switch w.random.IntN(14) {
	case 0:
		op.Limits = []driver.Limit{{Key: "l", Weight: 1, Max: 3}}
	case 1:
		op.Status = w.status()
	case 2:
		op.Hold = &driver.Hold{For: time.Hour}
	case 3:
		op.Reason = "because"
	case 4:
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte("b")}}
	case 5:
		op.Keys = []driver.Key{{Name: "k", Open: true}}
	}
	return op
}

func (w *walk) claim() driver.Op {
	spec := &driver.ClaimSpec{Owner: []string{"me", "you"}[w.random.IntN(2)], Count: 1 + w.random.IntN(3), Lease: 3 * time.Hour, Remember: w.one(2)} // no lease runs out
	if w.one(4) {
		spec.NoExpiry, spec.Lease = true, 0
	}
	if !w.one(4) {
		spec.Parts = driver.Details | driver.Parts(w.random.IntN(4))
	}
	first := w.step/5 + w.random.Uint64N(10)
	for i := range 1 + w.random.Uint64N(3) {
		candidate := driver.Candidate{Job: w.fixed(first+i, 1), Nonce: w.fresh()}
		if w.one(3) {
			candidate.Version = uint64(1 + w.random.IntN(2))
		}
		if w.one(2) {
			candidate.Status = w.status()
		}
		switch w.random.IntN(8) {
		case 0:
			candidate.Limits = []driver.Limit{{Key: "m", Weight: 1, Max: 2}}
		case 1:
			candidate.Most = 2 * time.Hour
		}
		spec.Candidates = append(spec.Candidates, candidate)
	}
	op := driver.Op{Kind: driver.Claim, Request: w.fresh(), Event: job.ClaimedEvent, Claim: spec}
	if w.one(5) {
		op.Reason = "now"
	}
	return op
}

// end ends a claim that was made once, and may have ended.
func (w *walk) end() driver.Op {
	claim := w.tokens[max(len(w.tokens)-1-w.random.IntN(4), 0)]
	op := driver.Op{Kind: driver.Remove, Job: claim.Job, Request: w.fresh(), Precondition: driver.HeldByToken, Token: claim.Token, Event: job.ConsumedEvent}
	switch w.random.IntN(20) {
	case 0:
		op.Kind, op.Event = driver.Release, job.Abandoned
	case 1:
		op.Reason = "done"
	case 2:
		op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, KeepPosting: true, Data: []byte("d")}
	case 3:
		op.Ending = &driver.Ending{Outcome: job.Canceled}
	case 4:
		op.Token.Nonce[3]++
	case 5:
		op.Token.Generation++
	case 6:
		op.Status = w.status()
	case 7:
		op.Version = uint64(1 + w.random.IntN(4))
	case 8:
		op.Kind, op.Lease, op.Event = driver.Extend, time.Hour, job.Extended
	}
	return op
}

// interfere is another program, or damage.
func (w *walk) interfere() {
	job := w.id()
	if len(w.tokens) > 0 && w.one(2) {
		job = w.tokens[len(w.tokens)-1].Job
	}
	id := job.String()
	switch w.random.IntN(15) {
	case 0:
		w.do("DEL", w.keys.owner(id))
	case 1:
		w.do("SET", w.keys.owner(id), []string{"me", "you", "they", holder}[w.random.IntN(4)])
	case 2, 10, 11, 12:
		w.do("SET", w.keys.modified(id), "another time")
	case 3:
		w.do("HDEL", w.keys.listings, id)
	case 4:
		w.do("HDEL", w.keys.jobs, id)
	case 5:
		raw := w.c.HGet(w.t.Context(), w.keys.jobs, id).Val()
		if len(raw) > 0 && w.one(4) {
			w.do("HSET", w.keys.jobs, id, raw[:w.random.IntN(len(raw))])
		}
	case 6:
		w.do("DEL", w.keys.owner(id))
		w.do("RPUSH", w.keys.owner(id), "no text")
	case 7:
		w.do("DEL", w.keys.owner(id), w.keys.modified(id))
		w.do("HDEL", w.keys.jobs, id)
	case 8:
		w.do("HDEL", w.keys.ended, id)
	case 9, 13, 14: // held back, without the flag that says so
		all := w.c.HGetAll(w.t.Context(), w.keys.jobs).Val()
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if raw := []byte(all[id]); len(raw) > 64 && w.one(3) {
				raw[27] = 7
				w.do("HSET", w.keys.jobs, id, raw)
				break
			}
		}
	}
}

func (w *walk) apply(ops []driver.Op) {
	numbers := make([]byte, 0, 64)
	for _, n := range []uint64{1, 0, uint64(time.Minute / time.Microsecond), 100, 3, 1 << 20, 1000, 16} {
		numbers = binary.BigEndian.AppendUint64(numbers, n)
	}
	args := []any{w.keys.prefix, numbers, w.keys.wake, "a board's name..", "", "*"}
	var said strings.Builder
	for i := range ops {
		raw, err := encodeOp(&ops[i], capabilities())
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&said, "%q\n", raw)
		args = append(args, raw)
	}
	reply, err := w.script.run(w.t.Context(), w.c, w.keys.script(), args...).Slice()
	if err != nil || len(reply) != 6 {
		w.t.Fatal(reply, err)
	}
	list, _ := reply[5].([]any)
	for i := range list {
		answer := answerText(list[i])
		fmt.Fprintf(&said, "answer %q\n", answer)
		w.tokens = append(w.tokens, decodeResult(answer, &ops[i], scene{}).Claims...)
	}
	w.said = append(w.said, said.String()+w.state())
}

// state is all that Redis has.
func (w *walk) state() string {
	ctx := w.t.Context()
	var b strings.Builder
	for _, key := range slices.Sorted(slices.Values(w.c.Keys(ctx, "t:*").Val())) {
		if w.c.Type(ctx, key).Val() != "hash" {
			fmt.Fprintf(&b, "%s %v %q\n", key, w.c.PTTL(ctx, key).Val() > 0, w.c.Dump(ctx, key).Val())
			continue
		}
		all := hash(ctx, w.t, w.c, key)
		for _, field := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "%s %q %q\n", key, field, all[field])
		}
	}
	return b.String()
}
