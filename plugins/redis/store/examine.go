package store

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/sleep"
)

// How an examination reads. It shares the server with everybody who works: after
// each step it rests for so many times what the step took.
const (
	examineStep = 1000 // keys of one step
	examineRest = 9
)

// clockApart is how far the clocks of two machines may be apart without a word.
const clockApart = 5 * time.Second

// Examine looks at the server's settings that may cost jobs, at its clock, and
// for keys of jobs that are not there any more.
func (s *Store) Examine(ctx context.Context, name string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		b, err := s.board(name)
		if err != nil {
			yield(driver.Finding{}, err)
			return
		}
		e := &examination{store: s, keys: b.standing.Load().keys, yield: yield}
		for _, look := range []func(context.Context) error{e.eviction, e.notifications, e.clock, e.orphans} {
			if err := look(ctx); err != nil {
				yield(driver.Finding{}, readFailed(ctx, err))
				return
			}
			if e.over {
				return
			}
		}
	}
}

// examination looks at one board.
type examination struct {
	store *Store
	keys  keys
	yield func(driver.Finding, error) bool
	over  bool // nobody wants to hear more
}

func (e *examination) tell(f driver.Finding) {
	if !e.over {
		e.over = !e.yield(f, nil)
	}
}

// eviction finds out whether Redis may take keys away when its memory is full.
func (e *examination) eviction(ctx context.Context) error {
	info, err := e.store.client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return err
	}
	policy := info["Memory"]["maxmemory_policy"]
	f := driver.Finding{
		Code: "evicts-jobs", Severity: driver.Problem, Subject: "maxmemory-policy " + policy,
		Problem: "when its memory is full, Redis takes away whole boards",
		Mend:    "redis-cli CONFIG SET maxmemory-policy noeviction",
	}
	switch {
	case policy == "noeviction" || policy == "":
		return nil
	case strings.HasPrefix(policy, "volatile"):
		f.Code, f.Severity, f.Problem = "evicts-claims", driver.Warning, "when its memory is full, Redis takes away claims that have an expiry, and others get the jobs"
	}
	if info["Memory"]["maxmemory"] == "0" {
		f.Severity, f.Problem = driver.Note, f.Problem+"; it has no limit of memory now"
	}
	e.tell(f)
	return nil
}

// notifications finds out whether TaskFlow's claims are seen at once.
func (e *examination) notifications(ctx context.Context) error {
	f := driver.Finding{
		Code: "no-notifications", Severity: driver.Note, Subject: "notify-keyspace-events",
		Problem: "Redis does not tell of claims that other programs make and end, so that boardd looks for them and sees them later on large boards",
		Mend:    "redis-cli CONFIG SET notify-keyspace-events Kg$x",
	}
	if _, single := e.store.client.(*redis.Client); !single {
		f.Problem, f.Mend = "on a cluster boardd does not use keyspace notifications, and looks for other programs' changes by itself", ""
		e.tell(f)
		return nil
	}
	if !e.store.notifies(ctx) {
		e.tell(f)
	}
	return nil
}

// clock compares the server's clock with ours, and with what it said before.
func (e *examination) clock(ctx context.Context) error {
	before := time.Now()
	now, err := e.store.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	if apart := now.Sub(before.Add(time.Since(before) / 2)); apart.Abs() > clockApart {
		e.tell(driver.Finding{
			Code: "clocks-apart", Severity: driver.Warning, Subject: "TIME",
			Problem: fmt.Sprintf("the clocks of Redis and of this machine are %v apart: times that people give, such as notBefore, mean something else there", apart.Abs().Round(time.Second)),
		})
	}
	entries, err := e.store.client.XRevRangeN(ctx, e.keys.events, "+", "-", 1).Result()
	if err != nil || len(entries) == 0 {
		return err
	}
	last, err := decodeEntry(&entries[0])
	if err != nil || len(last.events) == 0 {
		return nil //nolint:nilerr // what cannot be read tells no time
	}
	if ahead := last.events[len(last.events)-1].at.Sub(now); ahead > clockApart {
		e.tell(driver.Finding{
			Code: "clock-went-back", Severity: driver.Warning, Subject: "TIME",
			Problem: fmt.Sprintf("the board's last change is dated %v after the server's present time: its clock was set back, and what is remembered is kept for that much longer", ahead.Round(time.Second)),
		})
	}
	return nil
}

// orphans looks for keys that name a job which is not on the board.
func (e *examination) orphans(ctx context.Context) error {
	client, err := e.server(ctx)
	if err != nil {
		return err
	}
	for _, suffix := range []string{".owned", ".last_modified"} {
		pattern := escape(e.keys.prefix) + strings.Repeat("[0-9a-f-]", 36) + suffix
		for cursor, more := uint64(0), true; more && !e.over; more = cursor != 0 {
			begun := time.Now()
			var names []string
			if names, cursor, err = client.Scan(ctx, cursor, pattern, examineStep).Result(); err != nil {
				return err
			}
			if err := e.orphansAmong(ctx, names, suffix); err != nil {
				return err
			}
			if err := sleep.For(ctx, examineRest*time.Since(begun)); err != nil {
				return err
			}
		}
	}
	return nil
}

// server is where the board's keys are: in a cluster, one of its nodes.
func (e *examination) server(ctx context.Context) (redis.Cmdable, error) {
	if cluster, ok := e.store.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, e.keys.listings)
	}
	return e.store.client, nil
}

func (e *examination) orphansAmong(ctx context.Context, names []string, suffix string) error {
	if len(names) == 0 {
		return nil
	}
	listed := make([]*redis.BoolCmd, len(names))
	owners := make([]*redis.StringCmd, len(names))
	_, err := e.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			listed[i] = p.HExists(ctx, e.keys.listings, strings.TrimSuffix(strings.TrimPrefix(name, e.keys.prefix), suffix))
			owners[i] = p.Get(ctx, name)
		}
		return nil
	})
	if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") && err != redis.Nil { //nolint:errorlint // go-redis gives it bare
		return err
	}
	for i, name := range names {
		if there, err := listed[i].Result(); err != nil || there || owners[i].Err() == redis.Nil { //nolint:errorlint // likewise
			continue // it stands, or has gone meanwhile
		}
		e.tell(orphan(name, suffix, owners[i].Val()))
	}
	return nil
}

func orphan(name, suffix, owner string) driver.Finding {
	f := driver.Finding{
		Code: "leaked-last-modified", Severity: driver.Note, Subject: name,
		Problem: "TaskFlow left it behind when it put the job into the trash", Mend: "redis-cli DEL " + quoted(name),
	}
	if suffix == ".owned" {
		f.Code, f.Severity = "owner-without-job", driver.Warning
		f.Problem = fmt.Sprintf("%q holds a job that is not on the board", owner)
	}
	return f
}

// quoted is a word as a shell takes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

var _ driver.Examiner = (*Store)(nil)
