package interop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestDetailsBothWays: what one side posts, the other one reads.
func TestDetailsBothWays(t *testing.T) {
	t.Parallel()
	b := share(t, false)
	ourPosting := b.post("ü", func(op *driver.Op) {
		op.Posting.Details = []byte(`{"s":"é😀\n","n":[1,-1,18446744073709551615,1.5,1e+22],"w":[null,true],"d":{"":{}}}`)
		op.Posting.Priority, op.Posting.Book = job.VeryHigh, job.Book{UUID: "u", Name: "b"}
	})
	theirs := b.python.Post("é", testserver.Args{"python": `{"s": "\u4e16", "n": (1, 2.0), "none": None}`, "priority": "very_low"})
	special := b.python.Post("special", testserver.Args{"python": `{"bytes": b"\xff", "set": {1}, "nan": float("nan")}`})
	list, err := b.python.List(false)
	if err != nil || len(list) != 3 || list[0].UUID != ourPosting.String() || list[0].Name != "ü" || list[0].Priority != "VERY_HIGH" ||
		list[0].Details != `{'s': 'é😀\n', 'n': [1, -1, 18446744073709551615, 1.5, 1e+22], 'w': [None, True], 'd': {'': {}}}` {
		t.Errorf("TaskFlow lists %+v (%v)", list, err)
	}
	open, bad := b.scan()
	rec := open[b.pythonID(theirs)].Posting
	if rec.Name != "é" || rec.Priority != job.VeryLow || rec.Encoding != job.JSON || string(rec.Details) != `{"s":"世","n":[1,2.0],"none":null}` || rec.CreatedAt.IsZero() {
		t.Errorf("we read %+v, %s", rec, rec.Details)
	}
	raw := open[b.pythonID(special)].Posting
	if want := "\x83\xa5bytes\xc4\x01\xff\xa3set\xd5\x04\x91\x01\xa3nan\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"; raw.Encoding != job.Msgpack || string(raw.Details) != want {
		t.Errorf("we read %+v, %x, want %x", raw, raw.Details, want)
	}
	if len(open) != 3 || len(bad) != 0 {
		t.Errorf("%d jobs, bad %v", len(open), bad)
	}
}

// TestPoison: postings that TaskFlow deletes as soon as it lists them. We report
// them, leave them where they are, and show everything else.
func TestPoison(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	good := b.post("good", nil)
	poison := map[string]string{}
	for what, python := range map[string]string{
		"a whole number as key": `{1: "a"}`,
		"None as key":           `{"a": [{None: 1}]}`,
		"a fixed offset":        `{"t": __import__("datetime").datetime(2026, 1, 1, tzinfo=__import__("datetime").timezone(__import__("datetime").timedelta(hours=2)))}`,
	} {
		poison[b.python.Post(what, testserver.Args{"python": python}).UUID] = what
	}
	for i, value := range []string{"garbage", "\x90", "\x80", "\xc1"} {
		id := random()
		id[0] = byte(i)
		field := job.ID(id).String()
		poison[field] = "raw bytes"
		if got := b.server.Command("HSET", namespace+":listings", field, value); got != ":1" {
			t.Fatal(got)
		}
	}
	for range 2 {
		open, bad := b.scan()
		if len(open) != 1 || len(bad) != len(poison) {
			t.Errorf("we see %d jobs and %d bad ones: want 1 and %d: %v", len(open), len(bad), len(poison), bad)
		}
		for _, record := range bad {
			if !strings.Contains(record.Key, namespace) || record.Problem == "" {
				t.Errorf("reported as %+v", record)
			}
		}
	}
	for field, what := range poison {
		id, err := job.ParseID(field)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := b.d.Read(b.Context(), "b", []job.ID{id}, driver.Details); err == nil && list[0].State != job.Unknown {
			t.Errorf("%s: it is read as %+v", what, list[0])
		}
		if r := b.tryClaim(id, "us", time.Minute); r.Kind != job.NoKind || len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.Corrupt {
			t.Errorf("%s: a claim that names it is answered %+v, want it passed over as CORRUPT", what, r)
		}
		b.want(job.Corrupt, what, driver.Op{Kind: driver.Trash, Job: id})
		if b.server.Command("EXISTS", namespace+":"+field+".owned") != ":0" {
			t.Errorf("%s: it has an owner", what)
		}
		if b.server.Command("HEXISTS", namespace+":listings", field) != ":1" {
			t.Errorf("%s: it is gone", what)
		}
	}
	token := b.claim(good, "us", 0)
	b.want(job.NoKind, "the good one", driver.Op{Kind: driver.Remove, Job: good, Precondition: driver.HeldByToken, Token: token})
	for range poison { // TaskFlow deletes one with each listing, and raises
		if _, err := b.python.List(false); err == nil {
			t.Error("TaskFlow can read what it could not before")
		}
	}
	testserver.Eventually(t, "nothing is bad any more", func() bool {
		open, bad := b.scan()
		return len(open)+len(bad) == 0
	})
}

// TestWeWriteNoPoison: what TaskFlow could not read back is refused at the post.
func TestWeWriteNoPoison(t *testing.T) {
	t.Parallel()
	b := share(t, false)
	for what, details := range map[string][]byte{
		"a number as key":         {0x81, 0x01, 0x01},
		"nil as key":              {0x81, 0xa1, 'a', 0x81, 0xc0, 0x01},
		"text that is not UTF-8":  {0x81, 0xa1, 'a', 0xa1, 0xff},
		"a uuid that is none":     {0x81, 0xa1, 'a', 0xd4, 0x00, 'x'},
		"an unknown extension":    {0x81, 0xa1, 'a', 0xd4, 0xfe, 'x'},
		"a datetime of nothing":   {0x81, 0xa1, 'a', 0xd4, 0x01, 0x80},
		"something after the map": {0x80, 0x80},
		"no map":                  {0x90},
	} {
		b.want(job.Invalid, what, driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: random(), Name: "n", Encoding: job.Msgpack, Details: details, Digest: random()}})
	}
	for _, details := range []string{`{"a":18446744073709551616}`, `{"a":0.10000000000000000001}`} {
		b.want(job.Invalid, details, driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: random(), Name: "n", Details: []byte(details), Digest: random()}})
	}
	if list, err := b.python.List(false); err != nil || len(list) != 0 {
		t.Errorf("TaskFlow lists %+v (%v)", list, err)
	}
}
