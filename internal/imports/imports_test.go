package imports_test

import (
	"go/parser"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lineOf returns the line of a package, its own or that of what it is below.
func lineOf(pkg string) (line, bool) {
	if l, ok := packages[pkg]; ok {
		return l, true
	}
	for name, l := range packages {
		if strings.HasSuffix(name, "/...") && matches([]string{name}, pkg) {
			return l, true
		}
	}
	return line{}, false
}

// ownerOf returns the module that an outside package belongs to.
func ownerOf(imported string) (string, bool) {
	for name := range outside {
		if matches([]string{name + "/..."}, imported) {
			return name, true
		}
	}
	return "", false
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, parser.ImportsOnly) {
		l, known := lineOf(s.dir)
		if !known {
			t.Errorf("%s: the package %s has no line in internal/imports/table_test.go: say there what it may import, and why", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if problem := forbidden(s, l, imported); problem != "" {
				t.Errorf("%s imports %s: %s", s.position(spec), imported, problem)
			}
		}
	}
}

// forbidden says why a file may not import a package, or "".
func forbidden(s source, l line, imported string) string {
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		allowed := slices.Clone(l.may)
		if s.test {
			allowed = slices.Concat(allowed, l.tests, inTests, []string{s.dir})
		}
		if !matches(allowed, ours) {
			return s.dir + " may import only " + list(allowed) + " of this module (" + l.why + ")"
		}
		return ""
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	name, ok := ownerOf(imported)
	if !ok {
		return "no package owns this module; see internal/imports/table_test.go, and RATIONALE.md, which wants a paragraph on it"
	}
	o := outside[name]
	if !matches(o.packages, s.dir) && (!o.tests || !s.test) {
		return "only " + list(o.packages) + " may (" + o.why + ")"
	}
	return ""
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// TestTable checks the table itself: what is for others to import stands on
// nothing but itself, and no line widens what a wider rule forbids.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		l := packages[name]
		if l.why == "" {
			t.Errorf("%s: no reason is given", name)
		}
		for _, imported := range l.may {
			if strings.HasPrefix(name, "sdk/") && !strings.HasPrefix(imported+"/", "sdk/") {
				t.Errorf("%s may import %s, but sdk imports only sdk", name, imported)
			}
			if imported == "cmd/boardd" || strings.HasPrefix(imported, "plugins/") && name != "cmd/boardd" && !strings.HasPrefix(name, "plugins/") {
				t.Errorf("%s may import %s, which only programs put together", name, imported)
			}
			if _, ok := lineOf(strings.TrimSuffix(imported, "/...")); !ok && !strings.HasSuffix(imported, "/...") {
				t.Errorf("%s may import %s, which has no line", name, imported)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if outside[name].why == "" {
			t.Errorf("%s: no reason is given", name)
		}
	}
	if cycle := findCycle(); cycle != "" {
		t.Errorf("the table allows a cycle: %s", cycle)
	}
}

// findCycle looks for packages that may import each other, however far around.
func findCycle() string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(name string, trail []string) string
	visit = func(name string, trail []string) string {
		trail = append(slices.Clone(trail), name)
		switch state[name] {
		case visiting:
			return strings.Join(trail, " -> ")
		case done:
			return ""
		}
		state[name] = visiting
		for _, imported := range packages[name].may {
			for _, other := range slices.Sorted(maps.Keys(packages)) {
				if other != name && matches([]string{imported}, other) {
					if cycle := visit(other, trail); cycle != "" {
						return cycle
					}
				}
			}
		}
		state[name] = done
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if cycle := visit(name, nil); cycle != "" {
			return cycle
		}
	}
	return ""
}

// TestNoLineIsStale keeps the table as small as the module.
func TestNoLineIsStale(t *testing.T) {
	t.Parallel()
	present, used := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t, parser.ImportsOnly) {
		present[s.dir] = true
		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name, ok := ownerOf(imported); ok {
				used[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if !strings.HasSuffix(name, "/...") && !present[name] {
			t.Errorf("there is no package %s any more, but it has a line", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if !used[name] {
			t.Errorf("nobody imports %s any more, but it has a line", name)
		}
	}
}

// TestForbidden proves that the rules refuse what they are there for.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dir, imported string
		test, refused bool
	}{
		{"sdk/job", "fmt", false, false},
		{"sdk/job", module + "/sdk/driver", false, true},
		{"sdk/job", "github.com/google/go-cmp/cmp", false, true},
		{"sdk/job", "github.com/google/go-cmp/cmp", true, false},
		{"sdk/client", module + "/host", false, true},
		{"host/board", module + "/host/index", false, false},
		{"host/board", module + "/host/tenant", false, true},
		{"host/board", module + "/host", true, true},
		{"host/index", module + "/host/board", false, true},
		{"host", module + "/host/api", false, true},
		{"host/api", module + "/sdk/driver", false, true},
		{"host", "google.golang.org/grpc/codes", false, true},
		{"host/index", "go.etcd.io/bbolt", true, true},
		{"plugins/embedded", "go.etcd.io/bbolt", false, false},
		{"sdk/plugin", "github.com/hashicorp/go-hclog", false, false},
		{"sdk/plugin", "github.com/hashicorp/go-hclogger", false, true},
		{"host/config", "example.org/new", true, true},
		{"examples/worker", module + "/host", false, true},
		{"examples/worker", module + "/sdk/client", false, false},
	} {
		l, ok := lineOf(test.dir)
		if !ok {
			t.Fatalf("%s has no line", test.dir)
		}
		got := forbidden(source{dir: test.dir, test: test.test}, l, test.imported)
		if (got != "") != test.refused {
			t.Errorf("%s imports %s (test: %v): got %q, refused should be %v", test.dir, test.imported, test.test, got, test.refused)
		}
	}
	if _, ok := lineOf("host/misc"); ok {
		t.Error("an unknown package has a line")
	}
}
