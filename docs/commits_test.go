package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// otherCommits are those of other projects.
var otherCommits = map[string]string{"0e6ea11c2": "Octavia", "2a6420a3": "TaskFlow"}

var namedCommit = regexp.MustCompile("`([0-9a-f]{7,12}|[0-9a-f]{40})`")

// leastHistory is the commits that a clone with all of the history has at least.
const leastHistory = 1000

// TestNamedCommits: who reads of which commit a figure is can look at it.
func TestNamedCommits(t *testing.T) {
	t.Parallel()
	program := testneed.Program(t, "git")
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"-C", testserver.Root(t)}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	shallow, err := git("rev-parse", "--is-shallow-repository")
	count, _ := git("rev-list", "--count", "HEAD")
	if n, _ := strconv.Atoi(count); err != nil || shallow != "false" || n < leastHistory {
		t.Log("nothing is looked at: this is no clone with all of the history")
		return // and no part is missing that could be installed
	}
	found := 0
	for _, page := range pages(t) {
		for _, m := range namedCommit.FindAllStringSubmatch(read(t, page), -1) {
			if !strings.ContainsAny(m[1], "0123456789") || !strings.ContainsAny(m[1], "abcdef") || otherCommits[m[1]] != "" {
				continue // a word, a number
			}
			found++
			if _, err := git("merge-base", "--is-ancestor", m[1]+"^{commit}", "HEAD"); err != nil {
				t.Errorf("%s names the commit %s, which is not in the history: want one that is, or what it was", filepath.Base(page), m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d commits are named in the pages: is the test to be?", found)
	}
}
