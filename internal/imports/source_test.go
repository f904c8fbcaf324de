package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package's.
const root = "../.."

// source is one Go file.
type source struct {
	path string // below the module, with slashes
	dir  string // its package, "." for the module's own folder
	test bool
	set  *token.FileSet
	file *ast.File
}

// position returns FILE:LINE of a node.
func (s source) position(n ast.Node) string {
	p := s.set.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

// sources parses every Go file of the module whatever its build tags. Folders
// that the go command skips, and modules within the module, are left out.
func sources(t *testing.T, mode parser.Mode) []source {
	t.Helper()
	list := sourcesBelow(t, ".", mode)
	if len(list) < 50 {
		t.Fatalf("found only %d Go files below %s", len(list), root)
	}
	return list
}

// sourcesBelow is sources of one folder of the module and those in it.
func sourcesBelow(t *testing.T, dir string, mode parser.Mode) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(filepath.Join(root, dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(name, entry.Name())
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, mode|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		list = append(list, source{path: below, dir: path.Dir(below), test: strings.HasSuffix(below, "_test.go"), set: set, file: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// skip decides whether a folder is part of the module.
func skip(name, base string) error {
	if name == root {
		return nil
	}
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// matches reports whether a package is one of a list in which NAME/... stands
// for NAME and everything below it.
func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(item string) bool {
		above, wide := strings.CutSuffix(item, "/...")
		return pkg == above || wide && strings.HasPrefix(pkg, above+"/")
	})
}
