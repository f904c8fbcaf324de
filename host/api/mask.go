package api

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/nearest"
)

// A mask says which fields of a message a change is about. Its zero value stands
// for those that the message has.
type mask struct {
	paths []string
}

// everything, in a mask, stands for all fields.
const everything = "*"

var allFields = mask{paths: []string{everything}}

// readMask reads a request's updateMask, which names some of the known fields.
func readMask(m *fieldmaskpb.FieldMask, known []string) (mask, error) {
	for _, path := range m.GetPaths() {
		if path == everything || slices.Contains(known, path) || strings.HasPrefix(path, limitsField+".") && slices.Contains(known, limitsField) {
			continue
		}
		return mask{}, invalid("updateMask", "there is no field %q that can be changed%s", clip(path), nearest.Hint(clip(path), known))
	}
	return mask{paths: m.GetPaths()}, nil
}

// has reports whether a field is named. given says whether the message has it.
func (m mask) has(field string, given bool) bool {
	if len(m.paths) == 0 {
		return given
	}
	return slices.Contains(m.paths, everything) || slices.Contains(m.paths, field)
}

// limits changes those limits that are named.
func (m mask) limits(given map[string]int64, l *config.Limits) error {
	if len(m.paths) == 0 {
		return admin.ChangeLimits(l, given)
	}
	if m.has(limitsField, false) {
		var err error
		*l, err = admin.ParseLimits(given)
		return err
	}
	some := map[string]int64{}
	for _, path := range m.paths {
		if name, ok := strings.CutPrefix(path, limitsField+"."); ok {
			some[name] = given[name]
		}
	}
	return admin.ChangeLimits(l, some)
}
