// Package failpoints finds the points of sdk/failpoint in the sources.
package failpoints

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// importPath is the package whose calls are the points.
const importPath = `"github.com/boardd/boardd/sdk/failpoint"`

// Point is one place in the code.
type Point struct {
	Name  string
	File  string // below the root, with slashes
	Line  int
	Fails bool // an operation can be made to fail there
}

// Find returns the points in the Go files below a folder, without tests, by their
// names. A use of the package whose point nobody can name is an error.
func Find(root string) ([]Point, error) {
	var points []Point
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		found, err := inFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		for i := range found {
			found[i].File = filepath.ToSlash(name)
		}
		points = append(points, found...)
		return err
	})
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Name, b.Name) })
	return points, err
}

// inFile returns the points of one file, without its name.
func inFile(path string) ([]Point, error) {
	source, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(source, []byte(importPath)) { // most files: reading them is enough
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	if err != nil {
		return nil, err
	}
	name := importedAs(file)
	if name == "" {
		return nil, nil
	}
	var points []Point
	called := map[*ast.SelectorExpr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s := selected(call.Fun, name)
		if s == nil {
			return true
		}
		called[s] = true
		if s.Sel.Name == "Environment" {
			return true
		}
		at := files.Position(call.Pos())
		text, bad := literal(call)
		if bad != nil {
			err = fmt.Errorf("%s: %w", at, bad)
		}
		points = append(points, Point{Name: text, Line: at.Line, Fails: s.Sel.Name == "Fail"})
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if s := selected(n, name); s != nil && !called[s] && s.Sel.Name != "Enabled" && s.Sel.Name != "Variable" {
			err = fmt.Errorf("%s: %s.%s is not called here: nobody can tell its point", files.Position(s.Pos()), name, s.Sel.Name)
		}
		return true
	})
	return points, err
}

// importedAs returns by what name a file uses the package; empty: it does not.
func importedAs(file *ast.File) string {
	for _, i := range file.Imports {
		switch {
		case i.Path.Value != importPath:
		case i.Name != nil:
			return i.Name.Name
		default:
			return "failpoint"
		}
	}
	return ""
}

// selected returns n if it is a name of the package.
func selected(n ast.Node, pkg string) *ast.SelectorExpr {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != pkg {
		return nil
	}
	return s
}

// literal returns the one argument of a call, which stands there as text.
func literal(call *ast.CallExpr) (string, error) {
	if len(call.Args) != 1 {
		return "", fmt.Errorf("a point has one name, not %d", len(call.Args))
	}
	l, ok := call.Args[0].(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", fmt.Errorf("the name of a point stands where it is, as text in quotes")
	}
	return strconv.Unquote(l.Value)
}
