package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

type (
	wireJob struct {
		UUID, Name, State, Outcome, Priority, Owner, LastReason string

		Details json.RawMessage
		Labels  map[string]string
		Attempt int
	}
	wireError struct {
		Code, Message, Owner, Field string
		Retryable                   bool
	}
	wireResult struct {
		Job   *wireJob
		Error *wireError
	}
	wireResults struct{ Results []wireResult }
	wireClaim   struct {
		UUID, Owner, Token, Generation, Epoch, Lease, LeaseExpiresAt string

		Attempt int
		Job     *wireJob
	}
	wireClaims struct {
		Claims   []wireClaim
		Failures []struct {
			UUID  string
			Error wireError
		}
	}
	wireEvents struct {
		Events []struct {
			Type, Cursor string
			Job          *wireJob
		}
		Cursor string
	}
)

// post posts jobs with these names on the board default.
func post(t testing.TB, s *server, names ...string) []wireJob {
	t.Helper()
	jobs := make([]string, len(names))
	for i, name := range names {
		jobs[i] = fmt.Sprintf(`{"name":%q,"details":{"n":%d}}`, name, i)
	}
	var answer wireResults
	s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[`+strings.Join(jobs, ",")+`]}`, &answer)
	posted := make([]wireJob, len(names))
	for i, r := range answer.Results {
		if r.Job == nil {
			t.Fatalf("posting %s: %+v", names[i], r.Error)
		}
		posted[i] = *r.Job
	}
	return posted
}

func claim(t testing.TB, s *server, body string) []wireClaim {
	t.Helper()
	var answer wireClaims
	s.must(t, workerSecret, "ClaimJobs", body, &answer)
	return answer.Claims
}

func (c wireClaim) ref() string {
	return fmt.Sprintf(`{"uuid":%q,"owner":%q,"token":%q}`, c.UUID, c.Owner, c.Token)
}

// noErrors fails unless there are n results without errors.
func (r wireResults) noErrors(t testing.TB, n int) {
	t.Helper()
	if len(r.Results) != n {
		t.Fatalf("%d results, want %d", len(r.Results), n)
	}
	for i, result := range r.Results {
		if result.Error != nil {
			t.Errorf("result %d: %+v", i, *result.Error)
		}
	}
}

func TestLifeOfAJob(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const details = `{ "path" : "/a.png", "n": 1.50 }`
	var posted wireResults
	body := s.must(t, posterSecret, "PostJobs",
		`{"board":"default","jobs":[{"name":"resize","details":`+details+`,"labels":{"k":"v"},"priority":"HIGH"},{"name":""}]}`, &posted)
	if len(posted.Results) != 2 || posted.Results[0].Job == nil || posted.Results[1].Error == nil {
		t.Fatalf("posted: %s", body)
	}
	if e := posted.Results[1].Error; e.Code != "INVALID" {
		t.Errorf("a job without a name: %+v", e)
	}
	uuid := posted.Results[0].Job.UUID

	body = s.must(t, viewerSecret, "GetJobs", `{"board":"default","uuids":["`+uuid+`","nonsense"]}`, &posted)
	if !strings.Contains(body, `"details":`+details+`,`) {
		t.Errorf("the details did not come back byte for byte: %s", body)
	}
	if j := posted.Results[0].Job; j == nil || j.State != "UNCLAIMED" || j.Priority != "HIGH" || j.Labels["k"] != "v" {
		t.Errorf("got %s", body)
	}
	if e := posted.Results[1].Error; e == nil || e.Code != "INVALID" || e.Field != "uuid" {
		t.Errorf("got %s", body)
	}

	claims := claim(t, s, `{"board":"default","owner":"w1","lease":"60s"}`)
	if len(claims) != 1 || claims[0].UUID != uuid || claims[0].Owner != "w1" || claims[0].Lease != "60s" || claims[0].Token == "" ||
		claims[0].Attempt != 1 || claims[0].Job == nil || string(claims[0].Job.Details) == "" {
		t.Fatalf("claims: %+v", claims)
	}
	var extended struct {
		Results []struct {
			Lease string
			Error *wireError
		}
	}
	s.must(t, workerSecret, "ExtendClaims", `{"board":"default","claims":[`+claims[0].ref()+`],"lease":"90s"}`, &extended)
	if len(extended.Results) != 1 || extended.Results[0].Lease != "90s" {
		t.Errorf("extended: %+v", extended)
	}

	var results wireResults
	s.must(t, workerSecret, "AbandonJobs", `{"board":"default","claims":[`+claims[0].ref()+`],"reason":"lunch","retryAfter":"0s"}`, &results)
	results.noErrors(t, 1)
	s.must(t, viewerSecret, "GetJobs", `{"board":"default","uuids":["`+uuid+`"]}`, &posted)
	if j := posted.Results[0].Job; j == nil || j.State != "UNCLAIMED" || j.LastReason != "lunch" || j.Attempt != 1 {
		t.Errorf("after the abandon: %+v", posted.Results[0])
	}

	again := claim(t, s, `{"board":"default","owner":"w2","uuids":["`+uuid+`"]}`)
	if len(again) != 1 || again[0].Token == claims[0].Token {
		t.Fatalf("claimed again: %+v", again)
	}
	s.must(t, workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+claims[0].ref()+`]}`, &results)
	if e := results.Results[0].Error; e == nil || e.Code != "LEASE_LOST" || e.Owner != "w2" {
		t.Errorf("consumed with the old token: %+v", results.Results[0])
	}
	for range 2 { // the second is a repetition
		s.must(t, workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+again[0].ref()+`]}`, &results)
		results.noErrors(t, 1)
	}
	s.must(t, viewerSecret, "GetJobs", `{"board":"default","uuids":["`+uuid+`"],"wait":"5s"}`, &posted)
	if j := posted.Results[0].Job; j == nil || j.State != "COMPLETE" || j.Outcome != "CONSUMED" {
		t.Errorf("after the consumption: %+v", posted.Results[0])
	}
}

func TestTrash(t *testing.T) {
	t.Parallel()
	s := serve(t)
	jobs := post(t, s, "a", "b")
	claims := claim(t, s, `{"board":"default","owner":"w","uuids":["`+jobs[0].UUID+`"]}`)
	var results wireResults
	s.must(t, workerSecret, "TrashJobs", `{"board":"default","claims":[`+claims[0].ref()+`],"reason":"bad data"}`, &results)
	results.noErrors(t, 1)
	s.must(t, rootSecret, "TrashJobs", `{"board":"default","uuids":["x","`+jobs[1].UUID+`"]}`, &results)
	if e := results.Results[0].Error; len(results.Results) != 2 || e == nil || e.Code != "INVALID" || results.Results[1].Error != nil {
		t.Errorf("trashed by uuid: %+v", results)
	}
	var list struct{ Jobs []wireJob }
	s.must(t, viewerSecret, "ListJobs", `{"board":"default","states":["TRASHED"]}`, &list)
	if len(list.Jobs) != 2 {
		t.Errorf("in the trash: %+v", list)
	}
	s.must(t, rootSecret, "RestoreJobs", `{"board":"default","uuids":["`+jobs[0].UUID+`"]}`, &results)
	results.noErrors(t, 1)
	s.must(t, rootSecret, "PurgeJobs", `{"board":"default","uuids":["`+jobs[1].UUID+`"]}`, &results)
	results.noErrors(t, 1)
	var counts struct{ Ready, Unclaimed, Trashed string }
	s.must(t, viewerSecret, "CountJobs", `{"board":"default"}`, &counts)
	if counts.Ready != "1" || counts.Unclaimed != "1" || counts.Trashed != "0" {
		t.Errorf("counts: %+v", counts)
	}
	claims = claim(t, s, `{"board":"default","owner":"w"}`)
	s.must(t, rootSecret, "ReleaseJobs", `{"board":"default","uuids":["`+jobs[0].UUID+`"],"expectOwner":"w","reason":"it hangs"}`, &results)
	results.noErrors(t, 1)
	s.must(t, workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+claims[0].ref()+`]}`, &results)
	if e := results.Results[0].Error; e == nil || e.Code != "LEASE_LOST" {
		t.Errorf("after the release: %+v", results)
	}
}

func TestListFieldsAndPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, "a", "b", "c")
	var names []string
	for token, pages := "", 0; pages < 3; pages++ {
		var page struct {
			Jobs          []map[string]json.RawMessage
			NextPageToken string
		}
		body := s.must(t, viewerSecret, "ListJobs", fmt.Sprintf(`{"board":"default","fields":["name"],"pageSize":2,"pageToken":%q}`, token), &page)
		for _, j := range page.Jobs {
			names = append(names, string(j["name"]))
			if len(j) != 1 {
				t.Errorf("the selection gave %s, want names and nothing else", body)
			}
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if !slices.Equal(names, []string{`"a"`, `"b"`, `"c"`}) {
		t.Errorf("listed %v", names)
	}
	var all struct{ Jobs []wireJob }
	s.must(t, viewerSecret, "ListJobs", `{"board":"default","filter":"name = \"b\""}`, &all)
	if len(all.Jobs) != 1 || string(all.Jobs[0].Details) != `{"n":1}` {
		t.Errorf("filtered: %+v", all)
	}
}

func TestEventsAndExplanations(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var events wireEvents
	s.must(t, viewerSecret, "ListEvents", `{"board":"default"}`, &events)
	from := events.Cursor
	jobs := post(t, s, "a")
	s.must(t, viewerSecret, "ListEvents", fmt.Sprintf(`{"board":"default","from":%q,"wait":"10s"}`, from), &events)
	if len(events.Events) != 1 || events.Events[0].Type != "POSTED" || events.Events[0].Job.UUID != jobs[0].UUID {
		t.Errorf("events: %+v", events)
	}
	var explanation struct {
		State, Verdict string
		Position       *string
	}
	s.must(t, viewerSecret, "ExplainJob", `{"board":"default","uuid":"`+jobs[0].UUID+`"}`, &explanation)
	if explanation.State != "UNCLAIMED" || explanation.Verdict != "CLAIMABLE" || explanation.Position == nil || *explanation.Position != "0" {
		t.Errorf("explained: %+v", explanation)
	}
}

func TestBoardsAndEntities(t *testing.T) {
	t.Parallel()
	s := serve(t)
	type wireBoard struct {
		Name, Backend, Driver, Mode, Fencing, Lease string
		Paused, Ready                               bool
	}
	var boards struct{ Boards []wireBoard }
	s.must(t, viewerSecret, "ListBoards", `{}`, &boards)
	names := make([]string, len(boards.Boards))
	for i, b := range boards.Boards {
		names[i] = b.Name
	}
	if !slices.Equal(names, []string{"by-owner", "default", "observed", "other"}) {
		t.Errorf("boards: %v", names)
	}
	s.must(t, boundSecret, "ListBoards", `{}`, &boards)
	if len(boards.Boards) != 1 || boards.Boards[0].Name != "other" {
		t.Errorf("a bound token sees %+v", boards)
	}
	post(t, s, "a")
	var one struct{ Board wireBoard }
	s.must(t, rootSecret, "PauseBoard", `{"board":"default","reason":"repairs"}`, &one)
	if !one.Board.Paused || !one.Board.Ready || one.Board.Backend != "store" || one.Board.Driver != "memory" || one.Board.Lease != "30s" {
		t.Errorf("paused: %+v", one)
	}
	if claims := claim(t, s, `{"board":"default","owner":"w"}`); len(claims) != 0 {
		t.Errorf("a paused board granted %+v", claims)
	}
	s.must(t, rootSecret, "ResumeBoard", `{"board":"default"}`, &one)
	if one.Board.Paused {
		t.Errorf("resumed: %+v", one)
	}
	if claims := claim(t, s, `{"board":"default","owner":"w"}`); len(claims) != 1 {
		t.Errorf("a resumed board granted %+v", claims)
	}
	var entity struct {
		Entity struct {
			Kind, Name string
			Metadata   json.RawMessage
		}
	}
	s.must(t, workerSecret, "RegisterEntity", `{"board":"default","entity":{"kind":"worker","name":"w","metadata":{"a":[1]}},"ttl":"60s"}`, &entity)
	if entity.Entity.Name != "w" || string(entity.Entity.Metadata) != `{"a":[1]}` {
		t.Errorf("registered: %+v", entity)
	}
	var entities struct{ Entities []struct{ Kind, Name string } }
	s.must(t, viewerSecret, "ListEntities", `{"board":"default"}`, &entities)
	if len(entities.Entities) != 1 || entities.Entities[0].Name != "w" {
		t.Errorf("entities: %+v", entities)
	}
	removal := `{"board":"default","kind":"worker","name":"w"}`
	if r := s.call(t, viewerSecret, "RemoveEntity", removal); r.status != 403 {
		t.Errorf("removed by a viewer: %s", r.body)
	}
	s.must(t, workerSecret, "RemoveEntity", removal, nil)
	if r := s.call(t, workerSecret, "RemoveEntity", removal); r.status != 404 || !strings.Contains(r.body, "there is no entity") {
		t.Errorf("removed twice: %s", r.body)
	}
	if s.must(t, viewerSecret, "ListEntities", `{"board":"default"}`, &entities); len(entities.Entities) != 0 {
		t.Errorf("after the removal: %+v", entities)
	}
	var who struct {
		Tenant, TokenName string
		Roles             []string
	}
	s.must(t, metricsSecret, "WhoAmI", `{}`, &who)
	if who.Tenant != "default" || who.TokenName != "metrics" || !slices.Equal(who.Roles, []string{"metrics"}) {
		t.Errorf("who: %+v", who)
	}
}
