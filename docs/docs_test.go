// Package docs_test keeps README.md and docs/ true: it runs their commands, looks
// at what they print, and compares their tables with the code.
//
// A fenced block says by its language what becomes of it:
//
//	sh      is run, together with those before it in the same file
//	text    is what the sh block before it prints; … stands for any text in a
//	        line, and a line that is only … for any number of lines
//	hcl     is checked by boardd config check, on every page of the project
//	json    is parsed
//	go      stands word for word in a tested example
//	shell   is shown only: it needs a person, minutes, or rights
//	txt     is a picture or a layout, and not looked at
//
// What stands between `<!-- generated: NAME -->` and `<!-- end -->` is written by
// `go test ./docs -update`, and the test fails when it is stale.
package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

var update = flag.Bool("update", false, "write the generated parts of docs/ anew")

// pages are the files that are held to be true, below the module's top folder.
func pages(t *testing.T) []string {
	t.Helper()
	root := testserver.Root(t)
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "RATIONALE.md"} {
		found = append(found, filepath.Join(root, name))
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is one fenced block of a page.
type block struct {
	language, body string
	line           int
}

func blocks(t *testing.T, path string) []block {
	t.Helper()
	var list []block
	var open *block
	n := 0
	for line := range strings.Lines(read(t, path)) {
		n++
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case isFence && open == nil:
			open = &block{language: fence, line: n}
		case isFence:
			list = append(list, *open)
			open = nil
		case open != nil:
			open.body += line
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", path, open.line)
	}
	return list
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	known := []string{"sh", "text", "hcl", "json", "go", "sql", "python", "shell", "txt"}
	examples := examples(t)
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			at := fmt.Sprintf("%s:%d", filepath.Base(page), b.line)
			switch {
			case !slices.Contains(known, b.language):
				t.Errorf("%s: the language of a block is one of %v, got %q", at, known, b.language)
			case b.language == "json" && !json.Valid([]byte(b.body)):
				t.Errorf("%s: this is not JSON", at)
			case (b.language == "go" || b.language == "sql") && !strings.Contains(examples, squeeze(b.body)):
				t.Errorf("%s: these lines stand in no tested example, so nothing says that they work", at)
			case b.language == "python" && filepath.Base(page) != "python.md":
				t.Errorf("%s: only those of python.md are run, by the tests of clients/python", at)
			}
		}
	}
}

// examples returns the text of all tested examples.
func examples(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"sdk/*/example_test.go", "examples/*/*.go", "examples/*/*.sql"} {
		found, err := filepath.Glob(filepath.Join(testserver.Root(t), filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			all.WriteString(squeeze(read(t, path)))
		}
	}
	return all.String()
}

// TestAddresses: where a page sets BOARDD_ADDR, the clients take it.
func TestAddresses(t *testing.T) {
	t.Parallel()
	setting := regexp.MustCompile(`BOARDD_ADDR=([^\s%]+)`) // without what printf fills in
	found := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			for _, m := range setting.FindAllStringSubmatch(b.body, -1) {
				found++
				if _, err := client.New(client.Config{Addr: m[1]}); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(page), m[0], err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page sets BOARDD_ADDR any more: is the test to be?")
	}
}

// squeeze takes indentation away.
func squeeze(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

var (
	namedTest  = regexp.MustCompile("`([a-z/-]+)\\.((?:Test|Fuzz)\\w+)`")
	namedAlone = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	namedCheck = regexp.MustCompile("`([a-z]+/[a-z-]+)`")
	namedSuite = regexp.MustCompile("drivertest`?(?:'s)?\\s`([a-z]+/[a-z-]+)`")
)

// TestNamedTests looks for the tests that pages say something is checked by.
func TestNamedTests(t *testing.T) {
	t.Parallel()
	root := testserver.Root(t)
	text := func(dir string) string {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, path := range files {
			all.WriteString(read(t, path))
		}
		return all.String()
	}
	suite, everywhere := text("sdk/driver/drivertest"), testSources(t)
	for _, name := range []string{"architecture.md", "reliability.md", "postgres.md"} {
		page := read(t, filepath.Join(root, "docs", name))
		checks := namedSuite.FindAllStringSubmatch(page, -1)
		if name == "architecture.md" { // its table has the checks alone
			_, page, _ = strings.Cut(page, "\n| # | invariant |")
			page, _, _ = strings.Cut(page, "\n## ")
			checks = namedCheck.FindAllStringSubmatch(page, -1)
		}
		tests := namedTest.FindAllStringSubmatch(page, -1)
		if name != "postgres.md" && (len(tests) == 0 || len(checks) == 0) {
			t.Errorf("docs/%s names no tests", name)
		}
		for _, m := range tests {
			if !strings.Contains(text(m[1]), "func "+m[2]+"(") {
				t.Errorf("docs/%s names %s.%s, which is not there", name, m[1], m[2])
			}
		}
		for _, m := range namedAlone.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(everywhere, "func "+m[1]+"(") {
				t.Errorf("docs/%s names %s, which is in no package", name, m[1])
			}
		}
		for _, m := range checks {
			if !strings.Contains(suite, `"`+m[1]+`"`) {
				t.Errorf("docs/%s names the check %s, which the suite does not have", name, m[1])
			}
		}
	}
}

// testSources returns the text of all tests.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	root := testserver.Root(t)
	err := filepath.WalkDir(root, func(path string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case f.IsDir() && path != root && strings.HasPrefix(f.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			all.WriteString(read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// generated compares a part of a page with what it should be, or writes it.
func generated(t *testing.T, page, name, want string) {
	t.Helper()
	path := filepath.Join(testserver.Root(t), "docs", page)
	text := read(t, path)
	before, rest, found := strings.Cut(text, "<!-- generated: "+name+" -->\n")
	got, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("docs/%s has no part between <!-- generated: %s --> and <!-- end -->", page, name)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("docs/%s: the part %q is stale; go test ./docs -update writes it anew (-there +should be):\n%s", page, name, cmp.Diff(got, want))
		return
	}
	text = before + "<!-- generated: " + name + " -->\n" + want + "<!-- end -->" + after
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// maxColumns is how wide a line of prose may be, so that it can be read in a terminal and
// a change shows which sentence it changed.
const maxColumns = 120

// TestColumns looks at every page of the project. Tables, code, generated parts and what
// cannot be broken may be wider.
func TestColumns(t *testing.T) {
	t.Parallel()
	for _, page := range allPages(t) {
		code, generated := false, false
		for n, line := range strings.Split(read(t, page), "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(trimmed, "```"):
				code = !code
			case strings.HasPrefix(trimmed, "<!-- generated"):
				generated = true
			case strings.HasPrefix(trimmed, "<!-- end"):
				generated = false
			case code || generated || strings.HasPrefix(trimmed, "|") || !strings.Contains(trimmed, " "):
			case utf8.RuneCountInString(line) > maxColumns:
				t.Errorf("%s:%d: the line has %d columns: want at most %d", page, n+1, utf8.RuneCountInString(line), maxColumns)
			}
		}
	}
}

// allPages returns every page that belongs to the project, wherever it lies.
func allPages(t *testing.T) []string {
	t.Helper()
	var list []string
	root := testserver.Root(t)
	err := filepath.WalkDir(root, func(path string, f fs.DirEntry, err error) error {
		switch name := f.Name(); {
		case err != nil:
			return err
		case f.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
