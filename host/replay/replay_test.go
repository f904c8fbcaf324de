package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// script writes a recording in words, one change a line: SECOND WHAT, where WHAT is
// one of
//
//	begin | gap
//	open NAME | post NAME [KEY=VALUE...]     labels; created=S, before=S, deadline=S, priority=P and attempt=N are not
//	claim NAME [by KEY=VALUE...]             without by: by somebody unknown; names=N and filter=F are not labels
//	gone NAME
func script(t *testing.T, text string) iter.Seq2[recording.Line, error] {
	t.Helper()
	var list []recording.Line
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var second float64
		if _, err := fmt.Sscan(words[0], &second); err != nil {
			t.Fatal(line, err)
		}
		l := recording.Line{At: at(second), Event: words[1]}
		switch l.Event {
		case recording.Begin:
			l.Format = recording.Format
		case recording.Gone:
			l.UUID = uuid(words[2])
		case recording.Open, recording.Post, recording.Claim:
			describe(t, &l, words[2:])
		}
		list = append(list, l)
	}
	return func(yield func(recording.Line, error) bool) {
		for _, l := range list {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func at(second float64) time.Time { return noon.Add(time.Duration(second * float64(time.Second))) }

// uuid is that of a job of a name.
func uuid(name string) string { return idOf(name).String() }

func idOf(name string) job.ID {
	id := job.ID{0: 1}
	copy(id[16-len(name):], name)
	return id
}

func describe(t *testing.T, l *recording.Line, words []string) {
	t.Helper()
	l.Job = &recording.Job{UUID: uuid(words[0]), Name: words[0], CreatedAt: l.At, Labels: map[string]string{}}
	for _, w := range words[1:] {
		if w == "by" {
			l.By = &recording.Taker{Worker: map[string]string{}}
			continue
		}
		key, value, _ := strings.Cut(w, "=")
		var number float64
		_, _ = fmt.Sscan(value, &number)
		switch {
		case l.By != nil && key == "names":
			l.By.Names = strings.Split(value, ",")
		case l.By != nil && key == "filter":
			l.By.Filter = value
		case l.By != nil && key == "chosen":
			l.By.Chosen = true
		case l.By != nil:
			l.By.Worker[key] = value
		case key == "before":
			l.Job.NotBefore = at(number)
		case key == "created":
			l.Job.CreatedAt = at(number)
		case key == "priority":
			l.Job.Priority = value
		case key == "deadline":
			l.Job.Facts = map[string]any{"time:/deadline": at(number).Format(time.RFC3339Nano)}
		case key == "attempt":
			l.Job.Attempt = int32(number)
		default:
			l.Job.Labels[key] = value
		}
	}
}

// ordered are the rules of a board that a policy of boardd's orders, or where it
// says who may have a job.
func ordered(t *testing.T, name string, set map[string]any) board.Rules {
	t.Helper()
	p, err := policies.New(name, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	rule := board.Rule{Policy: p, Name: name}
	var rules board.Rules
	if m := p.Manifest(); m.Eligibility {
		rules.Eligibility = []board.Rule{rule}
	} else {
		rules.Ordering = &rule
	}
	return rules
}

func run(t *testing.T, text string, present, candidate board.Rules, o replay.Options) *replay.Report {
	t.Helper()
	r, err := replay.Run(t.Context(), script(t, text), present, candidate, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := replay.Run(t.Context(), script(t, text), present, candidate, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("the second time it is another report: %s", diff)
	}
	return r
}

// With the same rules on both sides nothing differs, and without any policy the
// replay gives what the board gave: priority, then the oldest, those given back
// after their wait.
func TestAsRecorded(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 open a created=-10
		1 post b priority=HIGH
		2 post c before=20
		3 claim b by
		4 claim a by
		5 gone b
		6 post a before=9 attempt=1 created=-10
		10 claim a by
		21 claim c by
		22 gone a
		23 post d
	`, board.Rules{}, board.Rules{}, replay.Options{})
	want := &replay.Report{
		From: at(1), Until: at(23), Jobs: 4, Claims: 4, AsRecorded: 4, By: "name", StarvedAfter: 22 * time.Second / 4,
		Present: replay.Side{Claimed: 4, Left: 1, Starved: 1, WaitP50: time.Second, WaitP99: 14 * time.Second, WaitMost: 14 * time.Second},
	}
	want.Candidate = want.Present
	want.Starved = []replay.Starved{{ID: idOf("a"), Key: "a", Wait: 14 * time.Second, Claimed: true}}
	if len(r.Keys) != 4 || r.Keys[0].Key != "a" || r.Keys[0].Present.Claimed != 2 || r.Keys[3].Candidate.Left != 1 {
		t.Errorf("keys %+v", r.Keys)
	}
	r.Keys = nil
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// An order by a fact changes who is first, and who waits. Facts that were not
// recorded are named.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 post a1 team=a deadline=100
		1 post a2 team=a deadline=90
		2 post b1 team=b deadline=20
		3 post b2 team=b
		10 claim a1 by
		11 claim a2 by
		40 claim b1 by
	`, board.Rules{}, ordered(t, "deadline", nil), replay.Options{By: "label:team", StarvedAfter: 30 * time.Second})
	side := func(claimed, left, starved int, p50, most float64) replay.Side {
		longest := at(most).Sub(noon)
		return replay.Side{Claimed: claimed, Left: left, Starved: starved, WaitP50: at(p50).Sub(noon), WaitP99: longest, WaitMost: longest}
	}
	want := []replay.Key{
		{Key: "a", Jobs: 2, Present: side(2, 0, 0, 10, 10), Candidate: side(2, 0, 1, 10, 40)},
		{Key: "b", Jobs: 2, Present: side(1, 1, 2, 38, 38), Candidate: side(1, 1, 1, 8, 8)},
	}
	want[1].Candidate.WaitMost = 37 * time.Second // b2 waits on
	if diff := cmp.Diff(want, r.Keys); diff != "" {
		t.Error(diff)
	}
	if r.Differ != 2 || r.AsRecorded != 3 || r.Earlier != 1 || r.Later != 1 || r.LargestShift != 2 {
		t.Errorf("%+v", r)
	}
	if len(r.Starved) != 2 || r.Starved[0].ID != idOf("a1") || !r.Starved[0].Claimed || r.Starved[1].ID != idOf("b2") || r.Starved[1].Claimed {
		t.Errorf("starved: %+v", r.Starved)
	}
	if len(r.Missing) != 1 || r.Missing[0] != "deadline (time, /deadline of boardd/deadline)" {
		t.Errorf("missing: %v", r.Missing)
	}
}

// Workers get what their labels allow; a claim that finds nothing is empty.
func TestEligibility(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 post plain
		1 post needs requires.gpu=yes
		5 claim plain by
		6 claim needs by
		7 gone plain
		8 gone needs
		9 post more requires.gpu=yes
		10 claim more by gpu=yes
	`, board.Rules{}, ordered(t, "labels", map[string]any{"keys": []any{"gpu"}}), replay.Options{})
	if r.Present.Empty != 0 || r.AsRecorded != 3 || r.Present.Left != 0 {
		t.Errorf("now: %+v", r)
	}
	if r.Candidate.Claimed != 2 || r.Candidate.Empty != 1 || r.Candidate.Left != 1 || r.Differ != 2 {
		t.Errorf("then: %+v", r) // the worker without a GPU gets nothing, the other one the older job
	}
}

// Names and filters of claims count; a filter on details can't be asked again, and
// neither can somebody unknown: then both sides give the recorded job.
func TestClaimsThatChoose(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 post a
		1 post b
		2 post c
		3 post d
		4 post e
		5 claim b by names=b,c
		6 claim c by filter=name>b
		7 claim e by filter=details.x=1
		8 claim d
		9 claim a by chosen=yes
	`, board.Rules{}, board.Rules{}, replay.Options{})
	if r.Claims != 5 || r.Unasked != 3 || r.AsRecorded != 5 || r.Present.Empty != 0 {
		t.Errorf("%+v", r)
	}
}

// What stood open before, and was claimed without a word of it, was there from the
// beginning; what is not there behind a gap left in it.
func TestGaps(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 gap
		0 open seen
		1 claim unseen by
		2 post lost
		3 begin
		3 gap
		3 open seen
		3 open found
		4 claim seen by
		5 claim found by
		6 begin
		6 open other
		7 claim other by
	`, board.Rules{}, board.Rules{}, replay.Options{})
	if r.Gaps != 1 || r.Jobs != 5 || r.Claims != 4 || r.Present.Left != 0 || r.Present.Empty != 0 {
		t.Errorf("%+v", r)
	}
}

// Claims that the recording lacks are in the report.
func TestLost(t *testing.T) {
	t.Parallel()
	lines := func(yield func(recording.Line, error) bool) {
		for l, err := range script(t, "0 begin\n1 post a\n2 claim a by\n") {
			if !yield(l, err) {
				return
			}
		}
		for n := range replay.MaxLost + 2 {
			l := recording.Line{At: at(float64(10 + n)), Event: recording.Lost, Claims: 3, Since: at(float64(9 + n))}
			if !yield(l, nil) {
				return
			}
		}
	}
	r, err := replay.Run(t.Context(), lines, board.Rules{}, board.Rules{}, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Lost); n != replay.MaxLost || r.Lost[0] != (replay.Lost{From: at(9), Until: at(10), Claims: 3}) ||
		r.Lost[n-1] != (replay.Lost{From: at(28), Until: at(31), Claims: 9}) {
		t.Errorf("%+v", r.Lost)
	}
	if said := r.NotRecorded(); said[0] != "3 claims from 2026-01-31T12:00:09Z to 2026-01-31T12:00:10Z" {
		t.Errorf("it says %q", said)
	}
}

// Claims that came faster than they could be written are told by the report on what
// was written.
func TestLostByTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := recording.New(recording.Options{Folder: dir, Board: "a/b", Keep: time.Hour})
	source, take := l.Source()
	take(nobody{})
	claim := func(n int) board.Happening {
		return board.Happening{What: board.Taken, At: at(float64(n)), Job: policy.Job{ID: idOf(fmt.Sprint(n)), Name: "a"}}
	}
	many := make([]board.Happening, recording.MaxQueued)
	for i := range many {
		many[i] = board.Happening{What: board.Gone, At: at(1), Job: policy.Job{ID: idOf("gone")}}
	}
	many[0], many[1] = claim(1), claim(2)
	source.Tell(many)
	source.Tell([]board.Happening{claim(3)}) // one too many: all of it is lost
	source.Tell([]board.Happening{claim(4), {What: board.Lost, At: at(5)}})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.Run(ctx)
	r, err := replay.Run(t.Context(), recording.Read(dir), board.Rules{}, board.Rules{}, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []replay.Lost{{From: at(1), Until: at(3), Claims: 3}, {From: at(5), Until: at(5), Claims: 1}}
	if diff := cmp.Diff(want, r.Lost); diff != "" || r.Claims != 1 || len(r.NotRecorded()) != 2 {
		t.Errorf("%+v: %s", r, diff)
	}
}

// nobody is a board without jobs.
type nobody struct{}

func (nobody) Standing(int) ([]board.Happening, int64) { return nil, 0 }

// Nothing before the beginning counts, but what stands open then does.
func TestFrom(t *testing.T) {
	t.Parallel()
	r := run(t, `
		0 begin
		0 post a
		1 post b
		2 post gone
		3 claim gone by
		4 claim a by
		10 post c
		11 gone gone
		12 post a created=0 attempt=1
		13 claim a by
		14 claim b by
	`, board.Rules{}, board.Rules{}, replay.Options{From: at(9)})
	if r.Claims != 2 || r.AsRecorded != 2 || r.Present.Left != 1 || !r.From.Equal(at(10)) {
		t.Errorf("%+v", r)
	}
}

// byAge is a policy by time: what is older than a minute comes first, the youngest
// of that first of all.
type byAge struct{ fails bool }

func (byAge) Manifest() policy.Manifest {
	return policy.Manifest{Name: "by-age", Ordering: true, ByTime: true, Tick: 10 * time.Second, Facts: []policy.FactSpec{{Name: "n", Path: "/n", Type: policy.IntFact}}}
}

func (byAge) Eligible(context.Context, *policy.Batch, []policy.Verdict) error { return nil }

func (b byAge) Score(_ context.Context, batch *policy.Batch, scores []int64) error {
	if b.fails {
		return errors.New("no")
	}
	if batch.Now.IsZero() || batch.Now.Second()%10 != 0 {
		return fmt.Errorf("the time is %v", batch.Now)
	}
	for i := range batch.Jobs {
		if age := batch.Now.Sub(batch.Jobs[i].CreatedAt); age > time.Minute {
			scores[i] = int64(time.Hour - age)
		}
	}
	return nil
}

func TestTime(t *testing.T) {
	t.Parallel()
	text := `
		0 begin
		0 post a
		10 post b
		20 post c
		71 claim a by
		95 claim b by
		96 claim c by
	`
	r := run(t, text, board.Rules{}, board.Rules{Ordering: &board.Rule{Policy: byAge{}}}, replay.Options{})
	// At 71 only a is older than a minute, of what is seen at 70; at 90 both others are, and c is younger.
	if r.Candidate.Errors != 0 || r.Differ != 2 || r.Earlier != 1 || r.Later != 1 || r.LargestShift != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Missing) != 1 || r.Missing[0] != "n (int, /n of by-age)" {
		t.Errorf("missing: %v", r.Missing)
	}
	if r = run(t, text, board.Rules{}, board.Rules{Ordering: &board.Rule{Policy: byAge{fails: true}}}, replay.Options{}); r.Candidate.Errors == 0 || r.Differ != 0 {
		t.Errorf("a policy that fails: %+v", r)
	}
}

// An order by counts gives each key its share.
func TestCounts(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	fmt.Fprintln(&text, "0 begin")
	for i := range 20 {
		fmt.Fprintf(&text, "%d post a%d team=a\n", i, i)
	}
	for i := range 4 {
		fmt.Fprintf(&text, "%d post b%d team=b\n", 20+i, i)
	}
	for i := range 10 {
		fmt.Fprintf(&text, "%d claim a%d by\n", 30+i, i)
	}
	r := run(t, text.String(), board.Rules{}, ordered(t, "fair-share", map[string]any{"by": "label:team"}), replay.Options{StarvedAfter: time.Hour})
	if r.By != "label:team" || len(r.Keys) != 2 || r.Keys[1].Key != "b" {
		t.Fatalf("%+v", r)
	}
	if b := r.Keys[1]; b.Present.Claimed != 0 || b.Candidate.Claimed != 4 || b.Present.Left != 4 || b.Candidate.Left != 0 {
		t.Errorf("team b: %+v", b)
	}
	limited := run(t, text.String(), board.Rules{}, ordered(t, "limit", map[string]any{"by": "label:team", "max": 2}), replay.Options{})
	if limited.Candidate.Claimed != 4 || limited.Candidate.Empty != 6 {
		t.Errorf("at most two of a team: %+v", limited.Candidate)
	}
	hourly := run(t, text.String(), board.Rules{}, ordered(t, "rate", map[string]any{"by": "label:team", "max": 3, "per": "744h"}), replay.Options{})
	if hourly.Candidate.Claimed != 6 || hourly.Candidate.Empty != 4 {
		t.Errorf("at most three of a team in a month: %+v", hourly.Candidate)
	}
	often := run(t, text.String(), board.Rules{}, ordered(t, "rate", map[string]any{"by": "label:team", "max": 1, "per": "1s"}), replay.Options{})
	if often.Candidate.Claimed != 10 {
		t.Errorf("one of a team each second: %+v", often.Candidate)
	}
}

func TestBadRecordings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, by, want string }{
		{"", "", "nothing was recorded yet"},
		{"0 begin\n0 open a\n", "", "nothing was recorded yet"},
		{"0 post a\n1 claim a by filter=name>\n", "", "filter"},
		{"0 post a\n1 claim a by\n", "team", "by: \"team\": want label:KEY, priority or name"},
		{"0 post a\n1 claim a by\n", "label:", "want label:KEY"},
	} {
		_, err := replay.Run(t.Context(), script(t, test.text), board.Rules{}, board.Rules{}, replay.Options{By: test.by})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Run(ctx, script(t, "0 post a\n1 claim a by\n"), board.Rules{}, board.Rules{}, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	broken := func(yield func(recording.Line, error) bool) { yield(recording.Line{}, errors.New("broken")) }
	if _, err := replay.Run(t.Context(), broken, board.Rules{}, board.Rules{}, replay.Options{}); err == nil || err.Error() != "broken" {
		t.Errorf("got %v", err)
	}
}
