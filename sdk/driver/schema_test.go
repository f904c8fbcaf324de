package driver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
)

// everyType is a schema with a field of every type.
var everyType = driver.Schema{
	Fields: []driver.Field{
		{Name: "address", Type: driver.String, Doc: "where the store is", Required: true},
		{Name: "mode", Type: driver.String, Values: []string{"fast", "safe"}},
		{Name: "password", Type: driver.String, Secret: true},
		{Name: "size", Type: driver.Integer},
		{Name: "sync", Type: driver.Boolean},
		{Name: "every", Type: driver.Duration},
		{Name: "hosts", Type: driver.StringList},
		{Name: "tls", Type: driver.Object, Fields: []driver.Field{
			{Name: "ca", Type: driver.String, Required: true, Doc: "a file"},
			{Name: "pin", Type: driver.Integer},
		}},
		{Name: "odd", Type: "color"},
	},
}

func TestSchemaCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, settings string
		want           []string
	}{
		{"everything right", `{"address":"a","mode":"fast","size":-3,"sync":true,"every":"1h30m","hosts":["a","b"],"tls":{"ca":"f"}}`, nil},
		{"null is not given", `{"address":"a","size":null,"tls":null}`, nil},
		{"empty values", `{"address":"","hosts":[],"every":"0s"}`, nil},
		{"nothing at all", ``, []string{`"address" is missing: where the store is`}},
		{"required is null", `{"address":null}`, []string{`"address" is missing: where the store is`}},
		{"string", `{"address":1}`, []string{"address: want a string"}},
		{"one of values", `{"address":"a","mode":"fats"}`, []string{`mode: want one of fast, safe, got "fats" (did you mean "fast"?)`}},
		{"integer as text", `{"address":"a","size":"3"}`, []string{"size: want a whole number"}},
		{"integer with a point", `{"address":"a","size":1.5}`, []string{"size: want a whole number, got 1.5"}},
		{"integer too large", `{"address":"a","size":9223372036854775808}`, []string{"size: want a whole number, got 9223372036854775808"}},
		{"boolean", `{"address":"a","sync":"true"}`, []string{"sync: want true or false"}},
		{"duration as a number", `{"address":"a","every":5}`, []string{`every: want a duration such as "30s"`}},
		{"duration without a unit", `{"address":"a","every":"5"}`, []string{`every: want a duration such as "30s", got "5"`}},
		{"duration below zero", `{"address":"a","every":"-5s"}`, []string{`every: want a duration such as "30s", got "-5s"`}},
		{"list", `{"address":"a","hosts":"b"}`, []string{"hosts: want a list of strings"}},
		{"item of a list", `{"address":"a","hosts":["b",1]}`, []string{"hosts: item 2: want a string"}},
		{"object", `{"address":"a","tls":true}`, []string{"tls: want an object { ... }"}},
		{"in an object", `{"address":"a","tls":{"pin":"x","cb":1}}`, []string{
			`tls: "ca" is missing: a file`, `tls.cb: there is no such setting`, "tls.pin: want a whole number",
		}},
		{"unknown, with a hint", `{"adress":"a","address":"a"}`, []string{`adress: there is no such setting (did you mean "address"?)`}},
		{"unknown, without", `{"address":"a","xyz":1}`, []string{"xyz: there is no such setting"}},
		{"a type nobody knows", `{"address":"a","odd":1}`, []string{`odd: the driver declares the unknown type "color"`}},
		{"several, sorted", `{"size":"x","mode":1}`, []string{`"address" is missing: where the store is`, "mode: want a string", "size: want a whole number"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(everyType.Check([]byte(tc.settings)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchemaCheckNoObject(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{`[]`, `"x"`, `1`, `{`, `{"address":`, `nope`, `{"address":"a"} x`, `{"address":"a"}{}`} {
		problems := everyType.Check([]byte(settings))
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "the settings are not a JSON object: ") {
			t.Errorf("%s: got %v", settings, texts(problems))
		}
	}
}

func TestSchemaTakesNothing(t *testing.T) {
	t.Parallel()
	var none driver.Schema
	if problems := none.Check(nil); problems != nil {
		t.Errorf("got %v", texts(problems))
	}
	want := []string{"a: there is no such setting: none is taken here"}
	if diff := cmp.Diff(want, texts(none.Check([]byte(`{"a":1}`)))); diff != "" {
		t.Error(diff)
	}
}

func TestSchemaOneOf(t *testing.T) {
	t.Parallel()
	schema := driver.Schema{
		Fields: []driver.Field{{Name: "file", Type: driver.String}, {Name: "url", Type: driver.String}},
		OneOf:  [][]string{{"file", "url"}},
	}
	for settings, want := range map[string][]string{
		`{"file":"a"}`:            nil,
		`{"url":"a"}`:             nil,
		`{"file":null,"url":"a"}`: nil,
		`{}`:                      {"want exactly one of file, url, got 0"},
		`{"file":"a","url":"b"}`:  {"want exactly one of file, url, got 2"},
	} {
		if diff := cmp.Diff(want, texts(schema.Check([]byte(settings)))); diff != "" {
			t.Errorf("%s: %s", settings, diff)
		}
	}
}

// A wrong secret is not shown by the message that says so.
func TestSchemaCheckKeepsSecrets(t *testing.T) {
	t.Parallel()
	schema := driver.Schema{Fields: []driver.Field{
		{Name: "kind", Type: driver.String, Secret: true, Values: []string{"hunter1"}},
		{Name: "pin", Type: driver.Integer, Secret: true},
		{Name: "every", Type: driver.Duration, Secret: true},
	}}
	problems := schema.Check([]byte(`{"kind":"hunter2","pin":12345.5,"every":"hunter2"}`))
	want := []string{
		`every: want a duration such as "30s"`,
		"kind: this is none of the values that are allowed",
		"pin: want a whole number",
	}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Error(diff)
	}
}

func texts(problems []*driver.SettingError) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Error())
	}
	return list
}

func FuzzSchemaCheck(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"address":"a","size":1e400}`, `{"tls":{"pin":{}}}`, `{"hosts":[null,[],{}]}`,
		`{"address":"a","every":"9999999999999h"}`, "{\"\xff\":1}", `{"address":"a"} {}`,
	} {
		f.Add([]byte(seed))
	}
	schema := everyType
	schema.OneOf = [][]string{{"size", "sync"}, {}}
	f.Fuzz(func(t *testing.T, settings []byte) {
		for _, p := range schema.Check(settings) {
			if p == nil || p.Problem == "" || p.Error() == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
	})
}
