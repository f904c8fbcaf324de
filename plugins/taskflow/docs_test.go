package taskflow_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
)

// TestLimitsAreDocumented holds the table of docs/taskflow.md against the code.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/taskflow.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int{"MaxPosting": taskflow.MaxPosting, "MaxNesting": taskflow.MaxNesting, "MaxDigits": taskflow.MaxDigits} {
		if line := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\|.*\\| `%s` \\|$", value, name)); !line.Match(page) {
			t.Errorf("docs/taskflow.md has no line for %s of %d", name, value)
		}
	}
}
