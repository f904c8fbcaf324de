package api

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/nearest"
)

// selection is the fields of a job that a caller asked for; nil is all of them.
type selection map[protoreflect.FieldNumber]bool

// selectFields reads the names of fields, written as in JSON.
func selectFields(names []string) (selection, error) {
	if len(names) == 0 {
		return nil, nil
	}
	fields := (*boarddv1.Job)(nil).ProtoReflect().Descriptor().Fields()
	if len(names) > fields.Len() {
		return nil, invalid("fields", "there are %d names, and a job has only %d fields", len(names), fields.Len())
	}
	s := selection{fields.ByName("uuid").Number(): true}
	for i, name := range names {
		field := fields.ByJSONName(name)
		if field == nil {
			return nil, invalid(fmt.Sprintf("fields[%d]", i), "a job has no field %q%s", clip(name), fieldHint(fields, name))
		}
		s[field.Number()] = true
	}
	return s, nil
}

func fieldHint(fields protoreflect.FieldDescriptors, name string) string {
	name, _, _ = strings.Cut(name, ".")
	if len(name) > 64 {
		return ""
	}
	all := make([]string, fields.Len())
	for i := range all {
		all[i] = fields.Get(i).JSONName()
	}
	return nearest.Hint(name, all)
}

// details reports whether the details are among the fields, in whichever form.
func (s selection) details() bool {
	fields := (*boarddv1.Job)(nil).ProtoReflect().Descriptor().Fields()
	return s == nil || s[fields.ByName("details").Number()] || s[fields.ByName("details_raw").Number()]
}

// apply empties the fields that were not asked for.
func (s selection) apply(j *boarddv1.Job) *boarddv1.Job {
	if s == nil || j == nil {
		return j
	}
	m := j.ProtoReflect()
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !s[field.Number()] {
			m.Clear(field)
		}
		return true
	})
	return j
}
