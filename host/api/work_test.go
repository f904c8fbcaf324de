package api_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// wireWork is an answer to Work as it travels.
type wireWork struct {
	Ended, Extended []struct {
		UUID, Token, LeaseExpiresAt string
		CancelRequested             bool
		Error                       *struct{ Code, Message string }
	}
	Claims []struct {
		wireClaim

		Ahead bool
	}
	Notices          []struct{ UUID, Token, What, Reason string }
	Idle, RetryAfter string
}

func (w wireWork) tokens() (list []string) {
	for _, c := range w.Claims {
		list = append(list, fmt.Sprintf(`"uuid":%q,"token":%q`, c.UUID, c.Token))
	}
	return list
}

// TestWork: a worker's whole life needs but this call, and any client can make it.
func TestWork(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, "a", "b", "c", "d", "e")
	ask := func(body string) (answer wireWork) {
		t.Helper()
		text := s.must(t, workerSecret, "Work", `{"board":"default","owner":"w",`+body+`}`, &answer)
		for _, want := range []string{`"ended":`, `"extended":`, `"claims":`, `"notices":`, `"idle":`} {
			if !strings.Contains(text, want) {
				t.Errorf("the answer has no %s: %s", want, text)
			}
		}
		return answer
	}
	first := ask(`"max":2,"ahead":2,"requestId":"1"`)
	if len(first.Claims) != 4 || first.Claims[1].Ahead || !first.Claims[2].Ahead || first.Idle != "NONE" || first.Claims[3].Job.Name != "d" {
		t.Fatalf("%+v", first)
	}
	held := first.tokens()
	second := ask(`"max":1,"wait":"50s",` +
		`"extend":[{` + held[2] + `,"begun":true},{"uuid":"x"}],` +
		`"endings":[{` + held[0] + `,"how":"CONSUME"},{` + held[1] + `,"how":"TRASH","reason":"bad"},{` + held[2] + `},{` + held[3] + `,"how":"ABANDON","retryAfter":"50s"}]`)
	var codes []string
	for _, e := range append(second.Extended, second.Ended...) {
		code := "OK"
		if e.Error != nil {
			code = e.Error.Code
		}
		codes = append(codes, code)
	}
	if got, want := strings.Join(codes, " "), "OK INVALID OK OK INVALID OK"; got != want {
		t.Errorf("the items end with %s, want %s", got, want)
	}
	var trash struct {
		Jobs []struct{ LastReason string }
	}
	s.must(t, workerSecret, "ListJobs", `{"board":"default","states":["TRASHED"]}`, &trash)
	if len(trash.Jobs) != 1 || trash.Jobs[0].LastReason != "bad" {
		t.Errorf("the trash has %+v, want the one job with its reason", trash.Jobs)
	}
	if e := second.Extended[0]; e.UUID != first.Claims[2].UUID || e.Token != first.Claims[2].Token || e.LeaseExpiresAt == "" {
		t.Errorf("%+v", e)
	}
	if len(second.Claims) != 1 || second.Claims[0].Job.Name != "e" {
		t.Errorf("%+v", second.Claims)
	}
	if none := ask(`"max":1`); none.Idle != "EMPTY" {
		t.Errorf("%+v", none)
	}
	waiting := s.during(t, workerSecret, "Work", `{"board":"default","owner":"w","max":1,"wait":"50s"}`)
	s.must(t, rootSecret, "ReleaseJobs", `{"board":"default","uuids":["`+second.Claims[0].UUID+`"],"reason":"by hand"}`, &struct{}{})
	if status, answer := waiting(); status != 200 || !strings.Contains(answer, `"what":"LOST"`) && !strings.Contains(answer, `"name":"e"`) {
		t.Errorf("%d %s", status, answer)
	}
	s.must(t, rootSecret, "PauseBoard", `{"board":"default","reason":"rest"}`, &struct{}{})
	if paused := ask(`"max":1`); paused.Idle != "PAUSED" || paused.RetryAfter == "" {
		t.Errorf("%+v", paused)
	}
}

// TestWorkEncodings: what the straight writers leave out would be missed by programs that
// read the other forms.
func TestWorkEncodings(t *testing.T) {
	t.Parallel()
	m := &boarddv1.WorkResponse{
		Ended:  []*boarddv1.WorkEnded{{Uuid: "u", Token: "t", Error: &boarddv1.Error{Code: boarddv1.Code_INVALID}}},
		Claims: []*boarddv1.Claim{{Uuid: "u", Ahead: true}}, Notices: []*boarddv1.WorkNotice{{Uuid: "u", What: boarddv1.What_RECALL}},
		Idle: boarddv1.Idle_LIMIT,
	}
	data, err := boarddv1.Binary{}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again := &boarddv1.WorkResponse{}
	if err := proto.Unmarshal(data, again); err != nil || !proto.Equal(m, again) {
		t.Errorf("%v, want %v: %v", again, m, err)
	}
}
