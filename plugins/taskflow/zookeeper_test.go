package taskflow_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

func TestDecodeZooKeeper(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tc := range []struct{ name, text, want string }{
		{"as TaskFlow writes it", `{"uuid": "` + field + `", "name": "n", "priority": "NORMAL", "details": {}}`, ""},
		{"without what is optional", `{"uuid":"` + field + `","name":"n"}`, ""},
		{"space around it", " \n{ \"uuid\" : \"" + field + "\" , \"name\" : \"n\" }\t", ""},
		{"a priority in small letters", `{"uuid":"` + field + `","name":"n","priority":"high"}`, ""},
		{"an unknown key", `{"uuid":"` + field + `","name":"n","x":[NaN]}`, ""},
		{"the last of two names", `{"uuid":"` + field + `","name":5.5e5,"name":"n"}`, "name: it is 5.5e5: want text"},
		{"a whole number of 4300 digits", `{"uuid":"` + field + `","name":"n","x":` + strings.Repeat("1", 4300) + `}`, ""},
		{"a whole number of 4301 digits", `{"uuid":"` + field + `","name":"n","x":` + strings.Repeat("1", 4301) + `}`, "x: at byte 4363: a whole number has 4301 digits"},
		{"a float of 5000 digits", `{"uuid":"` + field + `","name":"n","x":0.` + strings.Repeat("1", 5000) + `}`, ""},
		{"512 levels", `{"uuid":"` + field + `","name":"n","x":` + deep(511) + `}`, ""},
		{"513 levels", `{"uuid":"` + field + `","name":"n","x":` + deep(512) + `}`, "at most 512 levels"},
		{"no uuid", `{"name":"n"}`, "has no uuid"},
		{"no name", `{"uuid":"` + field + `"}`, "has no name"},
		{"a uuid in capitals", `{"uuid":"` + strings.ToUpper(field) + `","name":"n"}`, "uuid in lower case"},
		{"a uuid that is a number", `{"uuid":5,"name":"n"}`, "uuid: it is 5: want a uuid"},
		{"an unknown priority", `{"uuid":"` + field + `","name":"n","priority":"URGENT"}`, `"URGENT" is none`},
		{"priority null", `{"uuid":"` + field + `","name":"n","priority":null}`, "priority: it is null: want text"},
		{"empty", ``, "not JSON: want an object"},
		{"a list", `[]`, "want an object"},
		{"a mark in front", "\ufeff{}", "want an object"},
		{"more after it", `{"uuid":"` + field + `","name":"n"}x`, "something follows it"},
		{"not UTF-8", "{\"uuid\":\"\xff\"}", "not UTF-8"},
		{"cut off", `{"uuid":"` + field + `","na`, "does not end"},
		{"-NaN", `{"x":-NaN}`, "want a value"},
		{"too large", strings.Repeat(" ", taskflow.MaxPosting+1), "want at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := taskflow.DecodeZooKeeper([]byte(tc.text))
			switch {
			case tc.want == "" && (err != nil || p.ID.String() != field || p.Name != "n"):
				t.Errorf("got %+v, %v", p, err)
			case tc.want != "" && (job.KindOf(err) != job.Corrupt || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %+v, %v; want an error with %q", p, err, tc.want)
			}
		})
	}
}

func TestEncodeZooKeeper(t *testing.T) {
	t.Parallel()
	p := valid(t)
	p.Book, p.Extra, p.Details = job.Book{UUID: "ü", Name: `"b"`}, []byte{0, 255}, []byte(`{"é": [1.50, NaN]}`)
	value, err := taskflow.EncodeZooKeeper(&p)
	const want = `{"uuid": "` + field + `", "name": "n", "priority": "NORMAL", "details": {"é": [1.50, NaN]}, ` +
		`"book": {"name": "\"b\"", "uuid": "\u00fc"}, "boardd": "AP8="}`
	if err != nil || string(value) != want {
		t.Fatalf("got %s (%v), want %s", value, err, want)
	}
	back, err := taskflow.DecodeZooKeeper(value)
	if err != nil || back.Book != p.Book || !bytes.Equal(back.Extra, p.Extra) || !bytes.Equal(back.Details, p.Details) {
		t.Errorf("got %+v (%v), want %+v", back, err, p)
	}
	for name, change := range map[string]func(p *taskflow.Posting){
		"msgpack":       func(p *taskflow.Posting) { p.Encoding = job.Msgpack },
		"a list":        func(p *taskflow.Posting) { p.Details = []byte("[]") },
		"broken":        func(p *taskflow.Posting) { p.Details = []byte("{") },
		"two":           func(p *taskflow.Posting) { p.Details = []byte("{}{}") },
		"a long number": func(p *taskflow.Posting) { p.Details = []byte(`{"n":` + strings.Repeat("1", 4301) + "}") },
		"no id":         func(p *taskflow.Posting) { p.ID = job.ID{} },
	} {
		q := p
		change(&q)
		if value, err := taskflow.EncodeZooKeeper(&q); job.KindOf(err) != job.Invalid {
			t.Errorf("%s: got %s, %v", name, value, err)
		}
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`{"owner": "w"}`: "w", `{}`: "", `{"owner": null}`: "", `{"x":1,"owner":"\u00e9"}`: "é"} {
		if got, err := taskflow.DecodeLock([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `x`, `[]`, `{"owner": "w"`, `{"owner": "w"} {}`, "{\"owner\": \"\xff\"}"} {
		if got, err := taskflow.DecodeLock([]byte(text)); job.KindOf(err) != job.Corrupt {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, owner := range []string{"", "\xff"} {
		if lock, err := taskflow.EncodeLock(owner); job.KindOf(err) != job.Invalid {
			t.Errorf("%q: got %s, %v", owner, lock, err)
		}
	}
}

func TestPathsRefused(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": "not absolute", "jobs": "not absolute", "/": "empty name", "/a/": "empty name", "/a//b": "empty name", "/a/../b": "name ..", "/./a": "name .",
	} {
		if p, err := taskflow.PathsOf(path); job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v", path, p, err)
		}
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		sequence int32
		lock, ok bool
		bad      bool
	}{
		{name: "job0000000000", ok: true},
		{name: "job0000000012.lock", sequence: 12, lock: true, ok: true},
		{name: "job2147483647", sequence: 2147483647, ok: true},
		{name: "job-2147483648", sequence: -2147483648, ok: true},
		{name: "job-000000001", sequence: -1, ok: true},
		{name: "other"},
		{name: ".lock"},
		{name: "jobs.lock"},
		{name: "job", bad: true},
		{name: "jobs", bad: true},
		{name: "job12", bad: true},
		{name: "job2147483648", bad: true},
		{name: "job00000000001", bad: true},
	} {
		sequence, lock, ok, err := taskflow.Child(tc.name)
		if sequence != tc.sequence || lock != tc.lock || ok != tc.ok || (job.KindOf(err) == job.Corrupt) != tc.bad {
			t.Errorf("%s: got %d, %v, %v, %v", tc.name, sequence, lock, ok, err)
		}
		if tc.ok && !tc.lock && taskflow.JobName(tc.sequence) != tc.name {
			t.Errorf("%d is called %s", tc.sequence, taskflow.JobName(tc.sequence))
		}
	}
	p, err := taskflow.PathsOf("/a/b")
	if err != nil || p.Job("j") != "/a/b/j" || p.Lock("j") != "/a/b/j.lock" || p.JobPrefix() != "/a/b/job" || p.Entity("conductor", "c") != "/a/.entities/conductor/c" {
		t.Errorf("got %+v, %v", p, err)
	}
}
