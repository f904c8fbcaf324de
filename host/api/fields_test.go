package api_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// wrongTypes returns, for every field that a request can have, a request in
// which that field alone has a wrong type, by the field's path.
func wrongTypes(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) map[string]string {
	wrong := map[string]string{}
	if seen[m.FullName()] {
		return wrong
	}
	seen[m.FullName()] = true
	defer delete(seen, m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		name, value := f.JSONName(), wrongValue(f)
		switch only, _ := proto.GetExtension(f.Options(), boarddv1.E_Only).(bool); {
		case only: // JSON has no such field
			wrong[name] = `{"` + name + `":["uuid"]}`
			continue
		case f.IsMap():
			wrong[name+`["k"]`] = `{"` + name + `":{"k":` + wrongValue(f.MapValue()) + `}}`
			wrong[name] = `{"` + name + `":[]}`
			continue
		case f.IsList():
			wrong[name] = `{"` + name + `":{}}`
		case value != "":
			wrong[name] = `{"` + name + `":` + value + `}`
		}
		inList := ""
		if f.IsList() {
			inList = "[0]"
			wrong[name+inList] = `{"` + name + `":[` + value + `]}`
		}
		if f.Kind() != protoreflect.MessageKind || f.Message().FullName().Parent() == "google.protobuf" {
			continue
		}
		for path, text := range wrongTypes(f.Message(), seen) {
			if f.IsList() {
				text = "[" + text + "]"
			}
			wrong[name+inList+"."+path] = `{"` + name + `":` + text + `}`
		}
		wrong[name+inList+".nosuchfield"] = strings.Replace(`{"`+name+`":[{"nosuchfield":1}]}`, "[", map[bool]string{true: "[", false: ""}[f.IsList()], 1)
		if !f.IsList() {
			wrong[name+inList+".nosuchfield"] = `{"` + name + `":{"nosuchfield":1}}`
		}
	}
	wrong["nosuchfield"] = `{"nosuchfield":1}`
	return wrong
}

// wrongValue is a value that the field does not take.
func wrongValue(f protoreflect.FieldDescriptor) string {
	if json, _ := proto.GetExtension(f.Options(), boarddv1.E_Json).(bool); json {
		return `{"unfinished":`
	}
	switch f.Kind() {
	case protoreflect.StringKind:
		return `17`
	case protoreflect.MessageKind:
		return `"text"`
	case protoreflect.BoolKind:
		return `"true"`
	default:
		return `"%"`
	}
}

func TestEveryFieldRefusesAWrongType(t *testing.T) {
	t.Parallel()
	s := serve(t)
	methods := boarddv1.File_boardd_v1_boardd_proto.Services().ByName("BoardService").Methods()
	tried := 0
	for i := range methods.Len() {
		m := methods.Get(i)
		if m.IsStreamingServer() {
			continue
		}
		for path, body := range wrongTypes(m.Input(), map[protoreflect.FullName]bool{}) {
			r := s.call(t, rootSecret, string(m.Name()), body)
			code, message := r.failure()
			if r.status != 400 || code != "invalid_argument" || !strings.HasPrefix(message, path+": ") {
				t.Errorf("%s %s: %d %s, want the path %s", m.Name(), body, r.status, r.body, path)
			}
			tried++
		}
	}
	if tried < 200 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// TestWrongSchedules: what is wrong about a schedule is called by its whole path.
func TestWrongSchedules(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for path, body := range map[string]string{
		"schedule":                   `{"name":"s","every":"3600s"}`,
		"schedule.overlap":           `{"name":"s","every":"3600s","overlap":9,"job":{"name":"x"}}`,
		"schedule.every":             `{"name":"s","every":"-3600s","job":{"name":"x"}}`,
		"schedule.jitter":            `{"name":"s","every":"3600s","jitter":"7200s","job":{"name":"x"}}`,
		"schedule.job.uuid":          `{"name":"s","every":"3600s","job":{"name":"x","uuid":"x"}}`,
		"schedule.job.unique.window": `{"name":"s","every":"3600s","job":{"name":"x","unique":{"key":"k","window":"0.001s"}}}`,
		"schedule.job.maxAttempts":   `{"name":"s","every":"3600s","job":{"name":"x","maxAttempts":-1}}`,
		"schedule.job.detailsRaw":    `{"name":"s","every":"3600s","job":{"name":"x","details":{},"detailsRaw":{"encoding":"json","data":"e30="}}}`,
		"schedule.job.timeout":       `{"name":"s","every":"3600s","job":{"name":"x","timeout":"0.001s"}}`,
		"schedule.catchUp":           `{"name":"s","every":"3600s","catchUp":"1s","job":{"name":"x"}}`,
	} {
		r := s.call(t, rootSecret, "PutSchedule", `{"board":"default","schedule":`+body+`}`)
		if code, message := r.failure(); code != "invalid_argument" || !strings.HasPrefix(message, path+": ") {
			t.Errorf("%s: %d %s, want the path %s", body, r.status, r.body, path)
		}
	}
}
