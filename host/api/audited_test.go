package api_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/boardd/boardd/host/config"
)

// logged is an answer to GetAudit.
type logged struct {
	Records []struct{ Sequence, Call, Tenant, Name, Previous, Hash, Signature string }
	Flaws   []struct{ File, Line, After, Reason string }
	Head    *struct{ Host, Key string }
	Next    string
}

func (l *logged) calls() []string {
	var calls []string
	for _, r := range l.Records {
		calls = append(calls, r.Call)
	}
	return calls
}

// TestWhatIsAudited: changes by people are in the log, and work is only where all
// calls are to be; refusals always are.
func TestWhatIsAudited(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", config.AuditChanges, config.AuditAll} {
		c := hosted(t)
		c.Audit.Calls = mode
		s := serveWith(t, c, quiet())
		var posted wireResults
		s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, &posted)
		posted.noErrors(t, 3)
		var claims struct{ Claims []any }
		s.must(t, rootSecret, "ClaimJobs", `{"board":"default","owner":"w","max":2}`, &claims)
		s.must(t, rootSecret, "TrashJobs", fmt.Sprintf(`{"board":"default","uuids":[%q]}`, posted.Results[2].Job.UUID), nil)
		s.must(t, rootSecret, "PauseBoard", `{"board":"default","reason":"x"}`, nil)
		s.call(t, posterSecret, "PurgeJobs", `{"board":"default"}`)
		s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{}) // which is on disk when it is answered, and all before it
		want := []string{"PostJobs", "ClaimJobs", "TrashJobs", "PauseBoard", "PurgeJobs", "CreateTenant"}
		if mode != config.AuditAll {
			want = want[2:]
		}
		var log logged
		s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true}`, &log)
		if got := log.calls(); !slices.Equal(got, want) {
			t.Errorf("calls = %q: the log has %q, want %q", mode, got, want)
		}
	}
}

// TestAuditTellsNothingOfOthers: what a tenant sees of its log is the same text,
// whatever other tenants do in between, but for times and encrypted places; and it
// can go through it page by page.
func TestAuditTellsNothingOfOthers(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	for n := range 6 {
		s.mustAdmin(t, acmeSecret, "CreateToken", fmt.Sprintf(`{"name":"t%d","roles":["viewer"]}`, n), &struct{}{})
		for i := range n * n {
			s.mustAdmin(t, operatorSecret, "CreateToken", fmt.Sprintf(`{"name":"o%d-%d","roles":["viewer"]}`, n, i), &struct{}{})
		}
	}
	var names []string
	places := map[string]bool{}
	for after := "0"; ; {
		var page logged
		s.mustAdmin(t, acmeSecret, "GetAudit", fmt.Sprintf(`{"max":2,"after":%q}`, after), &page)
		for _, r := range page.Records {
			names = append(names, r.Name)
			if r.Sequence != "0" || r.Previous != "" || r.Hash != "" || r.Signature != "" {
				t.Errorf("a record tells of others: %+v", r)
			}
		}
		if page.Head != nil {
			t.Errorf("the head of the whole log: %+v", page.Head)
		}
		if after = page.Next; after == "0" {
			break
		}
		if n, err := strconv.ParseUint(after, 10, 64); err != nil || n < 1<<20 || places[after] {
			t.Errorf("the place %s is one that can be read", after)
		}
		places[after] = true
	}
	if want := []string{"t0", "t1", "t2", "t3", "t4", "t5"}; !slices.Equal(names, want) {
		t.Errorf("records of %q, want %q", names, want)
	}
}

// TestBadLineOfTheAuditLog: GetAudit steps over it, and tells it to who sees the
// whole log.
func TestBadLineOfTheAuditLog(t *testing.T) {
	t.Parallel()
	c := hosted(t)
	s := serveWith(t, c, quiet())
	for n := range 4 {
		s.mustAdmin(t, acmeSecret, "CreateToken", fmt.Sprintf(`{"name":"t%d","roles":["viewer"]}`, n), &struct{}{})
	}
	path := filepath.Join(c.DataDir, "audit", fmt.Sprintf("%020d.audit", 1))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(text))
	lines[1] = []byte("what?\n")
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	var all, own logged
	s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true}`, &all)
	if len(all.Records) != 3 || len(all.Flaws) != 1 || all.Flaws[0].Line != "2" || all.Flaws[0].After != "1" {
		t.Errorf("the operator sees %+v", all)
	}
	if all.Head == nil || all.Head.Key == "" {
		t.Errorf("the log's key is not told: %+v", all.Head)
	}
	s.mustAdmin(t, acmeSecret, "GetAudit", `{}`, &own)
	if len(own.Records) != 3 || len(own.Flaws) != 0 {
		t.Errorf("the tenant sees %+v", own)
	}
}
