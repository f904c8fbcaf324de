// Prune cuts the code that vtprotobuf generates down to what is worth its size: the
// codecs of the messages that are sent for each job. All others go through the
// standard runtime, whose tables cost no lines.
//
//	go run ./internal/prune [-safe A,B] [-shared C,D] [-written E,F] x.pb.go x_vtproto.pb.go
//
// The messages of -safe are read by UnmarshalVT, which copies what it keeps; those of
// -shared by UnmarshalVTUnsafe, whose texts are parts of what was read; those of
// -written are only written. All of them are written by MarshalToSizedBufferVT, and
// each brings the messages of its fields. The last file is written anew; what a
// message of the lists has beside these methods goes.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var want lists
	flag.Func("safe", "`messages` that are read by UnmarshalVT, comma-separated; may be repeated", into(&want.safe))
	flag.Func("shared", "`messages` that are read by UnmarshalVTUnsafe, likewise", into(&want.shared))
	flag.Func("written", "`messages` that generated code only writes", into(&want.written))
	flag.Parse()
	if err := run(flag.Args(), want); err != nil {
		fmt.Fprintln(os.Stderr, "prune:", err)
		os.Exit(1)
	}
}

func run(files []string, want lists) error {
	if len(files) != 2 {
		return errors.New("want two files: x.pb.go x_vtproto.pb.go")
	}
	types, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	codecs, err := os.ReadFile(files[1])
	if err != nil {
		return err
	}
	out, err := prune(types, codecs, want)
	if err != nil {
		return fmt.Errorf("%s: %w", files[1], err)
	}
	return os.WriteFile(files[1], out, 0o644) //nolint:gosec // source code, for all to read
}

// lists are the messages whose codecs stay.
type lists struct{ safe, shared, written []string }

func into(list *[]string) func(string) error {
	return func(names string) error {
		*list = append(*list, strings.Split(names, ",")...)
		return nil
	}
}

// prune returns codecs without the methods that no listed message needs.
func prune(types, codecs []byte, want lists) ([]byte, error) {
	m, err := readMessages(types)
	if err != nil {
		return nil, err
	}
	safe, err := m.within(want.safe)
	if err != nil {
		return nil, err
	}
	shared, err := m.within(want.shared)
	if err != nil {
		return nil, err
	}
	written, err := m.within(slices.Concat(want.safe, want.shared, want.written))
	if err != nil {
		return nil, err
	}
	return cut(codecs, func(message, method string) bool {
		switch method {
		case "SizeVT", "MarshalToSizedBufferVT":
			return written[message]
		case "MarshalToVT": // of a oneof's field: its message calls it
			return written[message] && m.wrappers[message]
		case "UnmarshalVT":
			return safe[message]
		case "UnmarshalVTUnsafe":
			return shared[message]
		}
		return false
	})
}

// messages is which message has fields of which others.
type messages struct {
	fields   map[string][]string
	wrappers map[string]bool // a oneof's fields, which are types of their own
}

func readMessages(types []byte) (messages, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", types, parser.SkipObjectResolution)
	if err != nil {
		return messages{}, err
	}
	m := messages{fields: map[string][]string{}, wrappers: map[string]bool{}}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					m.add(t)
				}
			}
		case *ast.FuncDecl: // func (*A_B) isA_C() {}: B is one of what the oneof C of A may be
			if d.Recv != nil && strings.HasPrefix(d.Name.Name, "is") {
				wrapper := receiver(d)
				m.wrappers[wrapper] = true
				m.fields[d.Name.Name] = append(m.fields[d.Name.Name], wrapper)
			}
		}
	}
	return m, nil
}

func (m messages) add(t *ast.TypeSpec) {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	names := []string{}
	for _, field := range s.Fields.List {
		ast.Inspect(field.Type, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				names = append(names, name.Name)
			}
			_, elsewhere := n.(*ast.SelectorExpr)
			return !elsewhere
		})
	}
	m.fields[t.Name.Name] = names
}

// within returns the messages of a list and all that they are made of.
func (m messages) within(names []string) (map[string]bool, error) {
	all := map[string]bool{}
	for _, name := range names {
		if _, ok := m.fields[name]; !ok {
			return nil, fmt.Errorf("there is no message %s", name)
		}
	}
	for todo := slices.Clone(names); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if fields, ok := m.fields[name]; ok && !all[name] {
			all[name] = true
			todo = append(todo, fields...)
		}
	}
	return all, nil
}

func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// cut removes the methods that keep refuses, and the imports that only they used.
func cut(code []byte, keep func(message, method string) bool) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", code, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	var away [][2]token.Pos
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && !keep(receiver(f), f.Name.Name) {
			away = append(away, extent(f.Doc, f))
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					used[x.Name] = true
				}
			}
			return true
		})
	}
	for _, spec := range file.Imports {
		if name := importName(spec); name != "_" && !used[name] {
			away = append(away, extent(spec.Doc, spec))
		}
	}
	slices.SortFunc(away, func(a, b [2]token.Pos) int { return int(a[0] - b[0]) })
	var out bytes.Buffer
	at := 0
	for _, x := range away {
		out.Write(code[at:fset.Position(x[0]).Offset])
		at = fset.Position(x[1]).Offset
	}
	out.Write(code[at:])
	return format.Source(out.Bytes())
}

func extent(doc *ast.CommentGroup, n ast.Node) [2]token.Pos {
	if doc != nil {
		return [2]token.Pos{doc.Pos(), n.End()}
	}
	return [2]token.Pos{n.Pos(), n.End()}
}

func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	path, _ := strconv.Unquote(spec.Path.Value)
	return path[strings.LastIndexByte(path, '/')+1:]
}
