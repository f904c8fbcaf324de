package api

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/nearest"
)

// selection is the names of the fields of a job that a caller asked for, written
// as in JSON; nil is all of them.
type selection []string

// jobFields are the names that a caller may ask for.
var jobFields = func() []string {
	var names []string
	fields := (*boarddv1.Job)(nil).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if fields.Get(i).Name() != "given_fields" {
			names = append(names, fields.Get(i).JSONName())
		}
	}
	return names
}()

// selectFields reads the names of fields.
func selectFields(names []string) (selection, error) {
	if len(names) > len(jobFields) {
		return nil, invalid("fields", "there are %d names, and a job has only %d fields", len(names), len(jobFields))
	}
	for i, name := range names {
		if !slices.Contains(jobFields, name) {
			return nil, invalid(fmt.Sprintf("fields[%d]", i), "a job has no field %q%s", clip(name), fieldHint(name))
		}
	}
	return names, nil
}

func fieldHint(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if len(name) > 64 {
		return ""
	}
	return nearest.Hint(name, jobFields)
}

// details reports whether the details are among the fields, in whichever form.
func (s selection) details() bool {
	return len(s) == 0 || slices.Contains(s, "details") || slices.Contains(s, "detailsRaw")
}

// operations reports whether the operations are among the fields.
func (s selection) operations() bool { return len(s) == 0 || slices.Contains(s, "operations") }

// log reports whether the log is among the fields, which has to be asked for.
func (s selection) log() bool { return slices.Contains(s, "log") }

// asItWas reports whether the job whole is among the fields, which has to be asked for.
func (s selection) asItWas() bool { return slices.Contains(s, "asItWas") }

// apply empties the fields that were not asked for, and says which were.
func (s selection) apply(j *boarddv1.Job) *boarddv1.Job {
	if len(s) == 0 || j == nil {
		return j
	}
	m := j.ProtoReflect()
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(s, field.JSONName()) {
			m.Clear(field)
		}
		return true
	})
	j.GivenFields = s
	return j
}
