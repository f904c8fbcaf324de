package imports_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// TestLinks follows every link from a document to a file of this repository.
func TestLinks(t *testing.T) {
	t.Parallel()
	documents := 0
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == ".tools" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		documents++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, match := range markdownLink.FindAllStringSubmatch(string(text), -1) {
			target := match[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents == 0 {
		t.Error("there are no documents")
	}
}
