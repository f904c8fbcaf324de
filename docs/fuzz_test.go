package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// fuzzTargets are the fuzz targets of the module, by package.
func fuzzTargets(t *testing.T) map[string][]string {
	t.Helper()
	root := testserver.Root(t)
	targets := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets[filepath.ToSlash(dir)] = append(targets[filepath.ToSlash(dir)], f.Name.Name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return targets
}

// TestFuzzTargets holds the list of fuzz targets.
func TestFuzzTargets(t *testing.T) {
	t.Parallel()
	targets := fuzzTargets(t)
	var out strings.Builder
	out.WriteString("| package | targets |\n|---|---|\n")
	for _, dir := range slices.Sorted(maps.Keys(targets)) {
		slices.Sort(targets[dir])
		fmt.Fprintf(&out, "| `%s` | `%s` |\n", dir, strings.Join(targets[dir], "`, `"))
	}
	generated(t, "reliability.md", "fuzz targets", out.String())
}
