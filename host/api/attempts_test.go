package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAttempts has the answer about a job say who had it, and since when it is
// held and with which lease; and a board say whether its details are hidden.
func TestAttempts(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	body := s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store","hideDetails":true}}`, &struct{}{})
	if !strings.Contains(body, `"hideDetails":true`) {
		t.Errorf("the board is %s", body)
	}
	var posted wireResults
	s.must(t, acmeSecret, "PostJobs", `{"board":"b","jobs":[{"name":"a"}]}`, &posted)
	posted.noErrors(t, 1)
	for _, owner := range []string{"first", "second"} {
		var claims wireClaims
		s.must(t, acmeSecret, "ClaimJobs", fmt.Sprintf(`{"board":"b","owner":%q,"lease":"90s"}`, owner), &claims)
		if len(claims.Claims) != 1 {
			t.Fatalf("claims: %+v", claims)
		}
		if owner == "first" {
			s.must(t, acmeSecret, "AbandonJobs", `{"board":"b","claims":[`+claims.Claims[0].ref()+`],"reason":"no disk"}`, &posted)
		}
	}
	var list struct {
		Jobs []struct {
			Owner, ClaimedAt, ClaimLease string
			Attempts                     []struct{ Owner, BegunAt, EndedAt, Lease, Reason string }
		}
	}
	s.must(t, acmeSecret, "ListJobs", `{"board":"b"}`, &list)
	if len(list.Jobs) != 1 || len(list.Jobs[0].Attempts) != 1 {
		t.Fatalf("the jobs are %+v", list)
	}
	j := list.Jobs[0]
	if a := j.Attempts[0]; a.Owner != "first" || a.Lease != "90s" || a.Reason != "no disk" || a.BegunAt == "" || a.EndedAt == "" || j.ClaimedAt == "" || j.ClaimLease != "90s" || j.Owner != "second" {
		t.Errorf("the job is %+v", j)
	}
	if status, body := s.board(t, acmeSecret, "ListJobs", `{"board":"b","fields":["attempts"]}`); status != http.StatusOK || strings.Contains(body, "claimedAt") || !strings.Contains(body, "no disk") {
		t.Errorf("only the attempts: %d %s", status, body)
	}
}
