package store

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented holds the tables of docs/redis.md against the code.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int{
		"MaxEvents": MaxEvents, "DefaultEvents": DefaultEvents, "DefaultMaxIndexed": DefaultMaxIndexed, "MaxLimitKeys": MaxLimitKeys,
		"MaxAttachedAtOnce": MaxAttachedAtOnce, "SweepRate": SweepRate, "MaxLeaked": MaxLeaked, "MaxFullGrowth": MaxFullGrowth, "NearlyFull": NearlyFull, "MaxFullDocument": MaxFullDocument,
	} {
		if !regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\|.*\\| `%s` \\|$", value, name)).Match(page) {
			t.Errorf("the table of limits does not say that %s is %d", name, value)
		}
	}
	for _, f := range boardSchema.Fields {
		if !strings.Contains(string(page), "\n| `"+f.Name+"` |") {
			t.Errorf("the board's setting %s is not in the table of settings", f.Name)
		}
	}
	k := keysOf("")
	for _, name := range append(k.ours(), k.wake) {
		if name != k.wake && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the key %s is not in the table of keys", name)
		}
	}
}
