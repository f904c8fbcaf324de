package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const someUUID = "00000000-0000-4000-8000-000000000001"

// times repeats an item of a JSON list.
func times(n int, item string) string {
	return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
}

// refusedCalls are requests that fail as a whole, with the words of the answer.
var refusedCalls = []struct {
	call, body, code, message string
}{
	{"PostJobs", `{"board":"default","jobs":[{},{},{},{"detials":{}}]}`, "invalid_argument", `jobs[3].detials: there is no such field (did you mean "details"?)`},
	{"PostJobs", `{"board":"default","jobs":[{"name":7}]}`, "invalid_argument", `jobs[0].name: want a text, got 7`},
	{"PostJobs", `{"board":"default","jobs":[{"priority":"URGENT"}]}`, "invalid_argument", `jobs[0].priority: want one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW, got "URGENT"`},
	{"PostJobs", `{"board":"default","jobs":[` + times(1001, `{"name":"a"}`) + `]}`, "invalid_argument", `jobs: want at most 1000 items`},
	{"PostJobs", ``, "invalid_argument", `there is no JSON: want an object, at least {}`},
	{"PostJobs", `{"board":"default","jobs":[{"details":{"a":NaN}}]}`, "invalid_argument", `jobs[0].details: want a JSON value, got 'N' (at character 44)`},
	{"PostJobs", `{"board":"default"} x`, "invalid_argument", `want the end of the text after the object, got 'x' (at character 21)`},
	{"PostJobs", `{"board":"default","jobs":[{"name":"` + "\xff" + `"}]}`, "invalid_argument", `jobs[0].name: the text is not valid UTF-8 (at character 37)`},
	{"PostJobs", `{"board":"default","jobs":[{"details":` + strings.Repeat("[", 100_000) + `}]}`, "invalid_argument", `jobs[0].details: the JSON is nested deeper than 511 levels (at character 550)`},
	{"PostJobs", `{"board":"nowhere"}`, "not_found", `there is no board "nowhere"`},
	{"PostJobs", `{"board":"defualt"}`, "not_found", `there is no board "defualt" (did you mean "default"?)`},
	{"PostJobs", `{"jobs":[]}`, "invalid_argument", `board: the name of a board is missing`},
	{"PostJobs", `{"board":"observed","jobs":[{"name":"a"}]}`, "failed_precondition", `the board observed is only observed: nothing can be changed through it`},
	{"GetJobs", `{"board":"default","uuids":[` + times(1001, `"x"`) + `]}`, "invalid_argument", `uuids: want at most 1000 items`},
	{"GetJobs", `{"board":"default","fields":["name","detials"]}`, "invalid_argument", `fields[1]: a job has no field "detials" (did you mean "details"?)`},
	{"GetJobs", `{"board":"default","fields":["book.name"]}`, "invalid_argument", `fields[0]: a job has no field "book.name" (did you mean "book"?)`},
	{"GetJobs", `{"board":"default","wait":"-1s"}`, "invalid_argument", `wait: want at least 0s, got -1s`},
	{"GetJobs", `{"board":"default","wait":5}`, "invalid_argument", `wait: want seconds such as "300s" or "0.5s", got 5`},
	{"ListJobs", `{"board":"default","pageSize":1001}`, "invalid_argument", `pageSize: want 1 to 1000, or 0 for 100, got 1001`},
	{"ListJobs", `{"board":"default","pageSize":-1}`, "invalid_argument", `pageSize: want 1 to 1000, or 0 for 100, got -1`},
	{"ListJobs", `{"board":"default","pageSize":4294967396}`, "invalid_argument", `pageSize: want a whole number from -2147483648 to 2147483647, got 4294967396`},
	{"ListJobs", `{"board":"default","states":["UNKNOWN"]}`, "invalid_argument", `states[0]: want UNCLAIMED, CLAIMED, COMPLETE or TRASHED, got UNKNOWN`},
	{"ListJobs", `{"board":"default","states":["DONE"]}`, "invalid_argument", `states[0]: want one of UNKNOWN, UNCLAIMED, CLAIMED, COMPLETE, TRASHED, got "DONE"`},
	{"ListJobs", `{"board":"default","filter":"` + strings.Repeat("x", 4097) + `"}`, "invalid_argument", `filter: want at most 4096 bytes, got 4097`},
	{"ClaimJobs", `{"board":"default"}`, "invalid_argument", `owner: want a name of 1 to 256 bytes`},
	{"ClaimJobs", `{"board":"default","owner":"` + strings.Repeat("x", 257) + `"}`, "invalid_argument", `owner: `},
	{"ClaimJobs", `{"board":"default","owner":"w","max":1001}`, "invalid_argument", `max: want 1 to 1000, or 0 for 1, got 1001`},
	{"ClaimJobs", `{"board":"default","owner":"w","max":-1}`, "invalid_argument", `max: want 1 to 1000, or 0 for 1, got -1`},
	{"ClaimJobs", `{"board":"default","owner":"w","max":1,"uuids":["` + someUUID + `"]}`, "invalid_argument", `max: want either uuids or max, got both`},
	{"ClaimJobs", `{"board":"default","owner":"w","lease":"0s"}`, "invalid_argument", `lease: want at least 1s, got 0s`},
	{"ClaimJobs", `{"board":"default","owner":"w","lease":"-30s"}`, "invalid_argument", `lease: want at least 1s, got -30s`},
	{"ClaimJobs", `{"board":"default","owner":"w","lease":"3155760000s"}`, "invalid_argument", `lease: want 1s to 1h0m0s`},
	{"ClaimJobs", `{"board":"default","owner":"w","lease":"315576000000s"}`, "invalid_argument", `lease: want 1s to 1h0m0s`},
	{"ClaimJobs", `{"board":"default","owner":"w","lease":"30s","noExpiry":true}`, "invalid_argument", `lease: want either noExpiry or lease, got both`},
	{"ClaimJobs", `{"board":"default","owner":"w","noExpiry":true}`, "invalid_argument", `noExpiry: this board grants no claims without a lease`},
	{"ClaimJobs", `{"board":"default","owner":"w","requestId":"` + strings.Repeat("x", 257) + `"}`, "invalid_argument", `requestId: want at most 256 bytes, got 257`},
	{"ClaimJobs", `{"board":"default","owner":"w","names":[` + times(257, `"n"`) + `]}`, "invalid_argument", `names: want at most 256 items`},
	{"ClaimJobs", `{"board":"default","owner":"w","filter":"color = red"}`, "invalid_argument", `filter: `},
	{"ClaimJobs", `{"board":"default","owner":"w","workerLabels":{"k":"` + strings.Repeat("x", 129) + `"}}`, "invalid_argument", `workerLabels`},
	{"Work", `{"board":"default"}`, "invalid_argument", `owner: want a name of 1 to 256 bytes`},
	{"Work", `{"board":"default","owner":"w","max":1001}`, "invalid_argument", `max: want 0 to 1000, got 1001`},
	{"Work", `{"board":"default","owner":"w","ahead":-1}`, "invalid_argument", `ahead: want 0 to 1000, got -1`},
	{"Work", `{"board":"default","owner":"w","lease":"30s","noExpiry":true}`, "invalid_argument", `lease: want either noExpiry or lease, got both`},
	{"Work", `{"board":"default","owner":"w","requestId":"` + strings.Repeat("x", 257) + `"}`, "invalid_argument", `requestId: want at most 256 bytes, got 257`},
	{"Work", `{"board":"default","owner":"w","endings":[` + times(1001, `{}`) + `]}`, "invalid_argument", `endings: want at most 1000 items`},
	{"Work", `{"board":"default","owner":"w","extend":[` + times(1001, `{}`) + `]}`, "invalid_argument", `extend: want at most 1000 items`},
	{"Work", `{"board":"default","owner":"w","endings":[{"how":"EAT"}]}`, "invalid_argument", `endings[0].how: want one of`},
	{"Work", `{"board":"observed","owner":"w","max":1}`, "failed_precondition", `the board observed is only observed`},
	{"ClaimJobs", `{"board":"observed","owner":"w"}`, "failed_precondition", `the board observed is only observed`},
	{"ExtendClaims", `{"board":"default","lease":"0.5s"}`, "invalid_argument", `lease: want at least 1s, got 0.5s`},
	{"ExtendClaims", `{"board":"default","lease":"3155760000s","claims":[{}]}`, "invalid_argument", `lease: want 1s to 1h0m0s`},
	{"ExtendClaims", `{"board":"default","claims":[` + times(1001, `{}`) + `]}`, "invalid_argument", `claims: want at most 1000 items`},
	{"ConsumeJobs", `{"board":"default","claims":[` + times(1001, `{}`) + `]}`, "invalid_argument", `claims: want at most 1000 items`},
	{"AbandonJobs", `{"board":"default","retryAfter":"-1s"}`, "invalid_argument", `retryAfter: want at least 0s, got -1s`},
	{"AbandonJobs", `{"board":"default","retryAfter":"315576000000s"}`, "invalid_argument", `retryAfter: want 0s to 36525 days`},
	{"TrashJobs", `{"board":"default","uuids":["x"],"claims":[{}]}`, "invalid_argument", `uuids: want either claims or uuids, got both`},
	{"TrashJobs", `{"board":"default","uuids":[` + times(1001, `"x"`) + `]}`, "invalid_argument", `uuids: want at most 1000 items`},
	{"RestoreJobs", `{"board":"default","uuids":[` + times(1001, `"x"`) + `]}`, "invalid_argument", `uuids: want at most 1000 items`},
	{"PurgeJobs", `{"board":"default","uuids":[` + times(1001, `"x"`) + `]}`, "invalid_argument", `uuids: want at most 1000 items`},
	{"ReleaseJobs", `{"board":"default","uuids":["x"]}`, "invalid_argument", `reason: want a reason: a worker may still be at it`},
	{"ReleaseJobs", `{"board":"default","reason":"r","expectOwner":"` + strings.Repeat("x", 257) + `"}`, "invalid_argument", `expectOwner: want at most 256 bytes`},
	{"PostAsItWas", `{"board":"default","jobs":[` + times(1001, `{}`) + `]}`, "invalid_argument", `jobs: want at most 1000 items`},
	{"PostAsItWas", `{"board":"observed"}`, "failed_precondition", `the board observed is only observed`},
	{"ListJobs", `{"board":"default","fields":["asItWas"]}`, "invalid_argument", `fields[0]: a list has no jobs whole`},
	{"ListEvents", `{"board":"default","from":"yesterday"}`, "invalid_argument", `from: "yesterday" is not a cursor of this board`},
	{"ListEvents", `{"board":"default","from":"` + strings.Repeat("x", 1025) + `"}`, "invalid_argument", `from: this is not a cursor of this board`},
	{"ListEvents", `{"board":"default","max":1001}`, "invalid_argument", `max: want 1 to 1000, or 0 for 100, got 1001`},
	{"ExplainJob", `{"board":"default","uuid":"x"}`, "invalid_argument", `uuid: "x" is not a uuid: want 32 hexadecimal digits as 8-4-4-4-12`},
	{"ExplainJob", `{"board":"default","uuid":"00000000-0000-0000-0000-000000000000"}`, "invalid_argument", `uuid: the uuid of all zeros names no job`},
	{"ExplainJob", `{"board":"default","uuid":"` + someUUID + `"}`, "not_found", ``},
	{"RegisterEntity", `{"board":"default"}`, "invalid_argument", `entity: want an entity with kind and name`},
	{"RegisterEntity", `{"board":"default","entity":{"kind":"a","name":"b"},"ttl":"-1s"}`, "invalid_argument", `ttl: want at least 0s, got -1s`},
	{"RegisterEntity", `{"board":"default","entity":{"kind":"","name":""},"ttl":"9s"}`, "invalid_argument", ``},
	{"RemoveEntity", `{"board":"default","kind":"a"}`, "invalid_argument", `entity.name: want 1 to 256 bytes`},
	{"RemoveEntity", `{"board":"default","kind":"a/b","name":"c"}`, "invalid_argument", `entity.kind: a slash is not allowed`},
	{"RemoveEntity", `{"board":"default","kind":"a","name":"b"}`, "not_found", `there is no entity "b" of the kind "a"`},
	{"RemoveEntity", `{"board":"observed","kind":"a","name":"b"}`, "failed_precondition", `the board observed is only observed`},
	{"PauseBoard", `{"board":"observed"}`, "failed_precondition", `the board observed is only observed`},
	{"GetBoard", `{}`, "invalid_argument", `board: the name of a board is missing`},
	{"GetBoard", `{"board":"no/such"}`, "not_found", `there is no board "no/such"`},
	{"WhoAmI", `{"board":"default"}`, "invalid_argument", `board: there is no such field: there are none here`},
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	s := serve(t)
	status := map[string]int{
		"invalid_argument": http.StatusBadRequest, "not_found": http.StatusNotFound, "failed_precondition": http.StatusBadRequest,
	}
	for _, c := range refusedCalls {
		r := s.call(t, rootSecret, c.call, c.body)
		code, message := r.failure()
		if code != c.code || !strings.HasPrefix(message, c.message) || r.status != status[code] {
			t.Errorf("%s %.100s:\n got %d %s\nwant %s: %s", c.call, c.body, r.status, r.body, c.code, c.message)
		}
		if !strings.Contains(r.body, `"type":"boardd.v1.Error"`) {
			t.Errorf("%s %.100s: no detail in %s", c.call, c.body, r.body)
		}
	}
}

// refusedItems are new jobs of which each fails by itself.
var refusedItems = []struct{ item, message string }{
	{`{}`, `name: want a name of 1 to 256 bytes`},
	{`{"name":"` + strings.Repeat("x", 257) + `"}`, `name: `},
	{`{"name":"a\u0000b"}`, `name: the text holds a zero byte`},
	{`{"name":"a","uuid":"x"}`, `uuid: "x" is not a uuid: want 32 hexadecimal digits as 8-4-4-4-12`},
	{`{"name":"a","uuid":"00000000-0000-0000-0000-000000000000"}`, `uuid: the uuid of all zeros names no job`},
	{`{"name":"a","details":[]}`, `details: want a JSON object {...}`},
	{`{"name":"a","details":"x"}`, `details: want a JSON object {...}`},
	{`{"name":"a","details":{"a":1,"a":2}}`, `details: at byte`},
	{`{"name":"a","details":{"a":1e400}}`, `details: at byte`},
	{`{"name":"a","details":{"a":"\ud800"}}`, `details: at byte`},
	{`{"name":"a","details":{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}}`, `details: at byte`},
	{`{"name":"a","details":{},"detailsRaw":{"encoding":"json","data":"e30="}}`, `detailsRaw: want either details or detailsRaw, got both`},
	{`{"name":"a","detailsRaw":{"encoding":"msgpak","data":"e30="}}`, `detailsRaw.encoding: want one of json, msgpack, got "msgpak" (did you mean "msgpack"?)`},
	{`{"name":"a","detailsRaw":{"encoding":"json","data":"W10="}}`, `details: want a JSON object {...}`},
	{`{"name":"a","labels":{"":"v"}}`, `labels: a key is empty`},
	{`{"name":"a","labels":{"k":"` + strings.Repeat("x", 129) + `"}}`, `labels`},
	{`{"name":"a","labels":{"` + strings.Repeat("x", 129) + `":""}}`, `labels`},
	{`{"name":"a","maxAttempts":-1}`, `maxAttempts: want 0 (the board's) or more, got -1`},
	{`{"name":"a","notBefore":"9999-01-01T00:00:00Z"}`, `notBefore: want a time at most 36525 days ahead`},
	{`{"name":"a","book":{"uuid":"` + strings.Repeat("x", 257) + `"}}`, `book`},
	{`{"name":"a","operations":[{"name":"x","priority":20}]}`, `operations[0].priority: want -20 to 19, got 20`},
	{`{"name":"a","after":[{"uuid":"` + someUUID + `"}]}`, `after[0].uuid: there is no job 00000000-0000-4000-8000-000000000001 on this board`},
}

func TestRefusedItems(t *testing.T) {
	t.Parallel()
	s := serve(t)
	labels := make([]string, 65)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"k%d":""`, i)
	}
	cases := append(slices.Clip(refusedItems),
		struct{ item, message string }{`{"name":"a","labels":{` + strings.Join(labels, ",") + `}}`, `labels: 65 are too many: want at most 64`})
	for _, c := range cases {
		var answer wireResults
		body := `{"board":"default","jobs":[{"name":"before"},` + c.item + `,{"name":"after"}]}`
		s.must(t, rootSecret, "PostJobs", body, &answer)
		if len(answer.Results) != 3 || answer.Results[0].Job == nil || answer.Results[2].Job == nil {
			t.Errorf("%.100s: the others were not posted: %+v", c.item, answer)
			continue
		}
		e := answer.Results[1].Error
		if e == nil || e.Code != "INVALID" || !strings.HasPrefix(e.Message, c.message) || e.Retryable {
			t.Errorf("%.100s:\n got %+v\nwant %s", c.item, e, c.message)
			continue
		}
		if e.Field == "" || !strings.HasPrefix(e.Message, e.Field) {
			t.Errorf("%.100s: the field is %q", c.item, e.Field)
		}
	}
	// What is just allowed.
	for _, item := range []string{
		`{"name":"` + strings.Repeat("x", 256) + `"}`,
		`{"name":"a","labels":{"` + strings.Repeat("k", 128) + `":"` + strings.Repeat("v", 128) + `"}}`,
		`{"name":"a","labels":{` + strings.Join(labels[:64], ",") + `}}`,
		`{"name":"a","details":` + strings.Repeat(`{"a":`, 63) + `{}` + strings.Repeat("}", 63) + `}`,
		`{"name":"a","uuid":"` + someUUID + `"}`,
		`{"name":"a","detailsRaw":{"encoding":"json","data":"e30="}}`,
		`{"name":"a","detailsRaw":{"encoding":"msgpack","data":"gA=="}}`,
		`{"name":"a","book":{"uuid":"b","name":"c"},"maxAttempts":2147483647,"notBefore":"2100-01-01T00:00:00Z","priority":"VERY_LOW"}`,
	} {
		var answer wireResults
		s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[`+item+`]}`, &answer)
		if len(answer.Results) != 1 || answer.Results[0].Job == nil {
			t.Errorf("%.100s: %+v", item, answer.Results[0].Error)
		}
	}
}

// TestWrongClaims follows the table of the API: what is wrong with a claim, and
// what it is answered.
func TestWrongClaims(t *testing.T) {
	t.Parallel()
	s := serve(t)
	jobs := post(t, s, "a", "b", "c")
	held := claim(t, s, `{"board":"default","owner":"w","uuids":["`+jobs[0].UUID+`"]}`)[0]
	other := claim(t, s, `{"board":"default","owner":"w","uuids":["`+jobs[1].UUID+`"]}`)[0]
	cases := []struct{ name, ref, code string }{
		{"no uuid", `{}`, "INVALID"},
		{"no token", `{"uuid":"` + held.UUID + `","owner":"w"}`, "INVALID"},
		{"a malformed token", `{"uuid":"` + held.UUID + `","owner":"w","token":"x"}`, "NOT_OWNER"},
		{"another job's token", `{"uuid":"` + held.UUID + `","owner":"w","token":"` + other.Token + `"}`, "NOT_OWNER"},
		{"another owner", `{"uuid":"` + held.UUID + `","owner":"x","token":"` + held.Token + `"}`, "NOT_OWNER"},
		{"a huge token", `{"uuid":"` + held.UUID + `","token":"` + strings.Repeat("x", 1<<20) + `"}`, "NOT_OWNER"},
	}
	for _, call := range []string{"ExtendClaims", "AbandonJobs", "TrashJobs", "ConsumeJobs"} {
		for _, c := range cases {
			var results wireResults
			s.must(t, workerSecret, call, `{"board":"default","claims":[`+c.ref+`]}`, &results)
			if len(results.Results) != 1 || results.Results[0].Error == nil || results.Results[0].Error.Code != c.code {
				t.Errorf("%s with %s: %+v, want %s", call, c.name, results.Results[0].Error, c.code)
			}
		}
	}
	var failures wireClaims
	s.must(t, workerSecret, "ClaimJobs", `{"board":"default","owner":"w2","uuids":["x","`+held.UUID+`","`+someUUID+`"]}`, &failures)
	codes := make([]string, 0, 3)
	for _, f := range failures.Failures {
		codes = append(codes, f.Error.Code+" "+f.Error.Owner)
	}
	if got, want := strings.Join(codes, ", "), "INVALID , ALREADY_CLAIMED w, NOT_FOUND "; got != want || len(failures.Claims) != 0 {
		t.Errorf("claiming chosen jobs: %s, want %s", got, want)
	}
	s.must(t, workerSecret, "ClaimJobs", `{"board":"default","owner":"w2","uuids":["x"]}`, &failures)
	if len(failures.Claims) != 0 || len(failures.Failures) != 1 {
		t.Errorf("a wrong uuid alone: %+v", failures)
	}
}

func TestFencingByOwner(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var posted wireResults
	s.must(t, rootSecret, "PostJobs", `{"board":"by-owner","jobs":[{"name":"a"}]}`, &posted)
	uuid := posted.Results[0].Job.UUID
	try := func(owner, want string) {
		t.Helper()
		var results wireResults
		s.must(t, rootSecret, "ConsumeJobs", `{"board":"by-owner","claims":[{"uuid":"`+uuid+`","owner":"`+owner+`"}]}`, &results)
		got := ""
		if e := results.Results[0].Error; e != nil {
			got = e.Code
		}
		if got != want {
			t.Errorf("consumed by %q: %q, want %q", owner, got, want)
		}
	}
	try("w", "NOT_CLAIMED")
	if claims := claim(t, s, `{"board":"by-owner","owner":"w"}`); len(claims) != 1 {
		t.Fatalf("claims: %+v", claims)
	}
	try("x", "NOT_OWNER")
	try("w", "")
}
