package taskflow_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

const field = "ce327feb-53a5-44f8-a1ad-534c564477af"

// pair is one key of a map, in order.
type pair struct {
	key   any
	value any
}

// raw is a value that is msgpack already.
type raw []byte

// pack encodes what msgpack's own encoder would not: maps in order, with any
// key, and bytes as they are.
func pack(tb testing.TB, v any) []byte {
	tb.Helper()
	var out bytes.Buffer
	e := msgpack.NewEncoder(&out)
	e.UseCompactInts(true)
	var write func(v any)
	write = func(v any) {
		switch v := v.(type) {
		case raw:
			out.Write(v)
		case []pair:
			_ = e.EncodeMapLen(len(v))
			for _, p := range v {
				write(p.key)
				write(p.value)
			}
		case []any:
			_ = e.EncodeArrayLen(len(v))
			for _, item := range v {
				write(item)
			}
		default:
			if err := e.Encode(v); err != nil {
				tb.Fatal(err)
			}
		}
	}
	write(v)
	return out.Bytes()
}

// ext is an extension with a payload that is msgpack, or bytes as they are.
func ext(tb testing.TB, code int8, payload any) raw {
	tb.Helper()
	body, isBytes := payload.([]byte)
	if !isBytes {
		body = pack(tb, payload)
	}
	return append(raw{0xc8, byte(len(body) >> 8), byte(len(body)), byte(code)}, body...)
}

var when = []pair{{"day", 21}, {"month", 11}, {"year", 2026}, {"hour", 2}, {"minute", 28}, {"second", 58}, {"microsecond", 637999}}

// change returns a datetime with one field changed, added, or with nil taken away.
func change(name string, value any) []pair {
	var out []pair
	for _, p := range when {
		if p.key != name {
			out = append(out, p)
		}
	}
	if value != nil {
		out = append(out, pair{name, value})
	}
	return out
}

// posting returns a posting with some keys changed, added, or taken away (nil
// raw).
func posting(tb testing.TB, changes ...pair) []byte {
	tb.Helper()
	members := []pair{{"uuid", field}, {"name", "n"}, {"priority", "HIGH"}, {"created_on", ext(tb, 1, when)}, {"details", []pair{}}, {"sequence", 7}}
	for _, c := range changes {
		var out []pair
		for _, m := range members {
			if m.key != c.key {
				out = append(out, m)
			}
		}
		if v, isRaw := c.value.(raw); !isRaw || v != nil {
			out = append(out, c)
		}
		members = out
	}
	return pack(tb, members)
}

func nested(levels int, inner ...byte) raw {
	return append(raw(bytes.Repeat([]byte{0x91}, levels)), inner...)
}

func TestDecodeRedisRefuses(t *testing.T) {
	t.Parallel()
	tz := func(v any) raw { return ext(t, 1, append(when[:7:7], pair{"tz", v})) }
	in := func(v any) []byte { return posting(t, pair{"details", []pair{{"a", []any{v}}}}) }
	for _, tc := range []struct {
		name, field string
		value       []byte
		want        string
	}{
		{"a field in capitals", strings.ToUpper(field), posting(t), "not a uuid in lower case"},
		{"a field that is none", "job", posting(t), "not a uuid"},
		{"nothing", field, nil, "ends in the middle"},
		{"not msgpack", field, []byte{0xc1}, "begins no value"},
		{"text", field, []byte("garbage"), "want a map"},
		{"a list", field, []byte{0x90}, "is a list: want a map"},
		{"cut off", field, posting(t)[:100], "ends in the middle"},
		{"something after it", field, append(posting(t), 0), "1 bytes follow"},
		{"no uuid", field, posting(t, pair{"uuid", raw(nil)}), "has no uuid"},
		{"no name", field, posting(t, pair{"name", raw(nil)}), "has no name"},
		{"no time", field, posting(t, pair{"created_on", raw(nil)}), "has no created_on"},
		{"no sequence", field, posting(t, pair{"sequence", raw(nil)}), "has no sequence"},
		{"a key of bytes", field, posting(t, pair{"name", raw(nil)}, pair{[]byte("name"), "n"}), "has no name"},
		{"an unknown priority", field, posting(t, pair{"priority", "URGENT"}), `"URGENT" is none: want VERY_HIGH`},
		{"priority nil", field, posting(t, pair{"priority", nil}), "priority: it is nil"},
		{"sequence of text", field, posting(t, pair{"sequence", "7"}), "sequence: it is text"},
		{"sequence nil", field, posting(t, pair{"sequence", nil}), "sequence: it is nil"},
		{"sequence below zero", field, posting(t, pair{"sequence", -1}), "want a whole number of 0 or more"},
		{"a name that is a number", field, posting(t, pair{"name", 5}), "name: it is a number"},
		{"a number as key", field, in([]pair{{1, "a"}}), "details.a[0]: a key is a number"},
		{"nil as key", field, in([]pair{{nil, "a"}}), "a key is nil"},
		{"text that is not UTF-8", field, in("\xff"), "text is not UTF-8"},
		{"a surrogate in text", field, in("\xed\xa0\x80"), "text is not UTF-8"},
		{"a key that is not UTF-8", field, in([]pair{{"\xff", 1}}), "a key is not UTF-8"},
		{"a fixed offset", field, in(tz("UTC+02:00")), `details.a[0]: a datetime's zone is "UTC+02:00"`},
		{"a zone of nil", field, in(tz(nil)), "zone is not a name"},
		{"an empty zone", field, in(tz("")), "zone is not a name"},
		{"an unknown zone", field, in(tz("Middle/Earth")), "Python knows no zone"},
		{"a year that cannot shift", field, in(ext(t, 1, append(change("year", 9999), pair{"tz", "UTC"}))), "cannot shift it"},
		{"a month 13", field, in(ext(t, 1, change("month", 13))), "month is not a whole number from 1 to 12"},
		{"February 30", field, in(ext(t, 1, append(change("month", 2)[1:], pair{"day", 30}))), "day 30"},
		{"a float of an hour", field, in(ext(t, 1, change("hour", 1.0))), "hour is not"},
		{"no second", field, in(ext(t, 1, change("second", nil))), "has no second"},
		{"a datetime of nothing", field, in(ext(t, 1, []byte{})), "ends in the middle"},
		{"a datetime that is a list", field, in(ext(t, 1, []any{1})), "want a map"},
		{"a datetime and more", field, in(ext(t, 1, append(pack(t, when), 1))), "something follows"},
		{"a date of year 0", field, in(ext(t, 7, []pair{{"year", 0}, {"month", 1}, {"day", 1}})), "year is not"},
		{"a uuid of 8 digits", field, in(ext(t, 0, []byte("12345678"))), "32 hexadecimal digits"},
		{"a count of one", field, in(ext(t, 2, []any{1})), "not of two numbers"},
		{"a count of text", field, in(ext(t, 2, []any{"a", 1})), "not of two numbers"},
		{"a count that is none", field, in(ext(t, 2, "a")), "not of two numbers"},
		{"an address below 0", field, in(ext(t, 3, -1)), "not a number of 0 or more"},
		{"a set of lists", field, in(ext(t, 4, []any{[]any{1}})), "Python cannot put into one"},
		{"a set of sets", field, in(ext(t, 4, []any{ext(t, 4, []any{})})), "Python cannot put into one"},
		{"a set of xmlrpc times", field, in(ext(t, 5, []any{ext(t, 6, when)})), "Python cannot put into one"},
		{"a set that is a map", field, in(ext(t, 4, []pair{})), "want a list"},
		{"a timestamp of 5 bytes", field, in(ext(t, -1, make([]byte, 5))), "5 bytes: want 4, 8 or 12"},
		{"a timestamp of two seconds' nanoseconds", field, in(ext(t, -1, bytes.Repeat([]byte{0xff}, 8))), "nanoseconds"},
		{"extension -2", field, in(ext(t, -2, []byte{1})), "extension -2 is unknown"},
		{"513 levels", field, posting(t, pair{"details", nested(512, 1)}), "at most 512 levels"},
		{"a list longer than the posting", field, posting(t, pair{"details", raw{0xdd, 0xff, 0xff, 0xff, 0xff}}), "ends in the middle"},
		{"a map longer than the posting", field, posting(t, pair{"details", raw{0xdf, 0xff, 0xff, 0xff, 0xff}}), "ends in the middle"},
		{"text longer than the posting", field, posting(t, pair{"details", raw{0xdb, 0xff, 0xff, 0xff, 0xff}}), "ends in the middle"},
		{"too large", field, make([]byte, taskflow.MaxPosting+1), "want at most 12582912"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := taskflow.DecodeRedis(tc.field, tc.value)
			if job.KindOf(err) != job.Corrupt || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
				t.Errorf("got %+v and %v, want an error with %q", p, err, tc.want)
			}
		})
	}
}

func TestDecodeRedisTakes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 2, 28, 58, 637999000, time.UTC)
	plain := taskflow.Posting{Name: "n", Priority: job.High, CreatedAt: at, Sequence: 7, Details: []byte{0x80}}
	for _, tc := range []struct {
		name   string
		change pair
		want   func(p *taskflow.Posting)
	}{
		{"nothing special", pair{"details", []pair{}}, func(*taskflow.Posting) {}},
		{"a priority in small letters", pair{"priority", "very_low"}, func(p *taskflow.Posting) { p.Priority = job.VeryLow }},
		{"no priority", pair{"priority", raw(nil)}, func(p *taskflow.Posting) { p.Priority = job.Normal }},
		{"no details", pair{"details", raw(nil)}, func(p *taskflow.Posting) { p.Details = nil }},
		{"details that are a list", pair{"details", []any{1}}, func(p *taskflow.Posting) { p.Details = []byte{0x91, 1} }},
		{"another uuid within", pair{"uuid", "another"}, func(*taskflow.Posting) {}},
		{"a name of nil", pair{"name", nil}, func(p *taskflow.Posting) { p.Name = "" }},
		{"a book of nil", pair{"book", nil}, func(*taskflow.Posting) {}},
		{"half a book", pair{"book", []pair{{"uuid", "u"}, {"name", 5}, {"x", nested(3, 1)}}}, func(p *taskflow.Posting) { p.Book.UUID = "u" }},
		{"an unknown key", pair{"other", ext(t, 99, []byte("x"))}, func(*taskflow.Posting) {}},
		{"ours", pair{"boardd", []byte("x")}, func(p *taskflow.Posting) { p.Extra = []byte("x") }},
		{"a wide sequence", pair{"sequence", raw{0xd3, 0, 0, 0, 0, 0, 0, 0, 9}}, func(p *taskflow.Posting) { p.Sequence = 9 }},
		{"512 levels", pair{"details", nested(511, 1)}, func(p *taskflow.Posting) { p.Details = nested(511, 1) }},
		{"created at a zone's time", pair{"created_on", ext(t, 1, append(when[:7:7], pair{"tz", "Europe/Berlin"}))}, func(p *taskflow.Posting) { p.CreatedAt = at.Add(-time.Hour) }},
		{"created at utc", pair{"created_on", ext(t, 1, append(when[:7:7], pair{"tz", "utc"}))}, func(*taskflow.Posting) {}},
		{"created at a timestamp", pair{"created_on", ext(t, -1, []byte{0, 0, 0, 1})}, func(p *taskflow.Posting) { p.CreatedAt = time.Unix(1, 0).UTC() }},
		{"created at a long timestamp", pair{"created_on", ext(t, -1, []byte{0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1})}, func(p *taskflow.Posting) { p.CreatedAt = time.Unix(1, 5).UTC() }},
		{"created at nil", pair{"created_on", nil}, func(p *taskflow.Posting) { p.CreatedAt = time.Time{} }},
		{"created at text", pair{"created_on", "now"}, func(p *taskflow.Posting) { p.CreatedAt = time.Time{} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := plain
			tc.want(&want)
			p, err := taskflow.DecodeRedis(field, posting(t, tc.change))
			if err != nil {
				t.Fatal(err)
			}
			if p.ID.String() != field || p.Name != want.Name || p.Priority != want.Priority || !p.CreatedAt.Equal(want.CreatedAt) || p.Sequence != want.Sequence ||
				p.Book != want.Book || !bytes.Equal(p.Details, want.Details) || (p.Details == nil) != (want.Details == nil) || !bytes.Equal(p.Extra, want.Extra) {
				t.Errorf("got  %+v\nwant %+v", p, want)
			}
		})
	}
}

func valid(tb testing.TB) taskflow.Posting {
	tb.Helper()
	id, err := job.ParseID(field)
	if err != nil {
		tb.Fatal(err)
	}
	return taskflow.Posting{ID: id, Name: "n", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Sequence: 1 << 40}
}

func TestEncodeRedisRefuses(t *testing.T) {
	t.Parallel()
	details := func(v any) func(*taskflow.Posting) {
		return func(p *taskflow.Posting) { p.Encoding, p.Details = job.Msgpack, pack(t, v) }
	}
	for _, tc := range []struct {
		name   string
		change func(p *taskflow.Posting)
		want   string
	}{
		{"no id", func(p *taskflow.Posting) { p.ID = job.ID{} }, "names no job"},
		{"no time", func(p *taskflow.Posting) { p.CreatedAt = time.Time{} }, "created_on"},
		{"a time past Python's", func(p *taskflow.Posting) { p.CreatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "from 1 to 9999"},
		{"a priority that is none", func(p *taskflow.Posting) { p.Priority = 3 }, "priority"},
		{"a name that is not UTF-8", func(p *taskflow.Posting) { p.Name = "\xff" }, "name: want UTF-8"},
		{"a book that is not UTF-8", func(p *taskflow.Posting) { p.Book.UUID = "\xff" }, "book.uuid: want UTF-8"},
		{"too large", func(p *taskflow.Posting) { p.Extra = make([]byte, taskflow.MaxPosting+1) }, "want at most"},
		{"details that are a list", details([]any{}), "want a msgpack map"},
		{"details of nothing", func(p *taskflow.Posting) { p.Encoding, p.Details = job.Msgpack, []byte{} }, "want a msgpack map"},
		{"details and more", details(raw{0x80, 0x80}), "1 bytes follow the map"},
		{"a number as key", details([]pair{{"a", []any{[]pair{{1, 2}}}}}), "details.a[0]: a key is a number"},
		{"a fixed offset", details([]pair{{"t", ext(t, 1, append(when[:7:7], pair{"tz", "UTC-01:00"}))}}), "details.t: a datetime's zone"},
		{"JSON that is none", func(p *taskflow.Posting) { p.Details = []byte("{") }, "details: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := valid(t)
			tc.change(&p)
			value, err := taskflow.EncodeRedis(&p)
			if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %x and %v, want an error with %q", value, err, tc.want)
			}
		})
	}
}

func TestEncodeRedisOfEverything(t *testing.T) {
	t.Parallel()
	p := valid(t)
	p.Priority, p.Book, p.Extra = job.VeryLow, job.Book{UUID: "u", Name: "b"}, []byte{1, 2}
	p.Encoding, p.Details = job.Msgpack, pack(t, []pair{{"b", []byte("x")}, {[]byte("k"), math.NaN()}})
	value, err := taskflow.EncodeRedis(&p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := taskflow.DecodeRedis(field, value)
	if err != nil || back.Name != p.Name || back.Priority != p.Priority || back.Book != p.Book || !bytes.Equal(back.Extra, p.Extra) ||
		!bytes.Equal(back.Details, p.Details) || !back.CreatedAt.Equal(p.CreatedAt) || back.Sequence != p.Sequence {
		t.Errorf("got %+v (%v), want %+v", back, err, p)
	}
}

func TestModified(t *testing.T) {
	t.Parallel()
	at, nonce := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), [16]byte{1, 15: 2}
	blob, err := taskflow.EncodeModified(at, nonce)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(blob, nonce[:]) {
		t.Errorf("the nonce is not at the end of %x", blob)
	}
	if back, n, ours, err := taskflow.DecodeModified(blob); err != nil || !ours || n != nonce || !back.Equal(at) {
		t.Errorf("got %v, %x, %v, %v", back, n, ours, err)
	}
	for name, blob := range map[string][]byte{
		"empty": {}, "text": []byte("now"), "a date": ext(t, 7, when), "a bad one": ext(t, 1, change("day", nil)), "two": append(blob, blob...),
	} {
		if _, _, ours, err := taskflow.DecodeModified(blob); job.KindOf(err) != job.Corrupt || ours {
			t.Errorf("%s: ours %v, %v", name, ours, err)
		}
	}
	if _, _, ours, err := taskflow.DecodeModified(ext(t, 1, append(when[:7:7], pair{"nonce", []byte("short")}))); err != nil || ours {
		t.Errorf("a short nonce is ours (%v)", err)
	}
}
