package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/nearest"
)

// Schema declares the settings that a driver takes, so that the host can check
// them before the driver runs and can point at a wrong one in the user's file.
type Schema struct {
	Fields []Field
	// OneOf lists groups of fields of which exactly one must be given.
	OneOf [][]string
}

// Field declares one setting.
type Field struct {
	Name     string
	Type     FieldType
	Doc      string // one line, for people
	Required bool
	Secret   bool     // never shown
	Values   []string // for a String: the only ones allowed, if not empty
	Fields   []Field  // for an Object
}

// FieldType is the type of a setting.
type FieldType string

// The types. A Duration is text such as "5s" or "1h30m".
const (
	String     FieldType = "string"
	Integer    FieldType = "integer"
	Boolean    FieldType = "boolean"
	Duration   FieldType = "duration"
	StringList FieldType = "list of strings"
	Object     FieldType = "object"
)

// SettingError says what is wrong with which setting.
type SettingError struct {
	Path    []string // names from the outermost; empty for the settings as a whole
	Problem string
}

// Error returns the problem with its place.
func (e *SettingError) Error() string {
	if len(e.Path) == 0 {
		return e.Problem
	}
	return strings.Join(e.Path, ".") + ": " + e.Problem
}

// Check returns everything that is wrong with settings, a JSON object (empty
// counts as one without members), or nil.
func (s Schema) Check(settings []byte) []*SettingError {
	if len(settings) == 0 {
		settings = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(settings))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	if _, more := decoder.Token(); err == nil && more != io.EOF {
		err = errors.New("something follows it")
	}
	if err != nil {
		return []*SettingError{{Problem: "the settings are not a JSON object: " + err.Error()}}
	}
	problems := checkObject(nil, s.Fields, object)
	for _, group := range s.OneOf {
		given := slices.DeleteFunc(slices.Clone(group), func(n string) bool { return object[n] == nil })
		if len(given) != 1 {
			problems = append(problems, &SettingError{Problem: fmt.Sprintf("want exactly one of %s, got %d", strings.Join(group, ", "), len(given))})
		}
	}
	return problems
}

func checkObject(path []string, fields []Field, object map[string]any) []*SettingError {
	var problems []*SettingError
	known := make(map[string]Field, len(fields))
	for _, f := range fields {
		known[f.Name] = f
		if f.Required && object[f.Name] == nil {
			problems = append(problems, &SettingError{Path: path, Problem: fmt.Sprintf("%q is missing: %s", f.Name, f.Doc)})
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := append(slices.Clone(path), name)
		field, ok := known[name]
		switch {
		case !ok && len(names) == 0:
			problems = append(problems, &SettingError{Path: at, Problem: "there is no such setting: none is taken here"})
		case !ok:
			problems = append(problems, &SettingError{Path: at, Problem: "there is no such setting" + nearest.Hint(name, names)})
		case object[name] != nil:
			problems = append(problems, checkValue(at, field, object[name])...)
		}
	}
	return problems
}

func checkValue(path []string, f Field, value any) []*SettingError {
	if object, ok := value.(map[string]any); ok && f.Type == Object {
		return checkObject(path, f.Fields, object)
	}
	if problem := f.problem(value); problem != "" {
		return []*SettingError{{Path: path, Problem: problem}}
	}
	return nil
}

// problem says what is wrong with a value, or nothing. It does not show what
// was given for a secret.
func (f Field) problem(value any) string {
	switch f.Type {
	case String:
		return f.problemOfText(value)
	case Integer:
		number, ok := value.(json.Number)
		if _, err := number.Int64(); err != nil {
			return f.want("a whole number", number.String(), ok)
		}
	case Boolean:
		if _, ok := value.(bool); !ok {
			return "want true or false"
		}
	case Duration:
		text, ok := value.(string)
		if d, err := time.ParseDuration(text); !ok || err != nil || d < 0 {
			return f.want(`a duration such as "30s"`, strconv.Quote(text), ok)
		}
	case StringList:
		return problemOfList(value)
	case Object:
		return "want an object { ... }"
	default:
		return fmt.Sprintf("the driver declares the unknown type %q", f.Type)
	}
	return ""
}

func (f Field) problemOfText(value any) string {
	text, ok := value.(string)
	switch {
	case !ok:
		return "want a string"
	case len(f.Values) == 0 || slices.Contains(f.Values, text):
		return ""
	case f.Secret:
		return "this is none of the values that are allowed"
	}
	return fmt.Sprintf("want one of %s, got %q%s", strings.Join(f.Values, ", "), text, nearest.Hint(text, f.Values))
}

// want says what would be right. If the given value has the right type and is no
// secret, it is quoted.
func (f Field) want(what, given string, typed bool) string {
	if !typed || f.Secret {
		return "want " + what
	}
	return "want " + what + ", got " + given
}

func problemOfList(value any) string {
	list, ok := value.([]any)
	if !ok {
		return "want a list of strings"
	}
	for i, item := range list {
		if _, ok := item.(string); !ok {
			return fmt.Sprintf("item %d: want a string", i+1)
		}
	}
	return ""
}
