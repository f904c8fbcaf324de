package store

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documented returns what docs/postgres.md has from the line after the first one of
// begin, with the rest of begin, up to end.
func documented(t *testing.T, begin, end string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), begin)
	text, _, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("docs/postgres.md has nothing between %q and %q", begin, end)
	}
	_, first, _ := strings.Cut(begin, "\n")
	return first + text
}

// TestDocumented holds the tables of docs/postgres.md against the code.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(backendSchema.Fields, boardSchema.Fields...) {
		if !strings.Contains(string(page), "\n| `"+f.Name+"` |") {
			t.Errorf("the setting %s is not in the tables of settings", f.Name)
		}
	}
	code := regexp.MustCompile(`(?s), '([a-z-]+)',`)
	for i := range looks {
		if name := code.FindStringSubmatch(looks[i].sql)[1]; !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("what boardd doctor may find, %s, is not in the table of findings", name)
		}
	}
	for _, table := range append([]string{"store", "migrations", "documents", "positions", "document_versions", "document_changes", "dropped"}, slices.Concat(dropTogether, dropLater)...) {
		if !strings.Contains(string(page), "`"+table+"`") {
			t.Errorf("%s is not in the table of tables", table)
		}
	}
}
