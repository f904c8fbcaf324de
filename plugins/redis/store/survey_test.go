package store

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// surveyed is how many jobs there are on the board before anything happens.
const surveyed = 1000

// A field is a board that was searched once, and a client that does to it what TaskFlow
// does. Nobody watches it: what is known of it is what the search has seen.
type field struct {
	*testing.T

	store  *Store
	board  *board
	sweep  *sweep
	client *redis.Client
	server *testserver.Redis
}

func numbered(n int) (id job.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
	id[15] = 1
	return id
}

// newPlain returns a Redis, and a client that does what TaskFlow does there.
func newPlain(t *testing.T) *field {
	t.Helper()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	return &field{T: t, client: client, server: server}
}

func newField(t *testing.T, details string) *field {
	t.Helper()
	f := newPlain(t)
	f.store = openStore(t, f.server.Addr)
	t.Cleanup(func() { _ = f.store.Close() })
	_, err := f.store.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err == nil {
		f.board, err = f.store.board("b")
	}
	if err != nil {
		t.Fatal(err)
	}
	var ops []driver.Op
	for n := range surveyed {
		ops = append(ops, posting(n, details))
	}
	f.apply(ops...)
	f.sweep = newSweep(f.board, f.board.opening.Load())
	counted, err := f.sweep.count(t.Context())
	if err == nil {
		err = f.sweep.findAll(t.Context(), counted)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func posting(n int, details string) driver.Op {
	p := &driver.Posting{ID: numbered(n), Name: "job", Details: []byte(details), Digest: numbered(n)}
	return driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted}
}

func (f *field) apply(ops ...driver.Op) {
	f.Helper()
	for _, r := range f.store.Apply(f.Context(), "b", ops) {
		if r.Kind != job.NoKind {
			f.Fatal(r.Kind, r.Message)
		}
	}
}

// post and end do what TaskFlow does.
func (f *field) post(n int) {
	f.Helper()
	sequence, err := f.client.Incr(f.Context(), "b:sequence").Result()
	if err != nil {
		f.Fatal(err)
	}
	raw, err := taskflow.EncodeRedis(&taskflow.Posting{ID: numbered(n), Name: "theirs", CreatedAt: time.Now(), Sequence: uint64(sequence)})
	if err != nil {
		f.Fatal(err)
	}
	f.set("b:listings", numbered(n).String(), raw)
}

func (f *field) set(key, name string, value any) {
	f.Helper()
	if err := f.client.HSet(f.Context(), key, name, value).Err(); err != nil {
		f.Fatal(err)
	}
}

func (f *field) end(n int) {
	f.Helper()
	if got, err := f.client.HDel(f.Context(), "b:listings", numbered(n).String()).Result(); err != nil || got != 1 {
		f.Fatalf("job %d was not there: %d, %v", n, got, err)
	}
}

// agrees checks that our records have the jobs that TaskFlow has, and no others.
func (f *field) agrees() {
	f.Helper()
	names, err := f.client.HKeys(f.Context(), "b:listings").Result()
	if err != nil {
		f.Fatal(err)
	}
	open := 0
	for _, name := range names {
		if _, err := job.ParseID(name); err != nil {
			continue
		}
		open++
		if is, err := f.client.HExists(f.Context(), "b:boardd:jobs", name).Result(); err != nil || !is {
			f.Errorf("our records lack job %s", name)
		}
	}
	records, err := f.client.HLen(f.Context(), "b:boardd:jobs").Result()
	counted, err2 := f.client.HGet(f.Context(), "b:boardd:head", "open").Int()
	if err != nil || err2 != nil || int(records) != open || counted != open {
		f.Errorf("TaskFlow has %d jobs, our records are %d, and count %d (%v, %v)", open, records, counted, err, err2)
	}
}

// TestSurvey has TaskFlow post and end jobs, and checks that one search finds all of it,
// also what is hidden from a search that trusts in what was seen before.
func TestSurvey(t *testing.T) {
	t.Parallel()
	const small, large = `{}`, "large"
	for name, c := range map[string]struct {
		details string
		does    func(f *field)
	}{
		"a post":                     {small, func(f *field) { f.post(surveyed) }},
		"an ending":                  {small, func(f *field) { f.end(7) }},
		"an ending of a large one":   {large, func(f *field) { f.end(7) }},
		"as many posts as endings":   {small, func(f *field) { f.post(surveyed); f.end(7) }},
		"posted and ended":           {small, func(f *field) { f.post(surveyed); f.end(surveyed) }},
		"more endings than posts":    {small, func(f *field) { f.post(surveyed); f.end(7); f.end(8) }},
		"ours, since the search":     {small, func(f *field) { f.apply(posting(surveyed, small)); f.end(surveyed) }},
		"a field that is no uuid":    {small, func(f *field) { f.set("b:listings", "no uuid", "x"); f.post(surveyed) }},
		"the sequence was set back":  {small, func(f *field) { f.client.Del(f.Context(), "b:sequence"); f.end(7) }},
		"ended by us, posted again":  {small, func(f *field) { f.apply(driver.Op{Kind: driver.Remove, Job: numbered(7)}); f.post(7) }},
		"one of ours again, one not": {small, func(f *field) { f.apply(driver.Op{Kind: driver.Remove, Job: numbered(7)}); f.post(7); f.post(surveyed) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.details == large {
				c.details = `{"x":"` + strings.Repeat("x", 3*pageBytes/sweepCount) + `"}`
			}
			f := newField(t, c.details)
			if f.sweep.slim() != (c.details == small || !f.store.valued.Load()) {
				t.Fatalf("the postings have %d bytes of details, and slim is %v", len(c.details), f.sweep.slim())
			}
			c.does(f)
			if _, err := f.sweep.findCounted(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			f.agrees()
		})
	}
}

// calls is how often a command was sent to the server.
func (f *field) calls(command string) int {
	f.Helper()
	stats, err := f.client.InfoMap(f.Context(), "commandstats").Result()
	if err != nil {
		f.Fatal(err)
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(stats["Commandstats"]["cmdstat_"+command], "calls="), ",")
	return int(parseInt(text))
}

// TestSurveyAsksLittle checks that jobs that were met before are not asked for again,
// and that what ended is found without going through our records.
func TestSurveyAsksLittle(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.post(surveyed)
	f.end(7)
	exists, gets := f.calls("hexists"), f.calls("hmget")
	if _, err := f.sweep.findCounted(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	// The script asks for the two jobs that differ, and the search for the one that it
	// missed; of our records it asks for both, and the counts are looked at twice.
	exists, gets = f.calls("hexists")-exists, f.calls("hmget")-gets
	if exists > 10 || gets > 20 {
		t.Errorf("of %d jobs %d were looked for on the board, and our records were asked %d times", surveyed, exists, gets)
	}
	f.agrees()
}

// TestReconciledElsewhere checks that a post which an op has met first, or another search, is
// not searched for; and that posts which ended before anybody saw them are searched for
// once.
func TestReconciledElsewhere(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	scans := func() int {
		f.Helper()
		before := f.calls("hscan")
		if _, err := f.sweep.findCounted(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		return f.calls("hscan") - before
	}
	f.post(surveyed)
	f.apply(driver.Op{Kind: driver.Update, Job: numbered(surveyed)})
	if n := scans(); n != 0 {
		t.Errorf("a post that an op has met was searched for in %d steps", n)
	}
	f.post(surveyed + 1)
	f.end(surveyed + 1)
	if first, again := scans(), scans(); first == 0 || again != 0 {
		t.Errorf("a post that ended at once was searched for in %d steps, and then in %d more", first, again)
	}
	f.set("b:listings", numbered(surveyed+2).String(), "by hand, so that it was not counted")
	f.post(surveyed + 3)
	if first, again := scans()+scans(), scans(); first == 0 || again != 0 {
		t.Errorf("two, of which one was not counted, were searched for in %d steps, and then in %d more", first, again)
	}
	f.agrees()
}

// TestKnownJobs checks what is kept of searches that overlap, and over the point where
// their numbers begin anew.
func TestKnownJobs(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]uint32{"the first": 0, "numbers that begin anew": 1<<32 - 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newKnownJobs()
			a.search = first
			missed := func(search uint32, want ...job.ID) {
				t.Helper()
				got := a.missed(search)
				if len(got) != len(want) || len(want) == 1 && got[0] != want[0] {
					t.Errorf("search %d missed %v, want %v", search, got, want)
				}
			}
			a.add(numbered(1), numbered(2), numbered(3))
			outer := a.begin()
			if got := a.met([]job.ID{numbered(1), numbered(4)}, outer); !got[0] || got[1] {
				t.Errorf("known are %v, want the first alone", got)
			}
			missed(outer, numbered(2), numbered(3))
			inner := a.begin()
			a.met([]job.ID{numbered(3)}, inner)
			a.add(numbered(4))
			a.met([]job.ID{numbered(3), numbered(4)}, outer) // must not take back what the inner one met
			missed(inner, numbered(1), numbered(2))
			missed(outer, numbered(2))
			a.forget(numbered(2), numbered(5))
			missed(outer)
			a.keep(inner)
			missed(inner)
			if got := a.met([]job.ID{numbered(1), numbered(3), numbered(4)}, inner); got[0] || !got[1] || !got[2] {
				t.Errorf("kept are %v, want the last two", got)
			}
		})
	}
}

// TestKnownJobsShrinks checks that the memory of a board that was large is given back.
func TestKnownJobsShrinks(t *testing.T) {
	t.Parallel()
	a := newKnownJobs()
	for n := range 1000 {
		a.add(numbered(n))
	}
	search := a.begin()
	a.met([]job.ID{numbered(5)}, search)
	a.keep(search)
	if len(a.jobs) != 1 || a.most != 1 {
		t.Errorf("%d jobs are kept, in room for %d", len(a.jobs), a.most)
	}
}

// TestKnownJobsByStream checks what the board's own changes tell a search.
func TestKnownJobsByStream(t *testing.T) {
	t.Parallel()
	a := newKnownJobs()
	a.follow([]event{
		{id: numbered(1), state: job.Unclaimed},
		{id: numbered(2), state: job.Claimed},
		{id: numbered(3), state: job.Unclaimed},
		{id: numbered(4), state: job.Unclaimed},
		{id: numbered(5), state: job.Unclaimed},
		{id: numbered(3), state: job.Trashed},
		{id: numbered(4), state: job.Complete},
		{id: numbered(5), state: job.Unknown},
	})
	if got := a.met([]job.ID{numbered(1), numbered(2), numbered(3), numbered(4), numbered(5)}, a.begin()); !slices.Equal(got, []bool{true, true, false, false, false}) {
		t.Errorf("of a free job, a claimed one, and three that are gone, known are %v", got)
	}
}
