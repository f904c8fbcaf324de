package web_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// flowBook is a book as TaskFlow writes one, with times as its databases have them.
const flowBook = `{"name":"plan","uuid":"plan","meta":{},"flow_details":[{"name":"create","state":"REVERTING","uuid":"f","meta":null,"atom_details":[
{"type":"TASK_DETAIL","atom":{"name":"later","state":null,"uuid":"1","failure":null,"results":null}},
{"type":"TASK_DETAIL","atom":{"name":"boot","state":"SUCCESS","uuid":"2","failure":null,"results":{"password":"canary"},"updated_at":"2026-11-26 00:30:58.824384"}},
{"type":"RETRY_DETAIL","atom":{"name":"again","state":"RETRYING","uuid":"3","failure":null,"results":[]}},
{"type":"TASK_DETAIL","atom":{"name":"plug","state":"FAILURE","uuid":"4","results":null,"failure":{"exc_type_names":["TimeoutError","OSError"],"exception_str":"no answer <b>","traceback_str":"canary"}}}]}]}`

// TestBookPage shows where a flow stands, what failed first, and nothing of what its tasks
// were given or made.
func TestBookPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for uuid, content := range map[string]string{"plan": flowBook, "other": `{"pages":[1,2]}`, "strange": `{"flow_details":[{"name":7}]}`} {
		if _, err := jobs.PutBook(t.Context(), board.Book{UUID: uuid, Name: "the " + uuid, Content: []byte(content)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	page := func(uuid string) string {
		return "/ui/boards/jobs/jobs/" + post(t, jobs, job.Posting{Name: "x", Book: job.Book{UUID: uuid, Name: "the " + uuid}}).String()
	}
	b := s.signedIn(t, viewerSecret)
	flow := page("plan")
	b.wants(flow, `<a href="`+flow+`/book">the plan</a>`)
	b.wants(flow+"/book", "Flow create", "reverting", "TimeoutError: no answer &lt;b&gt;", `datetime="2026-11-26T00:30:58`)
	_, text := b.get(flow + "/book")
	if strings.Contains(text, "canary") {
		t.Error("the page shows what a task made")
	}
	var names []string
	for _, m := range regexp.MustCompile(`data-label="Name">(\w+)<`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	if want := []string{"plug", "again", "boot", "later"}; !slices.Equal(names, want) {
		t.Errorf("the atoms are %q, want %q", names, want)
	}
	b.wants(page("other")+"/book", "array of 2")
	b.wants(page("strange")+"/book", "flow_details")
	b.wants(page("absent")+"/book", "there is no book")
	b.wants("/ui/boards/jobs/jobs/"+post(t, jobs, job.Posting{Name: "x"}).String()+"/book", "has no book")
}
