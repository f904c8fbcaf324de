package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// The statuses of the API and of the job package count alike.
func TestOperationStatusesCountAlike(t *testing.T) {
	t.Parallel()
	for n, name := range boarddv1.OperationStatus_Enum_name {
		if got := job.OperationStatus(n).String(); got != name {
			t.Errorf("%d is %s here and %s there", n, got, name)
		}
	}
	if got := job.OperationStatus(len(boarddv1.OperationStatus_Enum_name)).String(); got != "INVALID" {
		t.Errorf("the API lacks %s", got)
	}
}

type wireSteps struct {
	Results []struct {
		Job *struct {
			UUID, State, Outcome, OperationStatus string

			OperationPriority int
			After             []struct {
				UUID     string
				Statuses []string
			}
			Operations []struct {
				Index, Priority int
				Name, Status    string
				Input, Result   json.RawMessage
			}
		}
		Error *wireError
	}
}

func TestLifeOfOperations(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var posted wireSteps
	s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a","operations":[
		{"name":"fetch","input":{ "url" : "x" }},{"name":"pack","priority":-3}]}]}`, &posted)
	uuid := posted.Results[0].Job.UUID
	if j := posted.Results[0].Job; j.OperationStatus != "QUEUED" || j.OperationPriority != -3 {
		t.Errorf("posted: %+v", j)
	}
	claims := claim(t, s, `{"board":"default","owner":"w"}`)
	ref := claims[0].ref()
	call := func(call, rest string) string {
		t.Helper()
		return s.must(t, workerSecret, call, `{"board":"default","claim":`+ref+rest+`}`, nil)
	}
	if got := call("StartOperation", `,"index":0,"status":"RUNNING"`); got != `{"status":"RUNNING","operationStatus":"RUNNING","cancelRequested":false}` {
		t.Error(got)
	}
	if got := call("AppendLog", `,"index":0,"entries":[{"type":"out","message":"hello"},{"message":"world"}]`); got != `{"lastSerial":"2","cancelRequested":false}` {
		t.Error(got)
	}
	call("FinishOperation", `,"index":0,"status":"SUCCESS","result":{ "bytes" : 1.50 }`)
	r := s.call(t, workerSecret, "FinishOperation", `{"board":"default","claim":`+ref+`,"index":0,"status":"ERROR"}`)
	if code, _ := r.failure(); code != "failed_precondition" {
		t.Errorf("a finished operation: %s", r.body)
	}
	body := s.must(t, viewerSecret, "GetJobs", `{"board":"default","uuids":["`+uuid+`"],"fields":["operations","operationStatus"]}`, &posted)
	if ops := posted.Results[0].Job.Operations; len(ops) != 2 || ops[0].Status != "SUCCESS" || ops[1].Priority != -3 ||
		!strings.Contains(body, `"input":{ "url" : "x" }`) || !strings.Contains(body, `"result":{ "bytes" : 1.50 }`) || strings.Contains(body, `"name":"a"`) {
		t.Errorf("got %s", body)
	}
	for call, path := range map[string]string{
		"StartOperation":  `{"board":"default","index":0,"status":"RUNNING"}`,
		"FinishOperation": `{"board":"default","claim":{"uuid":"x"},"index":0,"status":"SUCCESS"}`,
		"MarkOperations":  `{"board":"default","claim":` + ref + `,"status":"RUNNING"}`,
		"AppendLog":       `{"board":"default","claim":{"uuid":"` + uuid + `","token":"nonsense"}}`,
	} {
		if r := s.call(t, workerSecret, call, path); r.status == 200 {
			t.Errorf("%s %s: %s", call, path, r.body)
		}
		if r := s.call(t, viewerSecret, call, path); r.status != 403 {
			t.Errorf("%s by a viewer: %d", call, r.status)
		}
	}
	if got := call("MarkOperations", `,"status":"ERROR","result":"lost"`); got != `{"marked":1,"operationStatus":"ERROR","cancelRequested":false}` {
		t.Error(got)
	}
	s.must(t, viewerSecret, "GetJobs", `{"board":"default","uuids":["`+uuid+`"]}`, &posted)
	if ops := posted.Results[0].Job.Operations; ops[0].Status != "SUCCESS" || ops[1].Status != "ERROR" || string(ops[1].Result) != `"lost"` {
		t.Errorf("marked: %+v", ops)
	}
	stale := strings.Replace(ref, `"owner":"w"`, `"owner":"x"`, 1)
	if r := s.call(t, workerSecret, "StartOperation", `{"board":"default","claim":`+stale+`,"index":1,"status":"RUNNING"}`); !strings.Contains(r.body, "failed_precondition") {
		t.Errorf("another owner: %s", r.body)
	}
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	s := serve(t)
	uuid := post(t, s, "a")[0].UUID
	ref := claim(t, s, `{"board":"default","owner":"w"}`)[0].ref()
	s.must(t, workerSecret, "AppendLog", `{"board":"default","claim":`+ref+`,"entries":[{"type":"out","message":"one"},{"message":"two"}]}`, nil)
	var page struct {
		Entries []struct {
			Serial, At, Type, Message string
			Index                     int
		}
		LastSerial string
		Ended      bool
	}
	s.must(t, viewerSecret, "ReadLog", `{"board":"default","uuid":"`+uuid+`"}`, &page)
	if len(page.Entries) != 2 || page.Entries[0].Serial != "1" || page.Entries[0].Type != "out" || page.Entries[1].Message != "two" || page.LastSerial != "2" || page.Ended {
		t.Errorf("%+v", page)
	}
	s.must(t, viewerSecret, "ReadLog", `{"board":"default","uuid":"`+uuid+`","newerThan":"1","max":1}`, &page)
	if len(page.Entries) != 1 || page.Entries[0].Message != "two" {
		t.Errorf("%+v", page)
	}
	for _, body := range []string{
		`{"board":"default","uuid":"nonsense"}`, `{"board":"default","uuid":"` + uuid + `","newerThan":"-1"}`,
		`{"board":"default","uuid":"` + uuid + `","max":1001}`, `{"board":"default","uuid":"` + uuid + `","wait":"-1s"}`,
	} {
		if code, _ := s.call(t, viewerSecret, "ReadLog", body).failure(); code != "invalid_argument" {
			t.Errorf("%s: %s", body, code)
		}
	}
	if code, _ := s.call(t, viewerSecret, "ReadLog", `{"board":"default","uuid":"00000000-0000-4000-8000-000000000001"}`).failure(); code != "not_found" {
		t.Errorf("an unknown job: %s", code)
	}
}

// TestLogOfJobs: every job tells the serial of its last entry, and GetJobs has the
// log for who asks.
func TestLogOfJobs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	jobs := post(t, s, "a", "b")
	ref := claim(t, s, `{"board":"default","owner":"w","uuids":["`+jobs[0].UUID+`"]}`)[0].ref()
	s.must(t, workerSecret, "AppendLog", `{"board":"default","claim":`+ref+`,"entries":[{"type":"out","message":"one"},{"message":"two"}]}`, nil)
	uuids := `"board":"default","uuids":["` + jobs[0].UUID + `","` + jobs[1].UUID + `"]`
	got := s.must(t, viewerSecret, "GetJobs", `{`+uuids+`,"fields":["name","logSerial","log"]}`, nil)
	want := regexp.MustCompile(`^\{"results":\[\{"job":\{"name":"a","logSerial":"2","log":\[` +
		`\{"serial":"1","index":0,"at":"20[^"]*Z","type":"out","message":"one"\},\{"serial":"2","index":0,"at":"20[^"]*Z","type":"","message":"two"\}` +
		`\]\}\},\{"job":\{"name":"b","logSerial":"0","log":\[\]\}\}\]\}$`)
	if !want.MatchString(got) {
		t.Errorf("with logs: %s", got)
	}
	for call, body := range map[string]string{"GetJobs": `{` + uuids + `}`, "ListJobs": `{"board":"default"}`} {
		if got := s.must(t, viewerSecret, call, body, nil); strings.Contains(got, `"log":`) || !strings.Contains(got, `"logSerial":"2"`) || !strings.Contains(got, `"logSerial":"0"`) {
			t.Errorf("%s without logs: %s", call, got)
		}
	}
	r := s.call(t, viewerSecret, "ListJobs", `{"board":"default","fields":["uuid","log"]}`)
	if code, _ := r.failure(); code != "invalid_argument" || !strings.Contains(r.body, `fields[1]: a list has no logs`) {
		t.Errorf("a list with logs: %s", r.body)
	}
}

func TestCancelAndPriority(t *testing.T) {
	t.Parallel()
	s := serve(t)
	jobs := post(t, s, "a", "b")
	var answer struct {
		Results []struct {
			Canceled, Changed bool
			Message           string
			Error             *wireError
		}
	}
	s.must(t, posterSecret, "CancelJobs", fmt.Sprintf(`{"board":"default","uuids":[%q,"nonsense",%q]}`, jobs[0].UUID, "00000000-0000-4000-8000-000000000001"), &answer)
	if r := answer.Results; len(r) != 3 || !r[0].Canceled || r[0].Message != "Job "+jobs[0].UUID+" canceled" || r[1].Error == nil || r[1].Error.Code != "INVALID" || r[2].Error == nil || r[2].Error.Code != "NOT_FOUND" {
		t.Errorf("%+v", r)
	}
	s.must(t, posterSecret, "ChangePriority", fmt.Sprintf(`{"board":"default","uuids":[%q],"priority":"VERY_HIGH"}`, jobs[1].UUID), &answer)
	if r := answer.Results; len(r) != 1 || !r[0].Changed {
		t.Errorf("%+v", r)
	}
	s.must(t, posterSecret, "ChangePriority", fmt.Sprintf(`{"board":"default","uuids":[%q],"operationPriority":-20}`, jobs[1].UUID), &answer)
	if r := answer.Results; r[0].Changed || r[0].Message != "Job "+jobs[1].UUID+" had no pending operations" {
		t.Errorf("%+v", r)
	}
	for _, rest := range []string{``, `,"operationPriority":-21`, `,"operationPriority":20`, `,"operationPriority":0,"priority":"LOW"`, `,"priority":"SOON"`} {
		if code, _ := s.call(t, posterSecret, "ChangePriority", `{"board":"default","uuids":["`+jobs[1].UUID+`"]`+rest+`}`).failure(); code != "invalid_argument" {
			t.Errorf("%s: %s", rest, code)
		}
	}
}

func TestBooks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var answer struct{ Version, Source string }
	s.must(t, posterSecret, "PutBook", `{"board":"default","book":{"uuid":"b","name":"n","content":{ "a" : 1.0 }},"version":"0"}`, &answer)
	first := answer.Version
	if code, _ := s.call(t, posterSecret, "PutBook", `{"board":"default","book":{"uuid":"b","content":{}},"version":"0"}`).failure(); code != "aborted" {
		t.Errorf("over what stands: %s", code)
	}
	body := s.must(t, viewerSecret, "GetBook", `{"board":"default","uuid":"b"}`, &answer)
	if answer.Version != first || answer.Source != "boardd" || !strings.Contains(body, `"book":{"uuid":"b","name":"n","content":{ "a" : 1.0 }}`) {
		t.Error(body)
	}
	for _, rest := range []string{`{"board":"default"}`, `{"board":"default","book":{}}`, `{"board":"default","book":{"uuid":"b","content":[1,]}}`, `{"board":"default","book":{"uuid":"b"},"version":"-1"}`} {
		if code, _ := s.call(t, posterSecret, "PutBook", rest).failure(); code != "invalid_argument" {
			t.Errorf("%s: %s", rest, code)
		}
	}
	if code, _ := s.call(t, viewerSecret, "GetBook", `{"board":"default","uuid":"none"}`).failure(); code != "not_found" {
		t.Errorf("no book: %s", code)
	}
}

func TestAfterInJSON(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := post(t, s, "first")[0].UUID
	var posted wireSteps
	s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[
		{"name":"ok","after":[{"uuid":"`+first+`"}]},{"name":"cleanup","after":[{"uuid":"`+first+`","statuses":["ERROR","CANCELED"]}]},
		{"name":"bad","after":[{"uuid":"x"}]},{"name":"worse","after":[{"uuid":"`+first+`","statuses":["QUEUED"]}]}]}`, &posted)
	r := posted.Results
	if r[0].Job == nil || len(r[0].Job.After) != 1 || r[0].Job.After[0].UUID != first || r[0].Job.After[0].Statuses[0] != "SUCCESS" {
		t.Errorf("%+v %+v", r[0].Job, r[0].Error)
	}
	if r[1].Job == nil || len(r[1].Job.After[0].Statuses) != 2 {
		t.Errorf("%+v %+v", r[1].Job, r[1].Error)
	}
	if r[2].Error == nil || r[2].Error.Field != "after[0].uuid" || r[3].Error == nil || r[3].Error.Field != "after[0].statuses" {
		t.Errorf("%+v %+v", r[2].Error, r[3].Error)
	}
}

// TestOperationsOfClaims gives a job to a worker that speaks binary and to one that
// speaks JSON: both see its operations as GetJobs shows them.
func TestOperationsOfClaims(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c, err := client.New(client.Config{Addr: s.url, Token: rootSecret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := c.Board("default")
	posted, err := b.Post(t.Context(), &client.NewJob{Name: "steps", Operations: []*client.NewOperation{
		{Name: "fetch", Input: []byte(`{"url":"x"}`)}, {Name: "pack", Priority: -7}, {Name: "größer", Input: []byte("0")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	uuid := posted[0].GetUuid()
	for attempt := range 3 {
		got, err := b.Get(t.Context(), client.GetOptions{}, uuid)
		if err != nil {
			t.Fatal(err)
		}
		want := &boarddv1.Job{Operations: got[0].GetOperations()}
		if len(want.GetOperations()) != 3 {
			t.Fatalf("the job has %d operations", len(want.GetOperations()))
		}
		claims, err := b.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
		if err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
		if given := (&boarddv1.Job{Operations: claims[0].GetJob().GetOperations()}); !proto.Equal(given, want) {
			t.Errorf("attempt %d: a claim in binary form gives %v, want %v", attempt, given, want)
		}
		if err := b.Abandon(t.Context(), client.AbandonOptions{}, claims...); err != nil {
			t.Fatal(err)
		}
		answer := &boarddv1.ClaimJobsResponse{}
		body := s.must(t, workerSecret, "ClaimJobs", `{"board":"default","owner":"w"}`, nil)
		if err := wirejson.Unmarshal([]byte(body), answer); err != nil || len(answer.GetClaims()) != 1 {
			t.Fatal(body, err)
		}
		claim := answer.GetClaims()[0]
		if given := (&boarddv1.Job{Operations: claim.GetJob().GetOperations()}); !proto.Equal(given, want) {
			t.Errorf("attempt %d: a claim in JSON gives %v, want %v", attempt, given, want)
		}
		ref := fmt.Sprintf(`{"board":"default","claim":{"uuid":%q,"owner":"w","token":%q},"index":%d`, uuid, claim.GetToken(), attempt)
		s.must(t, workerSecret, "StartOperation", ref+`,"status":"RUNNING"}`, nil)
		s.must(t, workerSecret, "FinishOperation", ref+fmt.Sprintf(`,"status":"SUCCESS","result":{"n":%d}}`, attempt), nil)
		if err := b.Abandon(t.Context(), client.AbandonOptions{}, claim); err != nil {
			t.Fatal(err)
		}
	}
}
