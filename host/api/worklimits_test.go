package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/sdk/job"
)

// listOf is a list of n items in JSON, each made of its number.
func listOf(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

// TestWorkAtItsLimits: a call may have as much as the documentation says; of one that has
// more nothing is done, and it is told what would be right.
func TestWorkAtItsLimits(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, "a")
	nobody := func(i int) string {
		return fmt.Sprintf(`{"uuid":"6f8a1f8e-0f3c-4a55-8a35-%012d","token":"t","how":"CONSUME"}`, i)
	}
	extension := func(i int) string { return strings.Replace(nobody(i), `,"how":"CONSUME"`, "", 1) }
	name := func(i int) string { return fmt.Sprintf("%q", fmt.Sprint("n", i)) }
	label := func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }
	long := func(n int) string { return strings.Repeat("x", n) }
	for what, c := range map[string]struct {
		most int
		body func(n int) string
		says string // of one more
	}{
		"endings":      {board.MaxBatch, func(n int) string { return `"endings":[` + listOf(n, nobody) + `]` }, "endings: want at most %[2]d items"},
		"extend":       {board.MaxBatch, func(n int) string { return `"extend":[` + listOf(n, extension) + `]` }, "extend: want at most %[2]d items"},
		"names":        {board.MaxClaimNames, func(n int) string { return `"names":[` + listOf(n, name) + `]` }, "names: want at most %[2]d items"},
		"workerLabels": {job.MaxLabels, func(n int) string { return `"workerLabels":{` + listOf(n, label) + `}` }, "workerLabels: want at most %[2]d items"},
		"max":          {board.MaxBatch, func(n int) string { return fmt.Sprintf(`"names":["none"],"max":%d`, n) }, "max: want 0 to %[2]d, got %[1]d"},
		"ahead":        {board.MaxBatch, func(n int) string { return fmt.Sprintf(`"names":["none"],"ahead":%d`, n) }, "ahead: want 0 to %[2]d, got %[1]d"},
		"requestId":    {board.MaxRequestID, func(n int) string { return fmt.Sprintf(`"requestId":%q`, long(n)) }, "requestId: want at most %[2]d bytes, got %[1]d"},
		"filter": {filter.Max, func(n int) string {
			return fmt.Sprintf(`"filter":%q`, `name = `+long(n-len(`name = `)))
		}, "filter: want at most %[2]d bytes, got %[1]d"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			call := func(n int) reply {
				return s.call(t, workerSecret, "Work", `{"board":"default","owner":"w",`+c.body(n)+`}`)
			}
			if r := call(c.most); r.status != http.StatusOK {
				t.Errorf("%d: %d %.300s", c.most, r.status, r.body)
			}
			_, message := call(c.most + 1).failure()
			if want := fmt.Sprintf(c.says, c.most+1, c.most); message != want {
				t.Errorf("%d: %q, want %q", c.most+1, message, want)
			}
		})
	}
}
