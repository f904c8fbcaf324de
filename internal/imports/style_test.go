package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Limits of style. Whoever runs into one is usually missing a noun.
const (
	maxLines   = 500 // of a file, tests and generated code excepted
	maxMethods = 10  // of an interface
)

// drawers are names of packages that say nothing of what is in them.
var drawers = []string{"util", "utils", "common", "helper", "helpers", "base", "core", "manager", "misc", "models", "shared", "types", "lib"}

func TestPackages(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, s := range sources(t, parser.ParseComments|parser.PackageClauseOnly) {
		documented[s.dir] = documented[s.dir] || s.file.Doc.Text() != ""
		if name := strings.TrimSuffix(s.file.Name.Name, "_test"); slices.Contains(drawers, name) {
			t.Errorf("%s: package %s: name it for what it provides", s.path, name)
		}
	}
	for dir, ok := range documented {
		if !ok && !strings.HasPrefix(dir, "sdk/boardd/") && dir != "sdk/plugin/internal/pb" { // generated
			t.Errorf("%s: no file has a package comment", dir)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, parser.ParseComments) {
		if ast.IsGenerated(s.file) {
			continue
		}
		if lines := s.set.Position(s.file.FileEnd).Line; lines > maxLines && !s.test {
			t.Errorf("%s has %d lines; want at most %d", s.path, lines, maxLines)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxMethods {
				t.Errorf("%s: the interface has %d methods; want at most %d", s.position(i), i.Methods.NumFields(), maxMethods)
			}
			return true
		})
	}
}

func TestExportsAreDocumented(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, parser.ParseComments) {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no comment", s.position(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that have no
// comment: their own, that of their group, or one at the end of the line.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		var names []*ast.Ident
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if d.Doc == nil && s.Doc == nil && s.Comment == nil && name.IsExported() {
						names = append(names, name)
					}
				}
			}
		}
		return names
	}
	return nil
}

// exportedReceiver reports whether a function is one of the package's own or a
// method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && !exported {
			exported = name.IsExported()
			return false
		}
		return true
	})
	return exported
}

// skippers may skip a test by themselves: the one package that does it for
// everybody, and the suite, which asks a driver only for what it declares. A
// benchmark may always.
var skippers = []string{"internal/testneed", "sdk/driver/drivertest/..."}

func TestNobodySkips(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, 0) {
		if matches(skippers, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name) {
				return true
			}
			if on, ok := method.X.(*ast.Ident); ok && slices.Contains([]string{"t", "f", "tb"}, on.Name) {
				t.Errorf("%s: %s.%s: use internal/testneed, so that continuous integration sees it", s.position(call), on.Name, method.Sel.Name)
			}
			return true
		})
	}
}

// TestSimulationsStartNoGoroutines keeps what scripts/test.sh relies on, which runs the
// simulations without the race detector, but for a tenth of their seeds.
func TestSimulationsStartNoGoroutines(t *testing.T) {
	t.Parallel()
	files := sourcesBelow(t, "internal/simulation", 0)
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if startsGoroutine(n) {
				t.Errorf("%s: a simulation is stepped, and starts no goroutine; with one, scripts/test.sh has to run all of it with -race", s.position(n))
			}
			return true
		})
	}
	if len(files) < 10 {
		t.Errorf("looked at %d files of internal/simulation", len(files))
	}
}

// startsGoroutine reports whether n is a go statement, or the call of a method that is one,
// as a WaitGroup has it.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (f.Sel.Name == "Go" || f.Sel.Name == "AfterFunc")
	}
	return false
}

func TestStartsGoroutine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"go f()": true, "w.Go(f)": true, "time.AfterFunc(d, f)": true, "f()": false, "g.Going(f)": false, "defer f()": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n\nfunc _() { "+text+" }\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		ast.Inspect(file, func(n ast.Node) bool { found = found || startsGoroutine(n); return true })
		if found != want {
			t.Errorf("%s: %v, want %v", text, found, want)
		}
	}
}
