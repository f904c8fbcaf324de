package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var glossaryRow = regexp.MustCompile("(?m)^\\| ([a-z -]+) \\| .* \\| `([^`]+)` \\|$")

// TestGlossary checks that each word of the glossary stands there once, and that what
// it names in the code is there.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := glossaryRow.FindAllStringSubmatch(string(text), -1)
	if lines := strings.Count(string(text), "\n| ") - 2; len(rows) != lines {
		t.Errorf("%d of %d lines of the tables are a word, its meaning and a place in the code", len(rows), lines)
	}
	if len(rows) > 80 {
		t.Errorf("%d words are more than two pages", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		word, place := row[1], row[2]
		if seen[word] {
			t.Errorf("%q stands there twice", word)
		}
		seen[word] = true
		if pkg, name, ok := strings.Cut(place, "."); ok && !strings.Contains(place, "/") {
			if !declares(t, filepath.Join("..", "sdk", pkg), name) {
				t.Errorf("%s: there is no %s", word, place)
			}
		} else if _, err := os.Stat(filepath.Join("..", place)); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// declares reports whether a package of the sdk has an exported name.
func declares(t *testing.T, folder, name string) (found bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d files, %v", folder, len(files), err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			gen, ok := d.(*ast.GenDecl)
			for i := 0; ok && i < len(gen.Specs); i++ {
				switch s := gen.Specs[i].(type) {
				case *ast.TypeSpec:
					found = found || s.Name.Name == name
				case *ast.ValueSpec:
					for _, n := range s.Names {
						found = found || n.Name == name
					}
				}
			}
		}
	}
	return found
}
