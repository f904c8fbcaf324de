package failpoints_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/failpoints"
	"github.com/boardd/boardd/internal/testserver"
)

// maxPoints is how many there may be: more of them say nothing new.
const maxPoints = 60

// TestPoints looks at the names in the sources.
func TestPoints(t *testing.T) {
	t.Parallel()
	points, err := failpoints.Find(testserver.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(points) == 0 || len(points) > maxPoints {
		t.Errorf("there are %d points: want 1 to %d", len(points), maxPoints)
	}
	good := regexp.MustCompile(`^[a-z]+(/[a-z]+)?/[a-z-]+$`)
	for i, p := range points {
		if !good.MatchString(p.Name) {
			t.Errorf("%s:%d: the name %q: want PACKAGE/WHAT/WHEN in small letters, or two of them", p.File, p.Line, p.Name)
		}
		if i > 0 && points[i-1].Name == p.Name {
			t.Errorf("%s:%d: there is another %q at %s:%d", p.File, p.Line, p.Name, points[i-1].File, points[i-1].Line)
		}
	}
}

// TestWhatCannotBeListed checks that a point is found out whose name is not constant.
func TestWhatCannotBeListed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`failpoint.Hit("a/b")`:                         "",
		`_ = failpoint.Environment()`:                  "",
		`_ = failpoint.Variable`:                       "",
		`name := "x"; failpoint.Hit(name)`:             "as text in quotes",
		`failpoint.Hit("x/" + "y")`:                    "as text in quotes",
		`f := failpoint.Hit; f("x")`:                   "is not called here",
		`if failpoint.Fail("a/b") != nil { panic(0) }`: "",
	} {
		dir := t.TempDir()
		text := "package p\n\nimport \"github.com/boardd/boardd/sdk/failpoint\"\n\nfunc _() { " + body + " }\n"
		if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		points, err := failpoints.Find(dir)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", body, err, want)
		case want == "" && strings.Contains(body, "a/b") && (len(points) != 1 || points[0].Name != "a/b" || points[0].Fails == strings.Contains(body, "Hit")):
			t.Errorf("%s: found %+v", body, points)
		}
	}
}

// TestDocumented compares the table in docs/reliability.md with the sources.
func TestDocumented(t *testing.T) {
	t.Parallel()
	root := testserver.Root(t)
	points, err := failpoints.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Failpoints\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .*\\S.* \\| (yes|no) \\|$")
	fails := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		documented, fails[m[1]] = append(documented, m[1]), m[2] == "yes"
	}
	var names []string
	for _, p := range points {
		names = append(names, p.Name)
		if p.Fails != fails[p.Name] {
			t.Errorf("docs/reliability.md: whether %s can fail is not so", p.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/reliability.md: the table of failpoints lacks %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(names, name) {
			t.Errorf("docs/reliability.md: there is no failpoint %s", name)
		}
	}
	if !slices.IsSorted(documented) {
		t.Error("docs/reliability.md: the table of failpoints is not sorted")
	}
}

// TestOnlyWhereAsked looks for the names in programs with and without the tag.
func TestOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	points, err := failpoints.Find(testserver.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"redis/": "./plugins/redis", "zookeeper/": "./plugins/zookeeper", "": "./cmd/boardd"}
	for prefix, pkg := range programs {
		plain, tagged := contents(t, pkg), contents(t, pkg, "failpoints")
		for _, p := range points {
			if prefix == "" && (strings.HasPrefix(p.Name, "redis/") || strings.HasPrefix(p.Name, "zookeeper/")) || !strings.HasPrefix(p.Name, prefix) {
				continue
			}
			if inProgram(plain, p.Name) {
				t.Errorf("%s without the tag has the point %s in it", pkg, p.Name)
			}
			if !bytes.Contains(tagged, []byte(p.Name)) {
				t.Errorf("%s with the tag does not have the point %s in it", pkg, p.Name)
			}
		}
	}
}

// inProgram reports whether a name stands in a program other than in quotes: boardd brings
// along the source of the SDK, which is not run.
func inProgram(program []byte, name string) bool {
	for rest := program; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return false
		}
		end := i + len(name)
		if i == 0 || rest[i-1] != '"' || end == len(rest) || rest[end] != '"' {
			return true
		}
		rest = rest[end:]
	}
}

// contents builds a program and returns it.
func contents(t *testing.T, pkg string, tags ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(testserver.Build(t, pkg, tags...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestWithTheTag runs the tests of sdk/failpoint that need the tag.
func TestWithTheTag(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags", "failpoints", "./sdk/failpoint")
	c.Dir = testserver.Root(t)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInProgram checks what counts as a name in a program.
func TestInProgram(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{
		``: false, `xa/b`: true, `a/b`: true, `"a/b"`: false, `"a/b" "a/b"`: false, `"a/b"a/b`: true, `"a/b`: true, `a/b"`: true, `"a/b" a/b"`: true, `a/c`: false,
	} {
		if got := inProgram([]byte(program), "a/b"); got != want {
			t.Errorf("a/b in %s: %v, want %v", program, got, want)
		}
	}
}
