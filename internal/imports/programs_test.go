package imports_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// maxTracked is the most bytes of one file in the repository.
const maxTracked = 1 << 20

// TestNoPrograms looks for what somebody built and added by mistake: it stays in the history
// for ever.
func TestNoPrograms(t *testing.T) {
	t.Parallel()
	magic := map[string]string{"\x7fELF": "a program", "\xcf\xfa\xed\xfe": "a program", "MZ": "a program", "\x00asm": "a WebAssembly module", "!<ar": "a library"}
	list := exec.CommandContext(t.Context(), testneed.Program(t, "git"), "ls-files", "-z")
	list.Dir = root
	listed, err := list.Output()
	if err != nil {
		t.Log("nothing is looked at: this is no checkout of git")
		return // and no part is missing that could be installed
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		file, err := os.Open(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // it is about to be deleted
		}
		if err != nil {
			t.Fatal(err)
		}
		begin, err := io.ReadAll(io.LimitReader(file, 4))
		info, statErr := file.Stat()
		_ = file.Close()
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		for with, what := range magic {
			if bytes.HasPrefix(begin, []byte(with)) {
				t.Errorf("%s is %s: the repository has nothing that was built", name, what)
			}
		}
		if info.Size() > maxTracked {
			t.Errorf("%s has %d bytes: want %d at most", name, info.Size(), maxTracked)
		}
	}
}
