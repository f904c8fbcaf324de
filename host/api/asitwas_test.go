package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wholeJob returns a job as GetJobs gives it with everything, as JSON.
func wholeJob(t *testing.T, s *server, uuid string) string {
	t.Helper()
	fields, err := json.Marshal([]string{"uuid", "name", "state", "priority", "labels", "details", "attempt", "operations", "log", "asItWas", "sequence", "modifiedAt"})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Results []struct{ Job json.RawMessage }
	}
	s.must(t, viewerSecret, "GetJobs", fmt.Sprintf(`{"board":"default","uuids":[%q],"fields":%s}`, uuid, fields), &answer)
	return string(answer.Results[0].Job)
}

// TestPostAsItWas puts a job back that was purged, which tenant-admin may do, and refuses one
// that was changed by hand.
func TestPostAsItWas(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	var posted wireResults
	s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a","priority":"HIGH","labels":{"k":"v","l":"w"},"details":{"n":1.50},
		"operations":[{"name":"one","input":{"x":[1]}},{"name":"two"}]}]}`, &posted)
	posted.noErrors(t, 1)
	uuid := posted.Results[0].Job.UUID
	ref := claim(t, s, `{"board":"default","owner":"w"}`)[0].ref()
	s.must(t, workerSecret, "StartOperation", `{"board":"default","claim":`+ref+`,"status":"RUNNING"}`, nil)
	s.must(t, workerSecret, "FinishOperation", `{"board":"default","claim":`+ref+`,"status":"SUCCESS","result":{"r":2}}`, nil)
	s.must(t, workerSecret, "AppendLog", `{"board":"default","claim":`+ref+`,"entries":[{"type":"out","message":"one"}]}`, nil)
	s.must(t, workerSecret, "AbandonJobs", `{"board":"default","claims":[`+ref+`],"reason":"later"}`, nil)
	before := wholeJob(t, s, uuid)
	back := func(text string) string { return `{"board":"default","jobs":[` + text + `]}` }
	for _, secret := range []string{viewerSecret, posterSecret, workerSecret} {
		if code, _ := s.call(t, secret, "PostAsItWas", back(before)).failure(); code != "permission_denied" {
			t.Errorf("without the role: %s", code)
		}
	}
	refused := func(text, code, message string) {
		t.Helper()
		var r wireResults
		got := s.must(t, rootSecret, "PostAsItWas", back(text), &r)
		if e := r.Results[0].Error; e == nil || e.Code != code || !strings.Contains(got, message) {
			t.Errorf("%s: want %s with %s", got, code, message)
		}
	}
	refused(before, "ALREADY_EXISTS", "the job is on the board, UNCLAIMED")
	s.must(t, rootSecret, "TrashJobs", `{"board":"default","uuids":["`+uuid+`"]}`, nil)
	s.must(t, rootSecret, "PurgeJobs", `{"board":"default","uuids":["`+uuid+`"]}`, nil)
	for old, change := range map[string][2]string{
		`"priority":"HIGH"`: {`"priority":"LOW"`, `priority: want \"HIGH\", as asItWas has it, got \"LOW\"`},
		`"n":1.50`:          {`"n":1.5`, `details: want`},
		`"message":"one"`:   {`"message":"two"`, `log: want`},
		`{"r":2}`:           {`{"r":3}`, `operations: want`},
		`"format":1`:        {`"format":2`, `asItWas.format: it is 2, of a newer version of boardd`},
		`"sha256":"`:        {`"sha256":"0`, `asItWas.record: it was cut off or changed`},
	} {
		refused(strings.Replace(before, old, change[0], 1), "INVALID", change[1])
	}
	refused(`{"uuid":"`+uuid+`"}`, "INVALID", `asItWas: want the job whole`)
	var r wireResults
	s.must(t, rootSecret, "PostAsItWas", back(strings.ReplaceAll(before, `","`, `" , "`)), &r) // white space is no change
	r.noErrors(t, 1)
	if after := wholeJob(t, s, uuid); !equalJobs(t, before, after) {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{}) // all before it is on disk when it is answered
	var log logged
	s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true}`, &log)
	if !slices.Contains(log.calls(), "PostAsItWas") {
		t.Errorf("the audit log has %q", log.calls())
	}
	if code, _ := s.call(t, viewerSecret, "ListJobs", `{"board":"default","fields":["asItWas"]}`).failure(); code != "invalid_argument" {
		t.Errorf("a list of jobs whole: %s", code)
	}
}

// equalJobs compares jobs but for what a board gives them anew.
func equalJobs(t *testing.T, texts ...string) bool {
	t.Helper()
	var forms []string
	for _, text := range texts {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"sequence", "modifiedAt", "asItWas"} {
			delete(fields, name)
		}
		form, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, string(form))
	}
	return forms[0] == forms[1]
}
