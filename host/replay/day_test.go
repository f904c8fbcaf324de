package replay_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// fewSeeds is on how many days a set of policies is tried that few boards have; daySeeds is of
// the others.
const fewSeeds = 4

// days are the rules under which a recorded day has to come out as it was.
var days = []struct {
	name  string
	rules map[string]map[string]any // parameters by policy
	order string                    // the one that orders
	own   policy.Policy             // orders instead
	gate  policy.Policy             // says besides who may have what
}{
	{name: "none"},
	{name: "aging", rules: map[string]map[string]any{"aging": {"step": "20m"}}, order: "aging"},
	{name: "labels", rules: map[string]map[string]any{"labels": {"keys": []any{"gpu", "zone"}}}, order: "labels"},
	{name: "labels and aging", rules: map[string]map[string]any{"labels": {"keys": []any{"gpu", "zone"}}, "aging": nil}, order: "aging"},
	{
		name: "labels and fair-share", rules: map[string]map[string]any{
			"labels": {"keys": []any{"gpu", "zone"}}, "fair-share": {"by": "label:team", "weights": map[string]any{"a": "2.5"}},
		}, order: "fair-share",
	},
	{
		name: "labels and limit", rules: map[string]map[string]any{
			"labels": {"keys": []any{"gpu"}}, "limit": {"by": "label:team", "max": 3, "limits": map[string]any{"b": "1"}},
		}, order: "limit",
	},
	{
		name: "windows and retry-first", rules: map[string]map[string]any{
			"windows": {"windows": map[string]any{"day": "mon-sun 08:00-18:00", "noon": "mon-sun 11:30-13:15"}}, "retry-first": nil,
		}, order: "retry-first",
	},
	{name: "deadline", rules: map[string]map[string]any{"deadline": nil}, order: "deadline"},
	{name: "time", own: byAge{}},
	{name: "until", gate: byDelay{}},
	{name: "labels and the oldest", rules: map[string]map[string]any{"labels": {"keys": []any{"gpu", "zone"}}}, own: byOldest{}},
}

// What a simulation of the present policies says of a recorded day is what happened:
// each claim was given the same job.
func TestRecordedDay(t *testing.T) {
	t.Parallel()
	for _, d := range days {
		seeds := daySeeds
		if few := d.own != nil || d.gate != nil || d.order == "" || d.order == "deadline" || d.order == "retry-first"; few {
			seeds = fewSeeds
		}
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("%s/%d", d.name, seed), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "day")
				rules := rulesOf(t, d.rules, d.order)
				if d.own != nil {
					rules.Ordering = &board.Rule{Policy: d.own}
				}
				if d.gate != nil {
					rules.Eligibility = append(rules.Eligibility, board.Rule{Policy: d.gate})
				}
				var happened []replay.Grant
				synctest.Test(t, func(t *testing.T) {
					happened = newDay(t, dir, rules, seed).spend(200)
				})
				sameDay(t, dir, rules, happened)
			})
		}
	}
}

// byOldest ranks teams by everything that there is of them, the time included.
type byOldest struct{}

func (byOldest) Manifest() policy.Manifest {
	return policy.Manifest{Name: "by-oldest", Ordering: true, ByTime: true, Tick: time.Minute, Counts: "label:team"}
}

func (byOldest) Eligible(context.Context, *policy.Batch, []policy.Verdict) error { return nil }

// Score makes many kinds of jobs of each team.
func (byOldest) Score(_ context.Context, b *policy.Batch, scores []int64) error {
	for i := range scores {
		scores[i] = int64(b.Jobs[i].Attempt) + int64(b.Jobs[i].ID[15]%5)
	}
	return nil
}

func (byOldest) RankKeys(_ context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	for i, k := range keys.Keys {
		ranks[i].Score = int64(keys.Now.Sub(k.Oldest)/time.Second) - 600*k.Running - 97*k.Served + 13*k.Waiting
		ranks[i].Full = k.Key == "a" && k.Running > 5
	}
	return nil
}

// A board does not go through its order for a claim of a chosen job, so that it asks the policy
// once more for the next claim of that minute: by then the oldest of the key may be another one.
func TestChosenJobBeforeAnother(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "day")
	rules := board.Rules{Ordering: &board.Rule{Policy: byOldest{}}}
	var happened []replay.Grant
	var other job.ID
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, dir, rules, 0)
		post := func(team string) job.ID {
			results, err := d.board.Post(d.ctx(), []job.Posting{{Name: team, Labels: []job.Label{{Key: "team", Value: team}}}})
			if err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
			return results[0].Job.ID
		}
		chosen := post("x")
		time.Sleep(50 * time.Minute)
		other = post("y")
		time.Sleep(40 * time.Minute)
		post("x")
		time.Sleep(10 * time.Minute)
		d.ask(board.ClaimRequest{Owner: "chooser", IDs: []job.ID{chosen}})
		time.Sleep(time.Second)
		d.ask(board.ClaimRequest{Owner: "worker", Max: 1})
		synctest.Wait() // it is recorded
		d.end()
		happened = d.happened
	})
	if len(happened) != 2 || happened[1].Job != other {
		t.Fatalf("claims were given %+v: want the job of the other team second", happened)
	}
	said, err := replay.Grants(t.Context(), recording.Read(dir), rules)
	if diff := cmp.Diff(happened, said); err != nil || diff != "" {
		t.Errorf("happened, and said: %s, %v", diff, err)
	}
}

// byDelay defers jobs for some seconds, of which its ticks know nothing.
type byDelay struct{}

func (byDelay) Manifest() policy.Manifest {
	return policy.Manifest{Name: "by-delay", Eligibility: true, ByTime: true, Tick: time.Hour}
}

func (byDelay) Eligible(_ context.Context, b *policy.Batch, verdicts []policy.Verdict) error {
	for i := range verdicts {
		verdicts[i].Decision = policy.Allow
		if until := b.Jobs[i].CreatedAt.Add(time.Duration(b.Jobs[i].ID[15]) * 7 * time.Second); until.After(b.Now) {
			verdicts[i] = policy.Verdict{Decision: policy.Defer, Until: until}
		}
	}
	return nil
}

func (byDelay) Score(context.Context, *policy.Batch, []int64) error { return nil }

// sameDay simulates the rules of a recorded day.
func sameDay(t *testing.T, dir string, rules board.Rules, happened []replay.Grant) {
	t.Helper()
	if len(happened) < 40 {
		t.Fatalf("a day of %d claims", len(happened))
	}
	said, err := replay.Grants(t.Context(), recording.Read(dir), rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(happened, said); diff != "" {
		for i := range min(len(happened), len(said)) {
			if happened[i] != said[i] {
				t.Fatalf("claim %d of %d: happened %+v\nsaid     %+v", i, len(happened), happened[i], said[i])
			}
		}
		t.Fatalf("%d claims happened, %d are said", len(happened), len(said))
	}
	r, err := replay.Run(t.Context(), recording.Read(dir), rules, rules, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Claims != len(happened) || r.AsRecorded != r.Claims || r.Differ != 0 || r.Present.Errors != 0 || len(r.Inexact) > 0 {
		t.Errorf("the report: %+v", r)
	}
}

// rulesOf makes a board's rules of policies that boardd brings.
func rulesOf(t *testing.T, all map[string]map[string]any, order string) (rules board.Rules) {
	t.Helper()
	for name, set := range all {
		p, err := policies.New(name, set)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		rule := board.Rule{Policy: p, Name: name}
		if p.Manifest().Eligibility {
			rules.Eligibility = append(rules.Eligibility, rule)
		}
		if name == order {
			rules.Ordering = &rule
		}
	}
	return rules
}

// day is a board that is recorded, and its workers.
type day struct {
	*testing.T
	board *board.Board
	rnd   *rand.Rand
	log   *recording.Log
	end   func()

	posted  int
	open    []job.ID // posted and not known to have ended
	trashed []job.ID

	mu       sync.Mutex
	held     []held
	happened []replay.Grant
	waiting  sync.WaitGroup
}

// held is a claim of a worker.
type held struct {
	board.Ref
	worker string
}

// newDay starts a board.
func newDay(t *testing.T, dir string, rules board.Rules, seed uint64) *day {
	t.Helper()
	store, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &day{T: t, rnd: rand.New(rand.NewPCG(seed, 1)), log: recording.New(recording.Options{Folder: dir, Board: "a/b", Keep: 48 * time.Hour})}
	source, take := d.log.Source()
	d.board = board.New(store, board.Spec{
		Name: "day", Rules: rules, Recorder: source, Logger: slog.New(slog.DiscardHandler),
		Retry: board.Retry{MaxAttempts: 4, Backoff: 30 * time.Second, MaxBackoff: 10 * time.Minute},
	})
	take(d.board)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.log.Run(ctx) })
	running.Go(func() { _ = d.board.Run(ctx) })
	if err := d.board.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.end = func() {
		d.waiting.Wait()
		d.log.Flush(t.Context())
		stop()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	return d
}

// spend lets some things happen in a day, and returns the claims.
func (d *day) spend(steps int) []replay.Grant {
	time.Sleep(time.Duration(d.rnd.Int64N(int64(time.Hour))))
	acts := []struct {
		often int
		act   func()
	}{
		{30, d.post},
		{30, d.claim},
		{5, d.claimLater},
		{3, d.claimChosen},
		{22, d.finish},
		{8, d.abandon},
		{6, d.extend},
		{3, d.release},
		{3, d.forget},
		{5, d.prioritize},
		{2, d.trash},
		{2, d.restore},
		{1, d.cancel},
		{2, d.nap},
	}
	sum := 0
	for _, a := range acts {
		sum += a.often
	}
	for range steps {
		time.Sleep(time.Duration(d.rnd.ExpFloat64() * float64(24*time.Hour) / float64(steps)))
		synctest.Wait()
		n := d.rnd.IntN(sum)
		for _, a := range acts {
			if n -= a.often; n < 0 {
				a.act()
				break
			}
		}
		synctest.Wait()
	}
	d.end()
	return d.happened
}

// ctx ends no call.
func (d *day) ctx() context.Context { return d.Context() }

func (d *day) post() {
	list := make([]job.Posting, 1+d.rnd.IntN(4))
	for i := range list {
		p := job.Posting{Name: string(rune('x' + d.rnd.IntN(3))), Priority: job.Priority(d.rnd.IntN(5) - 2)}
		for _, l := range []job.Label{{Key: "prefers.zone", Value: d.pick("n", "s")}, {Key: "requires.gpu", Value: "yes"}, {Key: "team", Value: d.pick("a", "a", "a", "b", "c")}, {Key: "window", Value: d.pick("day", "noon")}} {
			if d.rnd.IntN(3) > 0 {
				p.Labels = append(p.Labels, l)
			}
		}
		if d.rnd.IntN(6) == 0 {
			p.NotBefore = time.Now().Add(time.Duration(d.rnd.Int64N(int64(time.Hour))))
		}
		if d.rnd.IntN(2) == 0 {
			p.Details = fmt.Appendf(nil, `{"deadline": %q}`, time.Now().Add(time.Duration(d.rnd.Int64N(int64(10*time.Hour)))).UTC().Format(time.RFC3339))
		}
		d.posted++
		list[i] = p
	}
	results, err := d.board.Post(d.ctx(), list)
	if err != nil {
		d.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			d.Fatal(r.Err)
		}
		d.open = append(d.open, r.Job.ID)
	}
}

func (d *day) pick(of ...string) string { return of[d.rnd.IntN(len(of))] }

// wants is what one of the workers asks for.
func (d *day) wants() board.ClaimRequest {
	workers := [][]job.Label{nil, {{Key: "gpu", Value: "yes"}}, {{Key: "gpu", Value: "no"}, {Key: "zone", Value: "n"}}, {{Key: "gpu", Value: "yes"}, {Key: "zone", Value: "s"}}, {{Key: "zone", Value: "s"}}}
	n := d.rnd.IntN(len(workers))
	r := board.ClaimRequest{
		Owner: fmt.Sprint("worker-", n), WorkerLabels: workers[n], Max: 1 + d.rnd.IntN(7)/3, Lease: time.Duration(1+d.rnd.IntN(90)) * time.Minute,
	}
	switch d.rnd.IntN(8) {
	case 0:
		r.Names = []string{"x", "z"}
	case 1:
		r.Filter = `attempt < "2"`
	}
	return r
}

func (d *day) claim() { d.ask(d.wants()) }

func (d *day) ask(r board.ClaimRequest) {
	response, err := d.board.Claim(d.ctx(), r)
	if err != nil {
		d.Error(err)
	}
	by := ""
	if len(r.IDs) == 0 {
		by = fmt.Sprint(r.WorkerLabels, r.Names, r.Filter)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range response.Claims {
		d.held = append(d.held, held{board.Ref{ID: c.ID, Owner: c.Owner, Token: d.board.FormatToken(c.ID, c.Token)}, r.Owner})
		d.happened = append(d.happened, replay.Grant{At: time.Now().UTC(), By: by, Job: c.ID})
	}
}

func (d *day) claimLater() {
	r := d.wants()
	r.Wait = time.Duration(1 + d.rnd.Int64N(int64(20*time.Minute)))
	d.waiting.Go(func() { d.ask(r) })
}

func (d *day) claimChosen() {
	if len(d.open) > 0 {
		d.ask(board.ClaimRequest{Owner: "chooser", WorkerLabels: []job.Label{{Key: "gpu", Value: "yes"}}, IDs: []job.ID{d.open[d.rnd.IntN(len(d.open))]}})
	}
}

// one takes one of the claims that are held.
func (d *day) one() ([]board.Ref, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.held) == 0 {
		return nil, false
	}
	at := d.rnd.IntN(len(d.held))
	h := d.held[at]
	d.held = append(d.held[:at], d.held[at+1:]...)
	return []board.Ref{h.Ref}, true
}

// finish, as the others, may come too late: the lease ran out.
func (d *day) finish() {
	if refs, ok := d.one(); ok {
		_, _ = d.board.Consume(d.ctx(), refs)
	}
}

func (d *day) abandon() {
	refs, ok := d.one()
	if !ok {
		return
	}
	var o board.AbandonOptions
	switch after := time.Duration(d.rnd.Int64N(int64(30 * time.Minute))); d.rnd.IntN(4) {
	case 0:
		o.RetryAfter = &after
	case 1:
		o.RetryAfter = new(time.Duration)
	case 2:
		o.RefundAttempt = true
	}
	_, _ = d.board.Abandon(d.ctx(), refs, o)
}

func (d *day) extend() {
	if refs, ok := d.one(); ok {
		_, _ = d.board.Extend(d.ctx(), refs, time.Duration(1+d.rnd.IntN(60))*time.Minute)
		d.held = append(d.held, held{Ref: refs[0]})
	}
}

// forget lets a lease run out.
func (d *day) forget() { d.one() }

func (d *day) release() {
	if refs, ok := d.one(); ok {
		_, _ = d.board.Release(d.ctx(), []job.ID{refs[0].ID}, "", "")
	}
}

// some is one of the jobs that were posted.
func (d *day) some() []job.ID {
	if len(d.open) == 0 {
		return nil
	}
	return []job.ID{d.open[d.rnd.IntN(len(d.open))]}
}

func (d *day) prioritize() {
	if d.rnd.IntN(2) == 0 {
		_, _ = d.board.SetPriority(d.ctx(), d.some(), job.Priority(d.rnd.IntN(5)-2))
		return
	}
	_, _ = d.board.SetOperationPriority(d.ctx(), d.some(), int32(d.rnd.IntN(5)-2))
}

func (d *day) trash() {
	ids := d.some()
	if errs, err := d.board.Trash(d.ctx(), nil, ids, "no"); err == nil && len(ids) > 0 && errs[0] == nil {
		d.trashed = append(d.trashed, ids...)
	}
}

func (d *day) restore() {
	if len(d.trashed) > 0 {
		_, _ = d.board.Restore(d.ctx(), d.trashed[:1])
		d.trashed = d.trashed[1:]
	}
}

func (d *day) cancel() { _, _ = d.board.Cancel(d.ctx(), d.some(), true) }

// nap is a time in which nothing happens but what time brings.
func (d *day) nap() { time.Sleep(time.Duration(d.rnd.Int64N(int64(time.Hour)))) }
