package taskflow_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

// fixtures are what real TaskFlow has written; testdata/make.py makes them.
type fixtures struct {
	Postings   []fixture `json:"postings"`
	Unreadable []fixture `json:"unreadable"`
	Modified   struct {
		Value hexBytes `json:"value"`
		Time  string   `json:"time"`
	} `json:"last_modified"`
	Lock    string `json:"lock"`
	Trashed struct {
		Posting, Trash string
	} `json:"trashed"`
	Paths []struct {
		Path, Trash, Entities, Trashed string
	} `json:"paths"`
}

type fixture struct {
	What      string `json:"what"`
	Name      string `json:"name"`
	Details   bool   `json:"details"`
	Field     string `json:"field"`
	Path      string `json:"path"`
	Value     string `json:"value"`
	Sequence  uint64 `json:"sequence"`
	CreatedOn string `json:"created_on"`
	Error     string `json:"error"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func load(tb testing.TB, name string) fixtures {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var f fixtures
	if err := json.Unmarshal(text, &f); err != nil || len(f.Postings) < 10 {
		tb.Fatalf("%s has %d postings: %v", name, len(f.Postings), err)
	}
	return f
}

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func pythonTime(tb testing.TB, text string) time.Time {
	tb.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999999", text)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

// priorities and books of the fixtures, by what they show.
var (
	fixturePriorities = map[string]job.Priority{
		"priority VERY_HIGH": job.VeryHigh, "priority HIGH": job.High, "priority LOW": job.Low, "priority VERY_LOW": job.VeryLow,
	}
	fixtureBooks = map[string]job.Book{
		"a book":                {Name: "my-book", UUID: "11111111-2222-3333-4444-555555555555"},
		"a conductor's details": {Name: "my-book", UUID: "11111111-2222-3333-4444-555555555555"},
	}
)

func checkCommon(t *testing.T, f *fixture, p *taskflow.Posting) {
	t.Helper()
	if p.Name != f.Name || p.Priority != fixturePriorities[f.What] || p.Book != fixtureBooks[f.What] || p.Extra != nil {
		t.Errorf("got %+v", p)
	}
}

func TestRedisFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range load(t, "redis.json").Postings {
		t.Run(f.What, func(t *testing.T) {
			t.Parallel()
			stored := unhex(t, f.Value)
			p, err := taskflow.DecodeRedis(f.Field, stored)
			if err != nil {
				t.Fatal(err)
			}
			checkCommon(t, &f, &p)
			if p.ID.String() != f.Field || p.Sequence != f.Sequence || !p.CreatedAt.Equal(pythonTime(t, f.CreatedOn)) || p.Encoding != job.Msgpack {
				t.Errorf("got %+v", p)
			}
			if empty := bytes.Equal(p.Details, []byte{0x80}); empty == f.Details {
				t.Errorf("details are %x", p.Details)
			}
			again, err := taskflow.EncodeRedis(&p)
			if err != nil || !bytes.Equal(again, stored) {
				t.Errorf("encoded again (%v):\n%x, want\n%x", err, again, stored)
			}
		})
	}
}

func TestZooKeeperFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range load(t, "zookeeper.json").Postings {
		t.Run(f.What, func(t *testing.T) {
			t.Parallel()
			p, err := taskflow.DecodeZooKeeper([]byte(f.Value))
			if err != nil {
				t.Fatal(err)
			}
			checkCommon(t, &f, &p)
			if empty := string(p.Details) == "{}"; empty == f.Details || p.Encoding != job.JSON {
				t.Errorf("details are %v %s", p.Encoding, p.Details)
			}
			again, err := taskflow.EncodeZooKeeper(&p)
			if err != nil || string(again) != f.Value {
				t.Errorf("encoded again (%v):\n%s, want\n%s", err, again, f.Value)
			}
		})
	}
}

func TestTrashedFixture(t *testing.T) {
	t.Parallel()
	f := load(t, "zookeeper.json").Trashed
	before, errBefore := taskflow.DecodeZooKeeper([]byte(f.Posting))
	after, errAfter := taskflow.DecodeZooKeeper([]byte(f.Trash))
	if errBefore != nil || errAfter != nil || before.ID != after.ID || !bytes.Equal(before.Details, after.Details) {
		t.Errorf("posted %+v (%v), trashed %+v (%v)", before, errBefore, after, errAfter)
	}
}

func TestUnreadableFixtures(t *testing.T) {
	t.Parallel()
	list := load(t, "redis.json").Unreadable
	if len(list) != 3 {
		t.Fatalf("there are %d", len(list))
	}
	for _, f := range list {
		p, err := taskflow.DecodeRedis(f.Field, unhex(t, f.Value))
		if job.KindOf(err) != job.Corrupt || f.Error == "" {
			t.Errorf("%s: read as %+v (%v), where TaskFlow says %q", f.What, p, err, f.Error)
		}
	}
}

func TestModifiedFixture(t *testing.T) {
	t.Parallel()
	f := load(t, "redis.json").Modified
	at, nonce, ours, err := taskflow.DecodeModified(f.Value)
	if err != nil || ours || nonce != [16]byte{} || !at.Equal(pythonTime(t, f.Time)) {
		t.Errorf("got %v, %x, %v, %v", at, nonce, ours, err)
	}
	again, err := taskflow.EncodeDatetime(at)
	if err != nil || !bytes.Equal(again, f.Value) {
		t.Errorf("encoded again (%v): %x, want %x", err, again, f.Value)
	}
}

func TestLockFixture(t *testing.T) {
	t.Parallel()
	stored := load(t, "zookeeper.json").Lock
	owner, err := taskflow.DecodeLock([]byte(stored))
	if err != nil || owner != `öwner-世 "q"` {
		t.Errorf("got %q, %v", owner, err)
	}
	if again, err := taskflow.EncodeLock(owner); err != nil || string(again) != stored {
		t.Errorf("encoded again (%v): %s, want %s", err, again, stored)
	}
}

func TestPathFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range load(t, "zookeeper.json").Paths {
		p, err := taskflow.PathsOf(f.Path)
		if err != nil || p.Board != f.Path || p.Trash != f.Trash || p.Entities != f.Entities || p.Trashed("job0000000001") != f.Trashed {
			t.Errorf("%s: got %+v and %s (%v), want %+v", f.Path, p, p.Trashed("job0000000001"), err, f)
		}
	}
}
