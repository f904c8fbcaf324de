package wirejson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

func at(text string) *timestamppb.Timestamp {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return timestamppb.New(t)
}

// golden is messages with their texts as they are written.
var golden = []struct {
	name    string
	message proto.Message
	text    string
}{
	{"nothing", &boarddv1.WhoAmIRequest{}, `{}`},
	{
		"zeros are written", &boarddv1.ClaimJobsRequest{},
		`{"board":"","owner":"","uuids":[],"max":0,"names":[],"filter":"","noExpiry":false,"workerLabels":{},"requestId":""}`,
	},
	{
		"a new job", &boarddv1.PostJobsRequest{Board: "default", Jobs: []*boarddv1.NewJob{{
			Name: "resize", Details: []byte(`{ "path":"/a.png", "n": 12345678901234567890.10 }`),
			Labels:   map[string]string{"b": "2", "a": "1", "é\n": "\"\\\t\u0001"},
			Priority: boarddv1.Priority_VERY_HIGH, NotBefore: at("2026-01-02T03:04:05.5Z"),
		}}},
		`{"board":"default","jobs":[{"uuid":"","name":"resize","details":{ "path":"/a.png", "n": 12345678901234567890.10 },` +
			`"priority":"VERY_HIGH","labels":{"a":"1","b":"2","é\n":"\"\\\t\u0001"},"notBefore":"2026-01-02T03:04:05.5Z",` +
			`"maxAttempts":0,"operations":[],"after":[],"batch":""}]}`,
	},
	{"bytes", &boarddv1.Raw{Encoding: "msgpack", Data: []byte{0xff, 0xfe, 0}}, `{"encoding":"msgpack","data":"//4A"}`},
	{
		"64 bits", &boarddv1.CountJobsResponse{Ready: 1<<63 - 1, Delayed: -1},
		`{"ready":"9223372036854775807","delayed":"-1","unclaimed":"0","claimed":"0","trashed":"0","complete":"0","corrupt":"0"}`,
	},
	{
		"a map of numbers", &boarddv1.WhoAmIResponse{Roles: []string{"viewer"}, Limits: map[string]int64{"claims": 5, "boards": 0}},
		`{"tenant":"","tokenName":"","roles":["viewer"],"boards":[],"limits":{"boards":"0","claims":"5"},"use":{}}`,
	},
	{
		"optional fields", &boarddv1.ExplainJobResponse{Position: proto.Int64(0), State: boarddv1.State_UNCLAIMED},
		`{"state":"UNCLAIMED","position":"0","verdict":"","reason":"","policy":""}`,
	},
	{"durations", &boarddv1.ExtendResult{Lease: durationpb.New(300 * time.Second)}, `{"lease":"300s","cancelRequested":false}`},
	{"half a second", &boarddv1.ExtendResult{Lease: durationpb.New(500 * time.Millisecond)}, `{"lease":"0.5s","cancelRequested":false}`},
	{"less than nothing", &boarddv1.ExtendResult{Lease: durationpb.New(-1500 * time.Nanosecond)}, `{"lease":"-0.0000015s","cancelRequested":false}`},
	{"JSON of any sort", &boarddv1.NewOperation{Name: "x", Input: []byte(`[1,null,"😀"]`)}, `{"name":"x","input":[1,null,"😀"],"priority":0}`},
	{"no JSON", &boarddv1.NewOperation{}, `{"name":"","input":null,"priority":0}`},
	{
		"names of fields", &boarddv1.UpdateTenantRequest{Name: "a", UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"max_lease", "limits.open_jobs", "*"}}},
		`{"name":"a","limits":{},"version":"0","updateMask":"maxLease,limits.openJobs,*"}`,
	},
	{
		"a list of enums", &boarddv1.Prerequisite{Statuses: []boarddv1.OperationStatus_Enum{boarddv1.OperationStatus_ERROR, boarddv1.OperationStatus_NONE}},
		`{"uuid":"","statuses":["ERROR","NONE"]}`,
	},
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, c := range golden {
		text, err := wirejson.Marshal(c.message)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.text, string(text)); diff != "" {
			t.Errorf("%s: written differently (-want +got):\n%s", c.name, diff)
		}
		if !json.Valid(text) {
			t.Errorf("%s: not valid JSON: %s", c.name, text)
		}
		back := c.message.ProtoReflect().New().Interface()
		if err := wirejson.Unmarshal(text, back); err != nil {
			t.Errorf("%s: read again: %v", c.name, err)
		}
		if diff := cmp.Diff(c.message, back, protocmp.Transform()); diff != "" {
			t.Errorf("%s: read differently (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestUnmarshalAccepts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       proto.Message
	}{
		{"spaces", " \r\n\t{ \"board\" : \"b\" , \"max\" : 3 } \n", &boarddv1.ClaimJobsRequest{Board: "b", Max: 3}},
		{"nulls", `{"board":null,"uuids":null,"lease":null,"workerLabels":null,"max":null}`, &boarddv1.ClaimJobsRequest{}},
		{"numbers in texts", `{"max":"7"}`, &boarddv1.ClaimJobsRequest{Max: 7}},
		{"whole numbers written long", `{"max":1.0e1}`, &boarddv1.ClaimJobsRequest{Max: 10}},
		{"64 bits as a number", `{"generation":42,"epoch":"43"}`, &boarddv1.Claim{Generation: 42, Epoch: 43}},
		{"escapes", `{"board":"\u0041\ud83d\ude00\/\b\f\n\r\t\"\\\u0000"}`, &boarddv1.ClaimJobsRequest{Board: "A😀/\b\f\n\r\t\"\\\x00"}},
		{"an escaped name", `{"b\u006fard":"x"}`, &boarddv1.ClaimJobsRequest{Board: "x"}},
		{"a time with an offset", `{"at":"2026-01-02T03:04:05.123456789+01:00"}`, &boarddv1.Event{At: at("2026-01-02T02:04:05.123456789Z")}},
		{"base64 for addresses", `{"data":"_-4"}`, &boarddv1.Raw{Data: []byte{0xff, 0xee}}},
		{"padded base64", `{"data":"/w=="}`, &boarddv1.Raw{Data: []byte{0xff}}},
		{"details with doubled names", `{"details":{"a":1,"a":2}}`, &boarddv1.NewJob{Details: []byte(`{"a":1,"a":2}`)}},
		{"details with half a pair", `{"details":{"a":"\ud800"}}`, &boarddv1.NewJob{Details: []byte(`{"a":"\ud800"}`)}},
		{"details that are no object", `{"details":[ 1e400 ]}`, &boarddv1.NewJob{Details: []byte(`[ 1e400 ]`)}},
		{"deep details", `{"details":` + nested(wirejson.MaxRawNesting) + `}`, &boarddv1.NewJob{Details: []byte(nested(wirejson.MaxRawNesting))}},
	} {
		got := c.want.ProtoReflect().New().Interface()
		if err := wirejson.Unmarshal([]byte(c.text), got); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	const priorities = "VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW"
	for _, c := range []struct{ text, want string }{
		{``, `there is no JSON: want an object, at least {}`},
		{`  `, `there is no JSON: want an object, at least {}`},
		{`null`, `want an object, got null`},
		{`[]`, `want an object, got a list`},
		{`"x"`, `want an object, got the text "x"`},
		{"\xef\xbb\xbf{}", "want an object, got '\\ufeff' (at character 1)"},
		{`{`, `the JSON ends where a name in double quotes should be (at character 2)`},
		{`{}x`, `want the end of the text after the object, got 'x' (at character 3)`},
		{`{}{}`, `want the end of the text after the object, got '{' (at character 3)`},
		{`{"board":"a",}`, `want a name in double quotes, got '}' (at character 14)`},
		{`{"board" "a"}`, `want ':', got '"' (at character 10)`},
		{`{"board":"a" "b"}`, `want ',' or '}', got '"' (at character 14)`},
		{"{\n \"board\":\n  'a'}", `board: want a text, got '\'' (at line 3, character 3)`},
		{`{"board":"a","board":"b"}`, `board: the field is given twice`},
		{`{"board":7}`, `board: want a text, got 7`},
		{`{"board":["a"]}`, `board: want a text, got a list`},
		{`{"board":"` + "\xff" + `"}`, `board: the text is not valid UTF-8 (at character 11)`},
		{`{"board":"a` + "\n" + `"}`, `board: a string may not hold the control character '\n' as such: write \u000a (at character 12)`},
		{`{"board":"\x"}`, `board: want an escape such as \n or \u000a, got 'x' (at character 12)`},
		{`{"board":"\ud800"}`, `board: \ud800 is half of a surrogate pair: it is no character by itself`},
		{`{"board":"\ud800\ud800"}`, `board: \ud800 is half of a surrogate pair: it is no character by itself`},
		{`{"board":"\udc00\ud800"}`, `board: \udc00 is half of a surrogate pair: it is no character by itself`},
		{`{"board":"\u12g4"}`, `board: want a hexadecimal digit, got 'g' (at character 15)`},
		{`{"bord":"a"}`, `bord: there is no such field (did you mean "board"?)`},
		{`{"zzz":"a"}`, `zzz: there is no such field`},
		{`{"` + strings.Repeat("z", 10_000) + `":"a"}`, strings.Repeat("z", 64) + `…: there is no such field`},
		{`{"jobs":[{},{},{},{"detials":{}}]}`, `jobs[3].detials: there is no such field (did you mean "details"?)`},
		{`{"jobs":[{"not_before":null}]}`, `jobs[0].not_before: there is no such field (did you mean "notBefore"?)`},
		{`{"jobs":{}}`, `jobs: want a list, got an object`},
		{`{"jobs":[7]}`, `jobs[0]: want an object, got 7`},
		{`{"jobs":[null]}`, `jobs[0]: want an object, got null`},
		{`{"jobs":[{}`, `jobs: the JSON ends where ',' or ']' should be (at character 12)`},
		{`{"jobs":[{},]}`, `jobs[1]: want an object, got ']' (at character 13)`},
		{`{"jobs":[{"priority":"high"}]}`, `jobs[0].priority: want one of ` + priorities + `, got "high" (did you mean "HIGH"?)`},
		{`{"jobs":[{"priority":2}]}`, `jobs[0].priority: want one of ` + priorities + `, got 2`},
		{`{"jobs":[{"labels":[]}]}`, `jobs[0].labels: want an object, got a list`},
		{`{"jobs":[{"labels":{"a":1}}]}`, `jobs[0].labels["a"]: want a text, got 1`},
		{`{"jobs":[{"labels":{"a":null}}]}`, `jobs[0].labels["a"]: want a text, got null`},
		{`{"jobs":[{"labels":{"a":"1","\u0061":"2"}}]}`, `jobs[0].labels["a"]: the name is given twice`},
		{`{"jobs":[{"maxAttempts":1.5}]}`, `jobs[0].maxAttempts: want a whole number, got 1.5`},
		{`{"jobs":[{"maxAttempts":2147483648}]}`, `jobs[0].maxAttempts: want a whole number from -2147483648 to 2147483647, got 2147483648`},
		{`{"jobs":[{"maxAttempts":true}]}`, `jobs[0].maxAttempts: want a whole number, got true`},
		{`{"jobs":[{"maxAttempts":"x"}]}`, `jobs[0].maxAttempts: want a whole number, got the text "x"`},
		{`{"jobs":[{"maxAttempts":""}]}`, `jobs[0].maxAttempts: want a whole number, got the text ""`},
		{`{"jobs":[{"maxAttempts":01}]}`, `jobs[0]: want ',' or '}', got '1' (at character 26)`},
		{`{"jobs":[{"maxAttempts":-}]}`, `jobs[0].maxAttempts: want a digit, got '}'`},
		{`{"jobs":[{"details":NaN}]}`, `jobs[0].details: want a JSON value, got 'N'`},
		{`{"jobs":[{"details":{"a":Infinity}}]}`, `jobs[0].details: want a JSON value, got 'I'`},
		{`{"jobs":[{"details":{"a":+1}}]}`, `jobs[0].details: want a JSON value, got '+'`},
		{`{"jobs":[{"details":{"a":1.}}]}`, `jobs[0].details: want a digit, got '}'`},
		{`{"jobs":[{"details":{"a":1e}}]}`, `jobs[0].details: want a digit, got '}'`},
		{`{"jobs":[{"details":{a:1}}]}`, `jobs[0].details: want a name in double quotes, got 'a'`},
		{`{"jobs":[{"details":{"a":[1}}]}`, `jobs[0].details: want ',' or ']', got '}'`},
		{`{"jobs":[{"details":{"a":1]}]}`, `jobs[0].details: want ',' or '}', got ']'`},
		{`{"jobs":[{"details":tru}]}`, `jobs[0].details: want a JSON value, got 't'`},
		{`{"jobs":[{"details":{"a":"` + "\xc0\xaf" + `"}}]}`, `jobs[0].details: the text is not valid UTF-8`},
		{`{"jobs":[{"details":` + nested(wirejson.MaxRawNesting+1) + `}]}`, `jobs[0].details: the JSON is nested deeper than 511 levels`},
		{`{"jobs":[{"details":` + strings.Repeat("[", 100_000), `jobs[0].details: the JSON is nested deeper than 511 levels`},
		{`{"jobs":[{"detailsRaw":{"data":"a*b"}}]}`, `jobs[0].detailsRaw.data: want bytes in base64, got the text "a*b"`},
		{`{"jobs":[{"detailsRaw":{"data":[1]}}]}`, `jobs[0].detailsRaw.data: want bytes in base64, got a list`},
		{`{"jobs":[{"notBefore":"tomorrow"}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got the text "tomorrow"`},
		{`{"jobs":[{"notBefore":"2026-01-02"}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got the text "2026-01-02"`},
		{`{"jobs":[{"notBefore":"2026-01-02T15:04:05,5Z"}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got the text "2026-01-02T15:04:05,5Z"`},
		{`{"jobs":[{"notBefore":"2026-02-30T15:04:05Z"}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got the text "2026-02-30T15:04:05Z"`},
		{`{"jobs":[{"notBefore":1700000000}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got 1700000000`},
		{`{"jobs":[{"notBefore":"0000-01-01T00:00:00Z"}]}`, `jobs[0].notBefore: want a time such as "2026-01-02T15:04:05Z", got the text "0000-01-01T00:00:00Z"`},
	} {
		refused(t, c.text, &boarddv1.PostJobsRequest{}, c.want)
	}
	const seconds = `seconds such as "300s" or "0.5s"`
	for _, c := range []struct{ text, want string }{
		{`{"lease":5}`, `lease: want ` + seconds + `, got 5`},
		{`{"lease":"5m"}`, `lease: want ` + seconds + `, got the text "5m"`},
		{`{"lease":"s"}`, `lease: want ` + seconds + `, got the text "s"`},
		{`{"lease":".5s"}`, `lease: want ` + seconds + `, got the text ".5s"`},
		{`{"lease":"1.s"}`, `lease: want ` + seconds + `, got the text "1.s"`},
		{`{"lease":"1e3s"}`, `lease: want ` + seconds + `, got the text "1e3s"`},
		{`{"lease":"--1s"}`, `lease: want ` + seconds + `, got the text "--1s"`},
		{`{"lease":"315576000001s"}`, `lease: want ` + seconds + `, got the text "315576000001s"`},
		{`{"lease":"0.0000000001s"}`, `lease: want ` + seconds + `, got the text "0.0000000001s"`},
		{`{"noExpiry":"true"}`, `noExpiry: want true or false, got the text "true"`},
		{`{"noExpiry":1}`, `noExpiry: want true or false, got 1`},
		{`{"uuids":"x"}`, `uuids: want a list, got the text "x"`},
		{`{"uuids":["x",3]}`, `uuids[1]: want a text, got 3`},
		{`{"state":"CLAIMED"}`, `state: there is no such field`},
	} {
		refused(t, c.text, &boarddv1.ClaimJobsRequest{}, c.want)
	}
	refused(t, `{"board":"x"}`, &boarddv1.WhoAmIRequest{}, `board: there is no such field: there are none here`)
}

func refused(t *testing.T, text string, m proto.Message, want string) {
	t.Helper()
	err := wirejson.Unmarshal([]byte(text), m)
	if err == nil {
		t.Errorf("%.80s was taken, want: %s", text, want)
		return
	}
	if !strings.HasPrefix(err.Error(), want) && !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%.80s:\n got %s\nwant %s", text, err, want)
	}
	if _, ok := errors.AsType[*wirejson.Error](err); !ok {
		t.Errorf("%.80s: the error is a %T", text, err)
	}
}

func TestLenientPassesOverTheUnknown(t *testing.T) {
	t.Parallel()
	var got boarddv1.Job
	text := `{"name":"a","fromTheFuture":{"deep":[1,{"x":null}]},"state":"PARKED","outcome":17,"operations":[{"status":"DREAMING","name":"o"}]}`
	if err := wirejson.UnmarshalLenient([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := &boarddv1.Job{Name: "a", Outcome: 17, Operations: []*boarddv1.Operation{{Name: "o"}}}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := wirejson.UnmarshalLenient([]byte(`{"fromTheFuture":}`), &got); err == nil {
		t.Error("broken JSON in an unknown field was taken")
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message proto.Message
		want    string
	}{
		{&boarddv1.Job{Name: "\xff"}, "name: the text is not valid UTF-8 (at byte 0)"},
		{&boarddv1.Job{Labels: map[string]string{"a": "b\xff"}}, `labels["a"]: the text is not valid UTF-8 (at byte 1)`},
		{&boarddv1.JobResult{Job: &boarddv1.Job{Details: []byte("{")}}, "job.details: the field is not valid JSON: the JSON ends where a name in double quotes should be (at character 2)"},
		{&boarddv1.JobResult{Job: &boarddv1.Job{Details: []byte("{} {}")}}, "job.details: the field is not valid JSON: want the end of the text, got '{' (at character 4)"},
		{&boarddv1.Event{At: &timestamppb.Timestamp{Seconds: 1 << 60}}, "at: 1152921504606846976 s and 0 ns is no time from the year 1 to 9999"},
		{&boarddv1.Claim{Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}}, "lease: 1 s and -1 ns is no duration"},
		{durationpb.New(1), "google.protobuf.Duration has no JSON form here"},
	} {
		before := []byte("before")
		text, err := wirejson.MarshalAppend(before, c.message)
		if err == nil {
			t.Errorf("%v was written as %s", c.message, text)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("got %s\nwant %s", err, c.want)
		}
		if !bytes.Equal(text, before) {
			t.Errorf("%v: after the error the text is %q", c.message, text)
		}
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	strict, lenient := wirejson.Codec{}, wirejson.Codec{Lenient: true}
	if strict.Name() != "json" || strict.IsBinary() {
		t.Errorf("the codec is %q, binary %v", strict.Name(), strict.IsBinary())
	}
	var m boarddv1.CountJobsRequest
	if err := strict.Unmarshal([]byte(`{"x":1}`), &m); err == nil {
		t.Error("a strict codec took an unknown field")
	}
	if err := lenient.Unmarshal([]byte(`{"x":1,"board":"b"}`), &m); err != nil || m.GetBoard() != "b" {
		t.Errorf("a lenient codec: %v, %v", &m, err)
	}
	if _, err := strict.Marshal(7); err == nil {
		t.Error("a number was written as a message")
	}
	if err := strict.Unmarshal([]byte(`{}`), 7); err == nil {
		t.Error("a message was read into a number")
	}
	if text, err := strict.MarshalStable(&m); err != nil || string(text) != `{"board":"b"}` {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestOnlyGivenFields writes a job of which only some fields were asked for.
func TestOnlyGivenFields(t *testing.T) {
	t.Parallel()
	m := &boarddv1.GetJobsResponse{Results: []*boarddv1.JobResult{
		{Job: &boarddv1.Job{Name: "n", Attempt: 0, GivenFields: []string{"attempt", "name", "notBefore"}}},
	}}
	got, err := wirejson.Marshal(m)
	if want := `{"results":[{"job":{"name":"n","attempt":0}}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	// The log is there where it was asked for, or where there is one.
	for want, j := range map[string]*boarddv1.Job{
		`{"log":[]}`:                  {GivenFields: []string{"log"}},
		`{"name":"","logSerial":"0"}`: {GivenFields: []string{"name", "logSerial"}},
		`{"uuid":"","log":[{"serial":"1","index":0,"type":"","message":""}]}`: {
			GivenFields: []string{"uuid", "log"}, Log: []*boarddv1.LogEntry{{Serial: 1}},
		},
	} {
		if got, err := wirejson.Marshal(j); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if got, err := wirejson.Marshal(&boarddv1.Job{}); err != nil || strings.Contains(string(got), `"log":`) || !strings.Contains(string(got), `"operations":[]`) {
		t.Errorf("got %s, %v; want no log that nobody asked for", got, err)
	}
	if got, err := wirejson.Marshal(&boarddv1.Job{Log: []*boarddv1.LogEntry{{Serial: 1}}}); err != nil || !strings.Contains(string(got), `"log":[{"serial":"1"`) {
		t.Errorf("got %s, %v; want the log that there is", got, err)
	}
	if err := wirejson.Unmarshal([]byte(`{"uuid":"u","givenFields":["uuid"]}`), &boarddv1.Job{}); err == nil {
		t.Error("a field that JSON does not have was read")
	}
}
