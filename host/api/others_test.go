package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// busy does n times n things in another tenant, of every sort that the
// same store counts.
func busy(t *testing.T, s *server, who string, n int) {
	t.Helper()
	for i := range n * n {
		name := fmt.Sprintf("busy-%s-%d-%d", strings.ToLower(who), n, i)
		s.mustAdmin(t, operatorSecret, "CreateToken", fmt.Sprintf(`{"name":%q,"roles":["viewer"]}`, name), &struct{}{})
		s.mustAdmin(t, operatorSecret, "CreateBoard", fmt.Sprintf(`{"board":{"name":%q,"backend":"store"}}`, name), &struct{}{})
		s.must(t, operatorSecret, "PutBook", fmt.Sprintf(`{"board":%q,"book":{"uuid":"b","content":1}}`, name), &struct{}{})
		s.must(t, operatorSecret, "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"name":"a"}]}`, name), &struct{}{})
		s.must(t, operatorSecret, "ClaimJobs", fmt.Sprintf(`{"board":%q,"owner":"w"}`, name), &struct{}{})
	}
}

// TestAnswersTellNothingOfOthers: what a tenant reads stays the same whatever other
// tenants do on the same store, and the versions that it is given tell nothing of that
// either: they are compared, and that is all that they are good for.
func TestAnswersTellNothingOfOthers(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	admin := newToken(t, s, "umbrella", "admin", "tenant-admin")
	s.mustAdmin(t, admin, "CreateBoard", `{"board":{"name":"b","backend":"store"}}`, &struct{}{})
	s.must(t, admin, "PostJobs", `{"board":"b","jobs":[{"name":"a"},{"name":"z"}]}`, &struct{}{})
	s.must(t, admin, "PutBook", `{"board":"b","book":{"uuid":"plan","content":1}}`, &struct{}{})

	reads := map[string]func(call, body string) string{
		"GetBoard": s.reads(t, admin), "ListBoards": s.reads(t, admin), "CountJobs": s.reads(t, admin), "ListJobs": s.reads(t, admin),
		"GetBook": s.reads(t, admin), "ListTenants": s.administers(t, admin), "ListTokens": s.administers(t, admin),
		"ListEvents": s.reads(t, admin),
	}
	bodies := map[string]string{
		"GetBoard": `{"board":"b"}`, "ListBoards": `{}`, "CountJobs": `{"board":"b"}`, "ListJobs": `{"board":"b"}`,
		"GetBook": `{"board":"b","uuid":"plan"}`, "ListTenants": `{}`, "ListTokens": `{}`,
		"ListEvents": `{"board":"b"}`,
	}
	testserver.Eventually(t, "the events have reached the tenant's own posts", func() bool {
		return strings.Contains(reads["ListEvents"]("ListEvents", bodies["ListEvents"]), `"cursor":"1.2"`)
	})
	before := map[string]string{}
	for call, read := range reads {
		before[call] = read(call, bodies[call])
	}
	busy(t, s, "reading", 3)
	for call, read := range reads {
		if after := read(call, bodies[call]); after != before[call] {
			t.Errorf("%s moved with the work of others:\n%s\n%s", call, before[call], after)
		}
	}

	// Versions of what the tenant changes itself, with more and more between.
	versions := map[string]func() string{
		"PutBook": func() string {
			return s.version(t, s.reads(t, admin)("PutBook", `{"board":"b","book":{"uuid":"plan","content":2}}`))
		},
		"UpdateBoard": func() string {
			return s.version(t, s.administers(t, admin)("UpdateBoard", `{"board":{"name":"b","lease":"50s"}}`))
		},
		"UpdateTenant": func() string {
			return s.version(t, s.administers(t, operatorSecret)("UpdateTenant", `{"name":"umbrella","limits":{"boards":"5"}}`))
		},
	}
	for call, change := range versions {
		var last uint64
		for n := range 3 {
			text := change()
			v, err := strconv.ParseUint(text, 10, 64)
			if err != nil || v == 0 || v > 1<<53+8 {
				t.Fatalf("%s gives the version %q: want one of at most 53 bits", call, text)
			}
			// One behind the other, or nothing that could be compared.
			if apart := max(v, last) - min(v, last); last != 0 && apart != 1 && apart < 1<<16 || v < 1<<16 {
				t.Errorf("%s: versions %d and %d, with the work of others between: the difference tells how much that was", call, last, v)
			}
			last = v
			busy(t, s, call, n)
		}
	}

	// They are compared as before.
	for call, body := range map[string]string{
		"UpdateBoard":  `{"board":{"name":"b","lease":"40s"},"version":%q}`,
		"UpdateTenant": `{"name":"umbrella","limits":{"boards":"6"},"version":%q}`,
	} {
		version := versions[call]()
		if status, answer := s.admin(t, operatorOr(admin, call), call, fmt.Sprintf(body, version)); status != http.StatusOK {
			t.Errorf("%s at the present version: %d %s", call, status, answer)
		}
		if status, answer := s.admin(t, operatorOr(admin, call), call, fmt.Sprintf(body, version)); !strings.Contains(answer, "aborted") {
			t.Errorf("%s at an earlier version: %d %s", call, status, answer)
		}
	}
	put := `{"board":"b","book":{"uuid":"plan","content":3},"version":%q}`
	version := versions["PutBook"]()
	s.must(t, admin, "PutBook", fmt.Sprintf(put, version), &struct{}{})
	for _, old := range []string{version, "0"} {
		if status, answer := s.board(t, admin, "PutBook", fmt.Sprintf(put, old)); !strings.Contains(answer, "aborted") {
			t.Errorf("PutBook at the version %s: %d %s", old, status, answer)
		}
	}
}

func operatorOr(admin, call string) string {
	if call == "UpdateTenant" {
		return operatorSecret
	}
	return admin
}

// reads returns what makes a call of BoardService, which has to succeed.
func (s *server) reads(t *testing.T, secret string) func(call, body string) string {
	return func(call, body string) string {
		t.Helper()
		status, answer := s.board(t, secret, call, body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", call, status, answer)
		}
		return answer
	}
}

// administers is reads of AdminService.
func (s *server) administers(t *testing.T, secret string) func(call, body string) string {
	return func(call, body string) string {
		t.Helper()
		status, answer := s.admin(t, secret, call, body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", call, status, answer)
		}
		return answer
	}
}

// version returns the first version in an answer.
func (s *server) version(t *testing.T, answer string) string {
	t.Helper()
	_, rest, found := strings.Cut(answer, `"version":"`)
	if !found {
		t.Fatalf("there is no version in %s", answer)
	}
	text, _, _ := strings.Cut(rest, `"`)
	return text
}
