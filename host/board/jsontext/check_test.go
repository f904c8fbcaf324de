package jsontext

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

func TestCheckDetails(t *testing.T) {
	t.Parallel()
	many := func(key func(i int) string, n int) string {
		var keys []string
		for i := range n {
			keys = append(keys, `"`+key(i)+`":1`)
		}
		return "{" + strings.Join(keys, ",") + "}"
	}
	letters := func(i int) string { return strings.Repeat("k", i+1) }
	tests := []struct {
		name, text string
		wrong      string // part of the message; empty: right
	}{
		{"empty object", `{}`, ""},
		{"spaces", " {\n\t\"a\" : [ 1 , 2 ] } ", ""},
		{"all values", `{"a":null,"b":true,"c":false,"d":-0.5e+3,"e":"x","f":[],"g":{}}`, ""},
		{"large number kept", `{"a":123456789012345678901234567890}`, ""},
		{"long fraction", `{"a":0.` + strings.Repeat("1", 500) + `}`, ""},
		{"many keys", many(letters, 40), ""},
		{"pair of surrogates", `{"a":"\ud83d\ude00"}`, ""},
		{"text beyond ASCII", `{"ключ":"значение"}`, ""},
		{"nested just so deep", `{"a":` + strings.Repeat("[", job.MaxDetailsNest-1) + strings.Repeat("]", job.MaxDetailsNest-1) + `}`, ""},

		{"no object", `[1]`, "want a JSON object"},
		{"nothing", ``, "want a JSON object"},
		{"cut short", `{"a":1`, "want a comma or }"},
		{"cut in a string", `{"a":"x`, "ends in the middle of a string"},
		{"cut after a colon", `{"a":`, "ends in the middle"},
		{"more behind", `{} x`, "nothing may follow"},
		{"a comma too much", `{"a":1,}`, "want a key"},
		{"a comma too much in a list", `{"a":[1,]}`, "want a value"},
		{"no colon", `{"a" 1}`, "want a colon"},
		{"bare key", `{a:1}`, "want a key in double quotes"},
		{"bad word", `{"a":nul}`, "want null"},
		{"leading zero", `{"a":01}`, "want a comma or }"},
		{"NaN", `{"a":NaN}`, "want a value"},
		{"plus", `{"a":+1}`, "want a value"},
		{"bare point", `{"a":1.}`, "want a digit after the point"},
		{"bare exponent", `{"a":1e}`, "want a digit in the exponent"},
		{"too large", `{"a":1e400}`, "too large"},
		{"too large without an exponent", `{"a":1` + strings.Repeat("0", 400) + `}`, "too large"},
		{"key twice", `{"a":1,"b":2,"a":3}`, `the key "a" is there twice`},
		{"key twice, once escaped", `{"a":1,"\u0061":2}`, `the key "a" is there twice`},
		{"key twice inside", `{"x":[{"a":{"b":1,"b":2}}]}`, `the key "b" is there twice`},
		{"key twice among many", strings.TrimSuffix(many(letters, 40), "}") + `,"k":2}`, `the key "k" is there twice`},
		{"same key at different levels", `{"a":{"a":{"a":1}}}`, ""},
		{"half a pair", `{"a":"\ud83d"}`, "half of a surrogate pair"},
		{"the other half", `{"a":"\ude00"}`, "half of a surrogate pair"},
		{"bad escape", `{"a":"\x"}`, "no such escape"},
		{"bad digits", `{"a":"\u12g4"}`, "four hexadecimal digits"},
		{"control character", "{\"a\":\"\x01\"}", "control character"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "not valid UTF-8"},
		{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", "not valid UTF-8"},
		{"nested too deep", `{"a":` + strings.Repeat("[", job.MaxDetailsNest) + strings.Repeat("]", job.MaxDetailsNest) + `}`, "nested too deep"},
		{"nested very deep", strings.Repeat(`{"a":`, 100_000), "nested too deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := Check([]byte(tt.text))
			switch {
			case tt.wrong == "" && err != nil:
				t.Fatal(err)
			case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
				t.Fatalf("got %v, want it to say %q", err, tt.wrong)
			case err != nil && job.KindOf(err) != job.Invalid:
				t.Fatalf("got %v, want INVALID", job.KindOf(err))
			}
		})
	}
}

func TestCheckDetailsAllocatesNothing(t *testing.T) {
	text := []byte(`{"path":"/a/b","size":1234,"tags":["a","b"],"nested":{"a":1.5,"b":{"c":null}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := Check(text); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // the room for keys
		t.Fatalf("%v allocations", n)
	}
}

// What passes is valid JSON, and what is refused without need is only what the
// contract names.
func FuzzDetails(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `{"a":1e400}`, `{"\ud83d\ude00":[true,null,-1.5e3]}`, `{"a":"\ud800"}`, "{\"\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Check(text)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q passed and is not JSON", text)
		}
		if err == nil {
			var object map[string]any
			if err := json.Unmarshal(text, &object); err != nil {
				t.Fatalf("%q passed and cannot be decoded: %v", text, err)
			}
			for key, want := range object {
				got, isString, found := Lookup(text, key)
				if !found {
					t.Fatalf("%q: no key %q", text, key)
				}
				if s, ok := want.(string); ok != isString || ok && string(got) != s {
					t.Fatalf("%q: key %q: got %q, want %q", text, key, got, want)
				}
			}
		}
	})
}
