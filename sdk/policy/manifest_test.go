package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/policy"
)

const full = `{
  "name": "acme/gpu-first", "version": "1.4.0", "abi": 1,
  "kinds": ["eligibility", "ordering", "explain"], "tick": "30s",
  "labels": ["tier", "requires.{keys}"], "workerLabels": ["{keys}"],
  "facts": [{"name": "frames", "path": "/{where}/frames", "type": "int"}],
  "counts": "label:{by}",
  "parameters": [
    {"name": "keys", "type": "list", "default": ["gpu", "region"], "help": "labels of workers"},
    {"name": "by", "type": "string", "required": true},
    {"name": "where", "type": "string", "default": "render"},
    {"name": "slack", "type": "duration", "default": "90s"}
  ],
  "reasons": ["the job needs a GPU"], "onError": "allow", "license": "Apache-2.0", "source": "git+https://example.org/p#1"
}`

func TestBind(t *testing.T) {
	t.Parallel()
	d, err := policy.ParseManifest([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	m, values, err := d.Bind(map[string]any{"by": "team", "slack": "2m"})
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Manifest{
		Name: "acme/gpu-first", Version: "1.4.0", Eligibility: true, Ordering: true, Explains: true,
		ByTime: true, ByWorker: true, Tick: 30 * time.Second,
		Labels: []string{"tier", "requires.gpu", "requires.region"}, WorkerLabels: []string{"gpu", "region"},
		Facts:  []policy.FactSpec{{Name: "frames", Path: "/render/frames", Type: policy.IntFact}},
		Counts: "label:team", Parameters: m.Parameters,
		Reasons: []string{"the job needs a GPU"}, OnError: policy.OnErrorAllow,
		License: "Apache-2.0", Source: "git+https://example.org/p#1",
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]policy.Value{[]string{"gpu", "region"}, "team", "render", 2 * time.Minute}, values); diff != "" {
		t.Error(diff)
	}
}

func TestBindErrors(t *testing.T) {
	t.Parallel()
	d, err := policy.ParseManifest([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		set  map[string]any
		want string
	}{
		{"required", nil, "the parameter by has to be set (string)"},
		{"unknown", map[string]any{"by": "x", "slac": 1}, `it has no parameter "slac" (did you mean "slack"?); there are keys, by, where, slack`},
		{"type", map[string]any{"by": 7}, "parameter by"},
		{"duration", map[string]any{"by": "x", "slack": "soon"}, `want something like "90s"`},
		{"list", map[string]any{"by": "x", "keys": []any{"a", 1}}, "item 1 is 1: want a text"},
		{"counts", map[string]any{"by": "x*"}, `want "label:KEY"`},
		{"star in a key", map[string]any{"by": "x", "keys": []string{"*a"}}, "want a label's key"},
		{"many labels", map[string]any{"by": "x", "keys": make([]string, 65)}, "want at most 64"},
		{"many items", map[string]any{"by": "x", "keys": make([]string, policy.MaxValueItems+1)}, "want at most 1024"},
		{"long text", map[string]any{"by": strings.Repeat("x", policy.MaxValueText+1)}, "at most 16384 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := d.Bind(test.set); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestParseManifestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, old, new, want string }{
		{"unknown field", `"kinds"`, `"kindz"`, `no field is called "kindz"; did you mean "kinds"?`},
		{"abi", `"abi": 1`, `"abi": 2`, "this boardd knows version 1"},
		{"name", "acme/gpu-first", "Acme", "want up to 128 small letters"},
		{"kind", `"explain"]`, `"explode"]`, "want one of eligibility, ordering, explain"},
		{"tick", `"30s"`, `"30ms"`, "want a duration from 1s to 24h0m0s"},
		{"fact type", `"type": "int"`, `"type": "number"`, "want one of int, float, bool, string, time"},
		{"brace", `{where}`, `{there}`, `"{there}" names no parameter`},
		{"brace of a list", `label:{by}`, `label:{keys}`, `"{keys}" is a list: want a string`},
		{"default", `"default": "90s"`, `"default": 90`, "want a text like"},
		{"on error", `"allow"`, `"ignore"`, "want deny or allow"},
		{"empty reason", `"the job needs a GPU"`, `""`, "want 1 to 256"},
		{"version", `"1.4.0"`, `""`, "version: 0 bytes: want 1 to 128"},
		{"twice", `"where", "type": "string", "default": "render"`, `"by", "type": "string"`, `"by" stands there twice`},
		{"more", `#1"`, `#1"} {"`, "the manifest"},
		{"large", `"1.4.0"`, `"` + strings.Repeat("x", policy.MaxManifest) + `"`, "want at most 65536"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.ParseManifest([]byte(strings.Replace(full, test.old, test.new, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	const empty = "\x00asm\x01\x00\x00\x00"
	module, err := policy.AddManifest([]byte(empty), []byte(strings.ReplaceAll(full, "1.4.0", "1.3.0")))
	if err != nil {
		t.Fatal(err)
	}
	if module, err = policy.AddManifest(module, []byte(full)); err != nil {
		t.Fatal(err)
	}
	got, err := policy.FindManifest(module)
	if err != nil || string(got) != full {
		t.Errorf("got %q, %v", got, err)
	}
	for _, test := range []struct{ name, module, want string }{
		{"nothing", "", "no WebAssembly module"},
		{"text", "#!/bin/sh\n", "no WebAssembly module"},
		{"component", "\x00asm\x0d\x00\x01\x00", "component: build a core module"},
		{"version", "\x00asm\x02\x00\x00\x00", "of version 2"},
		{"without", empty, "has no manifest"},
		{"cut", string(module[:len(module)-1]), "longer than the module"},
		{"twice", string(module) + string(module[8:]), "two custom sections"},
		{"name", empty + "\x00\x01\x05", "longer than the section"},
	} {
		if _, err := policy.FindManifest([]byte(test.module)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestSees(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		patterns []string
		key      string
		want     bool
	}{
		{nil, "a", false},
		{[]string{"a"}, "a", true},
		{[]string{"a"}, "ab", false},
		{[]string{"a*"}, "ab", true},
		{[]string{"b", "a.*"}, "ab", false},
		{[]string{"*"}, "", true},
	} {
		if got := policy.Sees(test.patterns, test.key); got != test.want {
			t.Errorf("Sees(%q, %q) = %v", test.patterns, test.key, got)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"name":"a","version":"1","abi":1,"kinds":["ordering"],"labels":["{x}"],"parameters":[{"name":"x","type":"list"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := policy.ParseManifest(text)
		if err != nil {
			return
		}
		m, values, err := d.Bind(nil)
		if err != nil {
			return
		}
		if len(values) != len(m.Parameters) || len(m.Labels) > policy.MaxPatterns || len(m.Reasons) > policy.MaxReasons {
			t.Errorf("%+v, %v", m, values)
		}
	})
}

func FuzzSection(f *testing.F) {
	module, err := policy.AddManifest([]byte("\x00asm\x01\x00\x00\x00"), []byte(full))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(module)
	f.Fuzz(func(t *testing.T, module []byte) {
		if _, err := policy.FindManifest(module); err != nil {
			return
		}
		again, err := policy.AddManifest(module, []byte(full))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := policy.FindManifest(again); err != nil || string(got) != full {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// What is just within a limit is accepted, and one more is not.
func TestEdges(t *testing.T) {
	t.Parallel()
	list := func(n int, item func(i int) string) string {
		var items []string
		for i := range n {
			items = append(items, item(i))
		}
		return strings.Join(items, ",")
	}
	manifest := func(more string) string {
		return `{"name":"x","version":"1","abi":1,"kinds":["ordering"]` + more + `}`
	}
	for _, test := range []struct {
		name string
		most int
		text func(n int) string
	}{
		{"reasons", policy.MaxReasons, func(n int) string { return `,"reasons":[` + list(n, func(int) string { return `"r"` }) + `]` }},
		{"reason", policy.MaxReason, func(n int) string { return `,"reasons":["` + strings.Repeat("r", n) + `"]` }},
		{"labels", policy.MaxPatterns, func(n int) string { return `,"labels":[` + list(n, func(int) string { return `"l"` }) + `]` }},
		{"worker labels", policy.MaxPatterns, func(n int) string { return `,"workerLabels":[` + list(n, func(int) string { return `"l"` }) + `]` }},
		{"facts", policy.MaxFacts, func(n int) string {
			return `,"facts":[` + list(n, func(i int) string { return fmt.Sprintf(`{"name":"f%d","path":"/f","type":"int"}`, i) }) + `]`
		}},
		{"parameters", policy.MaxParameters, func(n int) string {
			return `,"parameters":[` + list(n, func(i int) string { return fmt.Sprintf(`{"name":"p%d","type":"int"}`, i) }) + `]`
		}},
		{"items", policy.MaxValueItems, func(n int) string {
			return `,"parameters":[{"name":"p","type":"list","default":[` + list(n, func(int) string { return `"i"` }) + `]}]`
		}},
		{"text", policy.MaxValueText, func(n int) string {
			return `,"parameters":[{"name":"p","type":"string","default":"` + strings.Repeat("t", n) + `"}]`
		}},
		{"tick in seconds", int(policy.MaxTick / time.Second), func(n int) string { return fmt.Sprintf(`,"tick":"%ds"`, n) }},
	} {
		for n, fits := range map[int]bool{test.most: true, test.most + 1: false} {
			d, err := policy.ParseManifest([]byte(manifest(test.text(n))))
			if err == nil {
				_, _, err = d.Bind(nil)
			}
			if (err == nil) != fits {
				t.Errorf("%s: %d: %v", test.name, n, err)
			}
		}
	}
	if _, err := policy.ParseManifest([]byte(manifest(`,"tick":"999ms"`))); err == nil {
		t.Errorf("a tick below %s is accepted", policy.MinTick)
	}
	name := strings.Repeat("n", policy.MaxPolicyName)
	for text, fits := range map[string]bool{name: true, name + "n": false} {
		_, err := policy.ParseManifest([]byte(strings.Replace(manifest(""), `"x"`, `"`+text+`"`, 1)))
		if (err == nil) != fits {
			t.Errorf("a name of %d bytes: %v", len(text), err)
		}
	}
	room := policy.MaxManifest - len(manifest(`,"license":""`))
	for n, fits := range map[int]bool{room: true, room + 1: false} {
		_, err := policy.ParseManifest([]byte(manifest(`,"license":"` + strings.Repeat("l", n) + `"`)))
		if (err == nil) != fits {
			t.Errorf("a manifest with %d bytes more: %v", n-room, err)
		}
	}
}
