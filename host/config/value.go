package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/nearest"
)

// checkName checks the name of a tenant, token, board or backend.
func checkName(name string) error { return tenant.CheckName(name) }

// clip shortens what a user wrote for a message.
func clip(s string) string { return tenant.Clip(s) }

// kindOf names a value's type in the user's words.
func kindOf(v cty.Value) string {
	t := v.Type()
	switch {
	case v.IsNull():
		return "null"
	case t == cty.String:
		return "text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsTupleType(), t.IsListType(), t.IsSetType():
		return "a list"
	default:
		return "an object"
	}
}

// wholeNumber returns a number that is whole and fits.
func wholeNumber(v cty.Value) (int64, bool) {
	n, accuracy := v.AsBigFloat().Int64()
	return n, accuracy == big.Exact
}

// plainOf returns a value as encoding/json takes it.
func plainOf(v cty.Value) (any, error) {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil, nil //nolint:nilnil // JSON's null is nil
	case t == cty.String:
		return v.AsString(), nil
	case t == cty.Bool:
		return v.True(), nil
	case t == cty.Number:
		if n, ok := wholeNumber(v); ok {
			return n, nil
		}
		f, _ := v.AsBigFloat().Float64()
		if math.IsInf(f, 0) {
			return nil, errors.New("a number is too large")
		}
		return f, nil
	case t.IsTupleType(), t.IsListType(), t.IsSetType():
		list := make([]any, 0, v.LengthInt())
		for _, item := range v.AsValueSlice() {
			plain, err := plainOf(item)
			if err != nil {
				return nil, err
			}
			list = append(list, plain)
		}
		return list, nil
	case t.IsObjectType(), t.IsMapType():
		object := make(map[string]any, v.LengthInt())
		for name, item := range v.AsValueMap() {
			plain, err := plainOf(item)
			if err != nil {
				return nil, err
			}
			object[name] = plain
		}
		return object, nil
	}
	return nil, fmt.Errorf("a %s cannot be a setting", t.FriendlyName())
}

// functionNames are the functions that a configuration may call.
var functionNames = []string{"env", "file"}

// scope is what expressions in a file may refer to.
func (l *loader) scope(file string) *hcl.EvalContext {
	text := func(name string, give func(string) (string, error)) function.Function {
		return function.New(&function.Spec{
			Params: []function.Parameter{{Name: name, Type: cty.String}},
			Type:   function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				s, err := give(args[0].AsString())
				return cty.StringVal(s), err
			},
		})
	}
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"env":  text("name", l.env),
		"file": text("path", func(path string) (string, error) { return readText(resolve(file, path)) }),
	}}
}

// env is the function env("NAME").
func (l *loader) env(name string) (string, error) {
	if l.source.Env != nil {
		if value, ok := l.source.Env(name); ok {
			if !utf8.ValidString(value) {
				return "", fmt.Errorf("the environment variable %s is not UTF-8 text", clip(name))
			}
			return value, nil
		}
	}
	return "", fmt.Errorf("the environment variable %q is not set", clip(name))
}

// readText is the function file("path"). The line end that editors and secret
// stores put after a one-line text is taken off.
func readText(path string) (string, error) {
	data, err := readFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %s", path, plainError(err))
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not UTF-8 text", path)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return nil, &fs.PathError{Path: path, Err: errors.New("it is not a file")}
	case info.Size() > MaxFile:
		return nil, &fs.PathError{Path: path, Err: fmt.Errorf("it has %d bytes; want at most %d", info.Size(), MaxFile)}
	}
	return os.ReadFile(path)
}

// evaluable reports names in an expression that do not exist. The parser's own
// messages for these speak of variables, which a configuration does not have.
func (s *section) evaluable(expr hclsyntax.Expression) bool {
	ok := true
	for _, traversal := range expr.Variables() {
		word := traversal.RootName()
		s.problem(s.start(traversal.SourceRange()), "%s stands for nothing here; text is written in quotes: %q", clip(word), clip(word))
		ok = false
	}
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		if call, is := node.(*hclsyntax.FunctionCallExpr); is && !slices.Contains(functionNames, call.Name) {
			s.problem(s.start(call.NameRange), "there is no function %s%s; there are env(\"NAME\") and file(\"PATH\")", clip(call.Name), nearest.Hint(call.Name, functionNames))
			ok = false
		}
		return nil
	})
	return ok
}
