package examples

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTables checks that the tables of sqlite-py say what driver.proto says: a
// field with a wrong number would be lost without a word.
func TestTables(t *testing.T) {
	t.Parallel()
	want := protoFields(sources(t, "../sdk/plugin/driver.proto")[0])
	got := map[string][]string{}
	row := regexp.MustCompile(`(?m)^    "(\w+)": "([^"]*)",$`)
	for _, match := range row.FindAllStringSubmatch(sources(t, "driver-python/sqlite-py")[0], -1) {
		if match[2] != "" {
			got[match[1]] = strings.Split(match[2], ",")
		}
	}
	delete(got, "HealthCheckResponse") // of grpc.health.v1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("driver.proto and sqlite-py differ (-proto +python):\n%s", diff)
	}
}

// protoFields returns the fields of each message that has any, in the way that
// sqlite-py writes them.
func protoFields(text string) map[string][]string {
	letters := map[string]string{
		"uint32": "u", "uint64": "u", "int64": "i", "sint32": "z", "sint64": "z", "bool": "b", "sfixed64": "f", "string": "s", "bytes": "y",
	}
	for _, match := range regexp.MustCompile(`(?m)^enum (\w+)`).FindAllStringSubmatch(text, -1) {
		letters[match[1]] = "u"
	}
	messages := map[string][]string{}
	field := regexp.MustCompile(`(?m)^  (optional |repeated )?([\w.]+|map<string, int64>) (\w+) = (\d+);`)
	for _, message := range regexp.MustCompile(`(?ms)^message (\w+) \{$(.*?)^\}`).FindAllStringSubmatch(text, -1) {
		for _, f := range field.FindAllStringSubmatch(message[2], -1) {
			kind, known := letters[f[2]]
			if !known {
				kind = f[2]
			}
			if kind == "map<string, int64>" { // on the wire it is a list of messages
				f[1], kind = "repeated ", "LimitsEntry"
				messages[kind] = []string{"1 key s", "2 value i"}
			}
			mark := map[string]string{"": "", "optional ": "?", "repeated ": "*"}[f[1]]
			messages[message[1]] = append(messages[message[1]], f[4]+" "+f[3]+" "+mark+kind)
		}
	}
	return messages
}

// TestProtoFields checks the reader of the test above.
func TestProtoFields(t *testing.T) {
	t.Parallel()
	got := protoFields("enum E {\n}\nmessage A {\n  // text\n  optional bytes x = 1;  // more\n  repeated E y = 2;\n  B z = 3;\n}\nmessage B {}\n")
	if want := []string{"1 x ?y", "2 y *u", "3 z B"}; !slices.Equal(got["A"], want) || !slices.Equal(slices.Collect(maps.Keys(got)), []string{"A"}) {
		t.Errorf("read %q, want A with %q", got, want)
	}
}
