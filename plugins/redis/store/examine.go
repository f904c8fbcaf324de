package store

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// MaxLeaked is how many leaked keys an examination names; more are only counted.
const MaxLeaked = 100

// clockTolerance is how far Redis's clock may be from this machine's.
const clockTolerance = 5 * time.Second

// Examine says what is wrong with a board in Redis. It sends reads only.
func (s *Store) Examine(ctx context.Context, name string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		b, err := s.board(name)
		if err == nil {
			x := &examination{board: b, opening: b.opening.Load(), yield: func(f driver.Finding) bool { return yield(f, nil) }}
			err = x.run(ctx)
		}
		if err != nil && err != errStopped { //nolint:errorlint // it is never wrapped
			yield(driver.Finding{}, err)
		}
	}
}

type examination struct {
	board   *board
	opening *opening
	yield   func(driver.Finding) bool
}

func (x *examination) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{x.settings, x.memory, x.clock, x.claims, x.leaked} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *examination) find(code string, severity driver.Severity, subject, problem, mend string) error {
	if !x.yield(driver.Finding{Code: code, Severity: severity, Subject: subject, Problem: problem, Mend: mend}) {
		return errStopped
	}
	return nil
}

// settings looks at what the server is configured to do with jobs.
func (x *examination) settings(ctx context.Context) error {
	s := x.board.store
	values := map[string]string{}
	for _, name := range []string{"maxmemory", "maxmemory-policy"} {
		v, err := s.client.ConfigGet(ctx, name).Result()
		if err != nil {
			return x.find("settings-unknown", driver.Note, "CONFIG GET "+name,
				"this user may not ask how Redis is configured: "+err.Error(), "")
		}
		values[name] = v[name]
	}
	policy := values["maxmemory-policy"]
	if policy != "noeviction" && values["maxmemory"] != "0" {
		severity, what := driver.Warning, "claims with a lease"
		if strings.HasPrefix(policy, "allkeys") {
			severity, what = driver.Problem, "jobs"
		}
		err := x.find("eviction", severity, "maxmemory-policy "+policy,
			"when memory runs out, Redis drops "+what+" without a word", "redis-cli CONFIG SET maxmemory-policy noeviction")
		if err != nil {
			return err
		}
	}
	if err := x.others(); err != nil {
		return err
	}
	if x.opening.foreign && !s.notifies(ctx) {
		err := x.find("notifications-off", driver.Note, "notify-keyspace-events",
			"other programs' claims are found by searching: within a second on a board of up to 40000 jobs. Redis would name them at once with "+
				"Kg$x, and every change of a job would cost it more: docs/redis.md says how much", "")
		if err != nil {
			return err
		}
	}
	durability, err := s.durability(ctx)
	if err != nil {
		return err
	}
	switch durability {
	case driver.Volatile:
		return x.find("not-durable", driver.Warning, "appendonly no", "jobs are lost when Redis stops", "redis-cli CONFIG SET appendonly yes")
	case driver.Delayed:
		return x.find("not-durable", driver.Note, "appendfsync", "a crash of the machine loses the last moments", "redis-cli CONFIG SET appendfsync always")
	}
	return nil
}

// others looks whether other programs write to the board though none is said to.
func (x *examination) others() error {
	if x.opening.foreign || !x.board.others.write() {
		return nil
	}
	return x.find("foreign-writers", driver.Warning, "foreign = false",
		"other programs write to the board: it is searched for their changes all the same, since one was found",
		"set foreign = true in the board's config")
}

// clock compares Redis's clock with this machine's and with the board's past.
func (x *examination) clock(ctx context.Context) error {
	client := x.board.store.client
	before := time.Now()
	now, err := client.Time(ctx).Result()
	if err != nil {
		return readFailed(ctx, err)
	}
	if d := now.Sub(before); d.Abs() > clockTolerance+time.Since(before) {
		err := x.find("clock-differs", driver.Warning, "TIME", fmt.Sprintf("Redis's clock is %v from this machine's, and leases and delays count on it", d.Round(time.Second)), "")
		if err != nil {
			return err
		}
	}
	last, err := client.XRevRangeN(ctx, x.opening.keys.events, "+", "-", 1).Result()
	if err != nil {
		return readFailed(ctx, err)
	}
	if len(last) == 0 {
		return nil
	}
	e, err := decodeEntry(&last[0])
	if err == nil && len(e.events) > 0 && e.events[0].at.Sub(now) > time.Second {
		return x.find("clock-went-back", driver.Warning, "TIME",
			fmt.Sprintf("the board's last change was at %s, which is still to come by Redis's clock: leases last longer than they should", e.events[0].at.Format(time.RFC3339)), "")
	}
	return nil
}

// claims looks for claims that nothing ends.
func (x *examination) claims(ctx context.Context) error {
	for page, err := range x.board.store.Scan(ctx, x.board.name, driver.ScanRequest{}) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			r := &page.Records[i]
			if r.State != job.Claimed || !r.Holder.Foreign || !r.Holder.NoExpiry {
				continue
			}
			id := r.Posting.ID.String()
			err := x.find("claim-without-expiry", driver.Warning, "job "+id,
				fmt.Sprintf("%q claims it without an end: if it died, the job is stuck", r.Holder.Owner), "boardd job release "+id+" --reason 'its worker died'")
			if err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, time.Duration(len(page.Records))*time.Second/SweepRate); err != nil {
			return ended(ctx)
		}
	}
	return nil
}

// leaked looks for keys of jobs that are not on the board any more.
func (x *examination) leaked(ctx context.Context) error {
	k := &x.opening.keys
	var scanner redis.Cmdable = x.board.store.client
	if cluster, ok := x.board.store.client.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, k.head)
		if err != nil {
			return readFailed(ctx, err)
		}
		scanner = node
	}
	count := 0
	for cursor := uint64(0); ; {
		names, next, err := scanner.Scan(ctx, cursor, escape(k.prefix)+"*", scanCount).Result()
		if err != nil {
			return readFailed(ctx, err)
		}
		for _, name := range names {
			leaked, err := x.isLeaked(ctx, name)
			if err != nil {
				return err
			}
			if !leaked {
				continue
			}
			if count++; count > MaxLeaked {
				continue
			}
			if err := x.findLeaked(name); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
		if err := sleep.For(ctx, time.Millisecond); err != nil {
			return ended(ctx)
		}
	}
	if count > MaxLeaked {
		return x.find("leaked-keys", driver.Note, k.prefix, fmt.Sprintf("there are %d such keys in all", count), "")
	}
	return nil
}

func (x *examination) findLeaked(name string) error {
	mend := "redis-cli DEL " + strconv.Quote(name)
	if strings.HasSuffix(name, ".owned") {
		return x.find("owner-without-job", driver.Warning, name, "somebody owns a job that is not on the board", mend)
	}
	return x.find("leaked-key", driver.Note, name, "TaskFlow leaves this key behind for every job that it trashes", mend)
}

// isLeaked reports whether a key belongs to a job that is not on the board.
func (x *examination) isLeaked(ctx context.Context, name string) (bool, error) {
	k := &x.opening.keys
	id, suffix, ok := strings.Cut(strings.TrimPrefix(name, k.prefix), ".")
	if !ok || suffix != "owned" && suffix != "last_modified" {
		return false, nil
	}
	if _, err := job.ParseID(id); err != nil {
		return false, nil //nolint:nilerr // it is a key of something else
	}
	there, err := x.board.store.client.HExists(ctx, k.listings, id).Result()
	if err != nil {
		return false, readFailed(ctx, err)
	}
	if there {
		return false, nil
	}
	// It may have been taken off the board since the key was found.
	n, err := x.board.store.client.Exists(ctx, name).Result()
	if err != nil {
		return false, readFailed(ctx, err)
	}
	return n == 1, nil
}
