package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Found is what lies in a folder of drivers.
type Found struct {
	Name    string // how a backend names it: the file's name
	Path    string
	Skipped string // not empty: it is no driver, and why
	Warning string // not empty: it can be run, and should not be left like this
}

var driverName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Find lists what lies in a folder of drivers, sorted by name: each executable in
// it is one. Nothing is run.
func Find(dir string) ([]Found, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder of drivers can not be read: %w", err)
	}
	var open string
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o002 != 0 {
		open = fmt.Sprintf("everybody may write to the folder %s: chmod o-w it", dir)
	}
	found := make([]Found, 0, len(entries))
	for _, entry := range entries {
		f := Found{Name: entry.Name(), Path: filepath.Join(dir, entry.Name()), Warning: open}
		info, err := os.Stat(f.Path) // of what a link points to
		switch {
		case err != nil:
			f.Skipped = err.Error()
		case entry.Name()[0] == '.':
			f.Skipped = "its name begins with a dot"
		case info.IsDir():
			f.Skipped = "it is a folder"
		case !info.Mode().IsRegular():
			f.Skipped = "it is not a file"
		case info.Mode().Perm()&0o111 == 0:
			f.Skipped = "it is not executable"
		case !driverName.MatchString(f.Name):
			f.Skipped = "no backend could name it: want a to z, 0 to 9, dot, underscore and dash, at most 63 of them"
		case info.Mode().Perm()&0o002 != 0:
			f.Warning = "everybody may write to it: chmod o-w it"
		}
		if f.Skipped != "" {
			f.Warning = ""
		}
		found = append(found, f)
	}
	return found, nil
}
