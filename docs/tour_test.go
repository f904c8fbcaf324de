package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	tourStop = regexp.MustCompile(`(?m)^\d+\. \*\*`)
	tourFile = regexp.MustCompile("\\]\\(\\.\\./([^)]+\\.go)\\)\\s+`([A-Za-z]+)`")
)

// TestTour checks that each function of the tour stands in the file that it names.
func TestTour(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("tour.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tourStop.FindAll(text, -1)); n != 10 {
		t.Errorf("the tour has %d stops, want 10", n)
	}
	found := tourFile.FindAllSubmatch(text, -1)
	if len(found) < 20 {
		t.Errorf("the tour names %d files with a function, want at least 20", len(found))
	}
	for _, m := range found {
		path := string(m[1])
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		has := slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Name.Name == string(m[2])
		})
		if !has {
			t.Errorf("%s has no function %s", path, m[2])
		}
	}
}
