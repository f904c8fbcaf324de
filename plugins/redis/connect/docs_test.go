package connect_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/boardd/boardd/plugins/redis/connect"
)

// TestLimitsAreDocumented holds the table of docs/redis.md against the code.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		"MaxServers": connect.MaxServers, "MaxDB": connect.MaxDB, "MaxTimeout": connect.MaxTimeout, "LogEvery": connect.LogEvery,
	} {
		if line := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %v \\|.*\\| `%s` \\|$", value, name)); !line.Match(page) {
			t.Errorf("docs/redis.md has no line for %s of %d", name, value)
		}
	}
}
