package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// section reads one block, or what stands outside of all blocks. It hands out
// settings and blocks by name, and close reports those that nobody asked for:
// so the reader is its own schema, and the names that it suggests are the ones
// that it knows.
type section struct {
	loader *loader
	file   string // as the user named it
	title  string // `board "octavia"`; empty outside of all blocks
	label  string // octavia
	at     Place  // of the block's first word
	body   *hclsyntax.Body

	settings, blocks []string // the names asked for
	places           map[string]Place
	bad              map[string]bool // settings with which something is wrong
}

// problem reports something wrong at a place in this section.
func (s *section) problem(at Place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.title != "" {
		text = s.title + ": " + text
	}
	s.loader.problem(at, text)
}

// wrong reports something wrong with a setting or, where it is absent, with the
// section.
func (s *section) wrong(name, format string, args ...any) {
	s.bad[name] = true
	s.problem(s.place(name), name+": "+format, args...)
}

// place returns where a setting's value stands.
func (s *section) place(name string) Place {
	if attribute, ok := s.body.Attributes[name]; ok {
		return s.start(attribute.Expr.Range())
	}
	return s.at
}

func (s *section) start(r hcl.Range) Place {
	return Place{File: s.file, Line: r.Start.Line, Column: r.Start.Column}
}

// has reports whether the setting is there.
func (s *section) has(name string) bool {
	_, ok := s.body.Attributes[name]
	return ok
}

// value evaluates a setting. It is false for one that is absent, null or wrong.
func (s *section) value(name string) (cty.Value, bool) {
	s.settings = append(s.settings, name)
	attribute, ok := s.body.Attributes[name]
	if !ok {
		return cty.NilVal, false
	}
	s.places[name] = s.start(attribute.Expr.Range())
	if !s.evaluable(attribute.Expr) {
		s.bad[name] = true
		return cty.NilVal, false
	}
	value, diagnostics := attribute.Expr.Value(s.loader.scope(s.file))
	if diagnostics.HasErrors() {
		s.bad[name] = true
		s.loader.diagnose(s.file, s.title, diagnostics)
		return cty.NilVal, false
	}
	if value.IsNull() {
		s.wrong(name, "null is no value; leave the setting out instead")
		return cty.NilVal, false
	}
	return value, value.IsWhollyKnown()
}

// text reads a string.
func (s *section) text(name string) (string, bool) {
	value, ok := s.value(name)
	if !ok {
		return "", false
	}
	if value.Type() != cty.String {
		s.wrong(name, "want text in quotes, got %s", kindOf(value))
		return "", false
	}
	return value.AsString(), true
}

// path reads a file's name and resolves it against the folder of the file that
// it stands in.
func (s *section) path(name string) (string, bool) {
	text, ok := s.text(name)
	if !ok {
		return "", false
	}
	if text == "" {
		s.wrong(name, "want the name of a file or folder, got nothing")
		return "", false
	}
	return resolve(s.file, text), true
}

// resolve returns a path from a configuration file, which is relative to that
// file, as an absolute one: a driver may run in another folder.
func resolve(file, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return absolute(filepath.Join(filepath.Dir(file), path))
}

// absolute returns a path as an absolute one, or as it is where the working
// directory is gone.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// truth reads a boolean.
func (s *section) truth(name string) bool {
	value, ok := s.value(name)
	if !ok {
		return false
	}
	if value.Type() != cty.Bool {
		s.wrong(name, "want true or false, got %s", kindOf(value))
		return false
	}
	return value.True()
}

// duration reads a duration, which must be between two bounds.
func (s *section) duration(name string, least, most time.Duration) (time.Duration, bool) {
	value, ok := s.value(name)
	if !ok {
		return 0, false
	}
	if value.Type() != cty.String {
		s.wrong(name, `want a duration in quotes, such as "30s" or "72h", got %s`, kindOf(value))
		return 0, false
	}
	d, err := time.ParseDuration(value.AsString())
	switch {
	case err != nil && Overlong(value.AsString()):
		s.wrong(name, "want a duration from %s to %s, got %s", short(least), short(most), clip(value.AsString()))
	case err != nil:
		s.wrong(name, `%q is not a duration; want one such as "30s", "5m" or "72h", which is 3 days`, clip(value.AsString()))
	case d < least || d > most:
		s.wrong(name, "want a duration from %s to %s, got %s", short(least), short(most), value.AsString())
	default:
		return d, true
	}
	return 0, false
}

// durations are what ParseDuration reads if it is not longer than a time.Duration may be.
var durations = regexp.MustCompile(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Overlong reports whether a text is a duration, but of more than 292 years.
func Overlong(text string) bool {
	_, err := time.ParseDuration(text)
	return err != nil && durations.MatchString(text)
}

// short writes a duration without the zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number reads a whole number, which must be between two bounds.
func (s *section) number(name string, least, most int64) (int64, bool) {
	value, ok := s.value(name)
	if !ok {
		return 0, false
	}
	if value.Type() != cty.Number {
		s.wrong(name, "want a whole number, got %s", kindOf(value))
		return 0, false
	}
	n, ok := wholeNumber(value)
	if !ok || n < least || n > most {
		s.wrong(name, "want a whole number from %d to %d", least, most)
		return 0, false
	}
	return n, true
}

// texts reads a list of strings.
func (s *section) texts(name string) ([]string, bool) {
	value, ok := s.value(name)
	if !ok {
		return nil, false
	}
	if t := value.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		s.wrong(name, `want a list such as ["a", "b"], got %s`, kindOf(value))
		return nil, false
	}
	list := []string{}
	for i, item := range value.AsValueSlice() {
		if item.IsNull() || item.Type() != cty.String {
			s.wrong(name, "item %d: want text in quotes, got %s", i+1, kindOf(item))
			return nil, false
		}
		list = append(list, item.AsString())
	}
	return list, true
}

// object reads a driver's settings as JSON and remembers where each one stands.
// The files are those settings, as dotted paths, that name a file or folder.
func (s *section) object(name string, files ...string) []byte {
	empty := []byte("{}")
	value, ok := s.value(name)
	if !ok {
		return empty
	}
	if t := value.Type(); !t.IsObjectType() && !t.IsMapType() {
		s.wrong(name, "want an object { ... }, got %s", kindOf(value))
		return empty
	}
	s.remember(s.body.Attributes[name].Expr, []string{name})
	plain, err := plainOf(value)
	if err != nil {
		s.wrong(name, "%v", err)
		return empty
	}
	for _, path := range files {
		s.resolveIn(plain, strings.Split(path, "."))
	}
	text, err := json.Marshal(plain)
	if err != nil {
		s.wrong(name, "%v", err)
		return empty
	}
	return text
}

// resolveIn makes the path at a place within settings relative to the file that
// they stand in, if there is one.
func (s *section) resolveIn(settings any, at []string) {
	object, ok := settings.(map[string]any)
	if !ok {
		return
	}
	if len(at) > 1 {
		s.resolveIn(object[at[0]], at[1:])
		return
	}
	if path, ok := object[at[0]].(string); ok && path != "" {
		object[at[0]] = resolve(s.file, path)
	}
}

// remember walks an object as it is written down.
func (s *section) remember(expr hclsyntax.Expression, path []string) {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return
	}
	for _, item := range object.Items {
		key, diagnostics := item.KeyExpr.Value(s.loader.scope(s.file))
		if diagnostics.HasErrors() || key.IsNull() || !key.IsKnown() || key.Type() != cty.String {
			continue // the evaluation of the whole has reported it
		}
		at := append(slices.Clone(path), key.AsString())
		id := strings.Join(at, "\x00")
		if first, twice := s.places[id]; twice {
			s.problem(s.start(item.KeyExpr.Range()), "%s is given twice, the first time at %s", strings.Join(at, "."), first)
		}
		s.places[id] = s.start(item.ValueExpr.Range())
		s.remember(item.ValueExpr, at)
	}
}

// refuse reports a block that stands in a server's configuration and cannot be
// applied: ignoring it would be worse.
func (s *section) refuse(name, why string) {
	s.settings, s.blocks = append(s.settings, name), append(s.blocks, name)
	if attribute, ok := s.body.Attributes[name]; ok {
		s.problem(s.start(attribute.NameRange), "%s: it cannot be applied: %s", name, why)
	}
	for _, block := range s.body.Blocks {
		if block.Type == name {
			s.problem(s.start(block.TypeRange), "%s: it cannot be applied: %s", name, why)
		}
	}
}
