package docs_test

import (
	"encoding/json"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

var (
	siteLink   = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	siteAnchor = regexp.MustCompile(`\bid="([^"]*)"`)
)

// TestSite makes the site of the documentation twice, as two versions. Each page is in its
// menu and in its search, each link leads to a file and a heading that are there, and what
// leads to the repository to a file of it.
func TestSite(t *testing.T) {
	t.Parallel()
	root, out := testserver.Root(t), t.TempDir()
	testneed.Program(t, "node")
	if _, err := os.Stat(filepath.Join(root, ".tools", "site", "node_modules", "pagefind")); err != nil {
		testneed.Skip(t, "scripts/setup.sh has not installed Eleventy and Pagefind")
	}
	sources, err := filepath.Glob(filepath.Join(root, "docs", "site", "*"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("nothing in docs/site: %v", err)
	}
	want := pages(t)
	for _, path := range append(append(sources, filepath.Join(root, "scripts", "site.sh")), want...) {
		read(t, path) // the test cache has to know
	}
	for _, version := range []string{"0.1.0", "0.2.0"} {
		if text, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "site.sh"), version, out).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if list := read(t, filepath.Join(out, "index.html")); strings.Index(list, "0.2.0/index.html") > strings.Index(list, "0.1.0/index.html") || !strings.Contains(list, "0.1.0/index.html") {
		t.Errorf("the newest version is not the first:\n%s", list)
	}
	var made []string
	err = filepath.WalkDir(filepath.Join(out, "0.2.0"), func(path string, f fs.DirEntry, err error) error {
		if err == nil && !f.IsDir() && strings.HasSuffix(path, ".html") {
			made = append(made, path)
		}
		return err
	})
	if err != nil || len(made) != len(want) {
		t.Errorf("there are %d pages, and the site has %d: %q, %v", len(want), len(made), made, err)
	}
	var found struct {
		Languages map[string]struct {
			Pages int `json:"page_count"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(out, "0.2.0", "pagefind", "pagefind-entry.json"))), &found); err != nil || found.Languages["en"].Pages != len(want) {
		t.Errorf("%d pages can be searched, want %d: %v", found.Languages["en"].Pages, len(want), err)
	}
	for _, page := range made {
		checkSitePage(t, root, page)
	}
}

// checkSitePage follows the links of a page.
func checkSitePage(t *testing.T, root, page string) {
	t.Helper()
	text := read(t, page)
	links := siteLink.FindAllStringSubmatch(text, -1)
	if len(links) < 30 || !strings.Contains(text, `aria-current="page"`) {
		t.Errorf("%s has %d links, or is not in the menu", page, len(links))
	}
	for _, m := range links {
		href := html.UnescapeString(m[1])
		if _, file, ours := strings.Cut(href, "github.com/boardd/boardd/blob/"); ours {
			_, file, _ = strings.Cut(file, "/")
			file, _, _ = strings.Cut(file, "#")
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s leads to %s, which the repository does not have", page, href)
			}
			continue
		}
		if strings.Contains(href, "://") || strings.HasPrefix(href, "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(href, "#")
		target := page
		if file != "" {
			target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
		}
		there, err := os.ReadFile(target)
		if err != nil {
			t.Errorf("%s leads to %s: %v", page, href, err)
			continue
		}
		if anchor != "" && !slices.ContainsFunc(siteAnchor.FindAllStringSubmatch(string(there), -1), func(id []string) bool { return html.UnescapeString(id[1]) == anchor }) {
			t.Errorf("%s leads to %s, and there is no such heading", page, href)
		}
	}
}
