package logevent_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/logevent"
	"github.com/boardd/boardd/internal/testserver"
)

// places are the folders whose lines come into the log of a server.
var places = []string{"cmd/boardd", "host", "plugins", "sdk/plugin"}

// TestEveryLineHasAName finds all lines that are written, and compares them with the table.
func TestEveryLineHasAName(t *testing.T) {
	t.Parallel()
	said := map[string]string{} // text to where it is said
	for _, place := range places {
		maps.Copy(said, lines(t, filepath.Join(testserver.Root(t), place)))
	}
	if len(said) < 100 {
		t.Fatalf("only %d lines were found: this test no longer understands them", len(said))
	}
	for text, at := range said {
		if logevent.Name(text) == "" {
			t.Errorf("%s: add a line with its name to host/logevent/events.txt:\nAREA.WHAT\t%s", at, text)
		}
	}
	names, before := map[string]bool{}, ""
	for _, e := range logevent.All() {
		if said[e.Text] == "" {
			t.Errorf("%s: nobody says %q any more", e.Name, e.Text)
		}
		if !regexp.MustCompile(`^[a-z]+\.[a-z]+(_[a-z]+)*$`).MatchString(e.Name) || names[e.Name] || e.Name < before {
			t.Errorf("%s: want a name such as server.serving, once, in the order of names", e.Name)
		}
		names[e.Name], before = true, e.Name
	}
}

// lines returns the texts that the Go files below a folder write to logs, and where.
func lines(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if text := said(call); text != "" {
					found[text] = files.Position(call.Pos()).String()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// said returns what a call writes to a log, if that is what it does.
func said(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	at := -1
	switch method.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		at = 0
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		at = 1
	case "Log", "LogAttrs", "log": // with a context, and a level or a caller
		at = 2
	}
	if at < 0 || len(call.Args) <= at {
		return ""
	}
	return constant(call.Args[at])
}

// constant returns a text that stands there, or "".
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if a, b := constant(e.X), constant(e.Y); a != "" && b != "" {
			return a + b
		}
	}
	return ""
}

// TestNamed: a line has its name beside all else, also after attributes and within a group;
// one that nobody knows has none.
func TestNamed(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	logger := slog.New(logevent.Named(slog.NewJSONHandler(&out, nil)))
	logger.With("backend", "b").Info("serving", "address", "x")
	logger.WithGroup("g").Info("stopped")
	logger.Info("somebody else's")
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		got = append(got, fields)
	}
	if got[0]["event"] != "server.serving" || got[0]["backend"] != "b" || got[0]["address"] != "x" {
		t.Errorf("%v", got[0])
	}
	if group, _ := got[1]["g"].(map[string]any); group["event"] != "server.stopped" {
		t.Errorf("%v", got[1])
	}
	if _, has := got[2]["event"]; has {
		t.Errorf("%v", got[2])
	}
}
