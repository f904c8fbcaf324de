package taskflow_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

func TestJSONThereAndBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, back string }{
		{`{}`, ``},
		{`{"b":1,"a":[true,false,null,"x",{}]}`, ``},
		{` { "a" : [ ] } `, `{"a":[]}`},
		{`{"n":[-9223372036854775808,-1,0,18446744073709551615]}`, ``},
		{`{"n":[1.0,1.5,-0.0,1e+22,1e-07,0.0001,1e+16,123456789012345.6]}`, ``},
		{`{"n":[1.50,1E3,100e-2,0.10,1000000000000000000000.0]}`, `{"n":[1.5,1000.0,1.0,0.1,1e+21]}`},
		{`{"n":[0e999999999999,0.000]}`, `{"n":[0.0,0.0]}`},
		{`{"n":2.2250738585072014e-308}`, ``},
		{`{"n":[1e` + strings.Repeat("0", 1000) + `5,0.` + strings.Repeat("0", 999) + `1e1000]}`, `{"n":[100000.0,1.0]}`},
		{`{"s":"\u00e9\ud83d\ude00\n\u0001\/"}`, `{"s":"é😀\n\u0001/"}`},
		{`{"":{"\"":"\\"}}`, ``},
	} {
		packed, err := taskflow.MsgpackOfJSON([]byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		want := tc.back
		if want == "" {
			want = tc.text
		}
		if back, ok := taskflow.JSONOfMsgpack(packed); !ok || string(back) != want {
			t.Errorf("%s came back as %s (%v), want %s", tc.text, back, ok, want)
		}
		if err := taskflow.CheckMsgpackDetails(packed); err != nil {
			t.Errorf("%s: TaskFlow could not read it: %v", tc.text, err)
		}
	}
}

func TestMsgpackOfJSONRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, job.MaxDetailsNest+1) + "1" + strings.Repeat("}", job.MaxDetailsNest+1)
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", ``, "want an object"},
		{"a list", `[]`, "want an object"},
		{"more after it", `{} {}`, "something follows"},
		{"no value", `{"a":}`, "details.a: at byte 5: want a value"},
		{"no comma", `{"a":1 "b":2}`, `want ','`},
		{"a comma too many", `{"a":1,}`, "want text in double quotes"},
		{"an open list", `{"a":[1`, `want ','`},
		{"an open text", `{"a":"x`, "does not end"},
		{"a control character", "{\"a\":\"\x01\"}", "want it escaped"},
		{"an unknown escape", `{"a":"\x"}`, `no escape \x`},
		{"half an escape", `{"a":"\u12"}`, "four hexadecimal digits"},
		{"half a surrogate", `{"a":"\ud800"}`, "surrogate without its other half"},
		{"half a surrogate as key", `{"\ude00":1}`, "surrogate without its other half"},
		{"a key twice", `{"a":{"b":1,"\u0062":2}}`, `details.a: it has the key "b" twice`},
		{"not UTF-8", "{\"a\":\"\xff\"}", "not UTF-8"},
		{"NaN", `{"a":NaN}`, "want a value"},
		{"infinity", `{"a":-Infinity}`, "want a value"},
		{"a number from 0", `{"a":01}`, "begins with 0"},
		{"a point without digits", `{"a":1.}`, "digits after the point"},
		{"an exponent without digits", `{"a":1e}`, "digits in the exponent"},
		{"2^64", `{"a":[18446744073709551616]}`, "details.a[0]: the number 18446744073709551616 is out of range"},
		{"-2^63-1", `{"a":-9223372036854775809}`, "out of range"},
		{"a float beyond float64", `{"a":1e400}`, "more digits than a float64 keeps"},
		{"a float that is rounded", `{"a":{"b":0.10000000000000000001}}`, "details.a.b: the number 0.10000000000000000001 has more digits"},
		{"a float that vanishes", `{"a":1e-400}`, "more digits"},
		{"a huge exponent", `{"a":1e-99999999999999999999}`, "more digits"},
		{"an exponent of millions of digits", `{"a":1e-` + strings.Repeat("9", job.MaxDetails-10) + `}`, "more digits"},
		{"too deep", deep, "at most 64 levels"},
		{"too large", `{"a":"` + strings.Repeat("x", job.MaxDetails) + `"}`, "too many"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			packed, err := taskflow.MsgpackOfJSON([]byte(tc.text))
			if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %x and %v, want an error with %q", packed, err, tc.want)
			}
		})
	}
}

func TestOnlyMsgpackHolds(t *testing.T) {
	t.Parallel()
	for name, details := range map[string]any{
		"bytes":      []pair{{"a", []byte("x")}},
		"a time":     []pair{{"a", ext(t, 1, when)}},
		"a byte key": []pair{{[]byte("a"), 1}},
		"a num key":  []pair{{1, 1}},
		"NaN":        []pair{{"a", math.NaN()}},
		"infinity":   []pair{{"a", []any{math.Inf(-1)}}},
		"a key twice": []pair{
			{"a", 1}, {"a", 2},
		},
		"65 levels":  []pair{{"a", nested(64, 1)}},
		"a list":     []any{},
		"not UTF-8":  []pair{{"a", "\xff"}},
		"cut off":    raw{0x81},
		"two values": raw{0x80, 0x80},
		"nothing":    raw{},
	} {
		if text, ok := taskflow.JSONOfMsgpack(pack(t, details)); ok {
			t.Errorf("%s became %s", name, text)
		}
	}
	if text, ok := taskflow.JSONOfMsgpack(pack(t, []pair{{"a", nested(63, 1)}})); !ok || len(text) < 128 {
		t.Errorf("64 levels are too many: %s", text)
	}
}

// TestRedisDetailsAsJSON shows the fixtures' details as JSON, where JSON can
// hold them, and translates them back to the same bytes.
func TestRedisDetailsAsJSON(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, f := range load(t, "redis.json").Postings {
		p, err := taskflow.DecodeRedis(f.Field, unhex(t, f.Value))
		if err != nil {
			t.Fatal(err)
		}
		text, ok := taskflow.JSONOfMsgpack(p.Details)
		if raw := f.What == "bytes, NaN, infinities" || f.What == "oslo's extension types"; ok == raw {
			t.Errorf("%s: JSON holds it: %v", f.What, ok)
		}
		if !ok {
			continue
		}
		shown++
		if again, err := taskflow.MsgpackOfJSON(text); err != nil || !bytes.Equal(again, p.Details) {
			t.Errorf("%s: %s became %x (%v), want %x", f.What, text, again, err, p.Details)
		}
	}
	if shown < 8 {
		t.Errorf("only %d are JSON", shown)
	}
}
