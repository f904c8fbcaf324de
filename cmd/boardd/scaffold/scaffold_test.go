package scaffold

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

var update = flag.Bool("update", false, "make the templates of drivers anew")

// TestTemplates holds the templates of drivers against the examples that they are.
// go test ./cmd/boardd/scaffold -update makes them anew.
func TestTemplates(t *testing.T) {
	t.Parallel()
	const examples = "../../../examples"
	want := map[string]string{"driver-python/__main__.py": examples + "/driver-python/sqlite-py"}
	for _, name := range []string{"go.mod", "go.sum", "schema.sql"} {
		want["driver-go/"+name] = examples + "/driver-sql/" + name
	}
	sources, err := filepath.Glob(examples + "/driver-sql/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%v, %d files", err, len(sources))
	}
	for _, path := range sources {
		want["driver-go/"+filepath.Base(path)] = path
	}
	for name, path := range want {
		compare(t, name+".txt", read(t, path))
	}
	own := map[string]bool{"README.md": true, "boardd.mod": true, "driver_pb2.py": true}
	found, err := filepath.Glob("driver-*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		name := strings.TrimSuffix(filepath.ToSlash(path), ".txt")
		if want[name] == "" && !own[filepath.Base(name)] {
			t.Errorf("%s: the example has no such file", path)
		}
	}
}

// TestMessages holds the messages of the template in Python against the protocol.
func TestMessages(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "protoc")
	dir := t.TempDir()
	read(t, "../../../sdk/plugin/driver.proto") // which protoc reads: the test cache has to know
	generate := exec.CommandContext(t.Context(), "protoc", "-I", "../../../sdk/plugin", "--python_out="+dir, "driver.proto")
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
	// Another protoc writes other code around the same description.
	described := regexp.MustCompile(`AddSerializedFile\(b(['"].*['"])\)`)
	made, stands := read(t, filepath.Join(dir, "driver_pb2.py")), read(t, "driver-python/driver_pb2.py.txt")
	if a, b := described.Find(made), described.Find(stands); a == nil || !bytes.Equal(a, b) {
		compare(t, "driver-python/driver_pb2.py.txt", made)
	}
}

// TestVersions holds the versions of modules that the SDK needs against the example's.
func TestVersions(t *testing.T) {
	t.Parallel()
	example := string(read(t, "../../../examples/driver-sql/go.mod"))
	for line := range strings.SplitSeq(string(read(t, "driver-go/boardd.mod.txt")), "\n") {
		if strings.HasPrefix(line, "\t") && !strings.Contains(example, line) {
			t.Errorf("boardd.mod.txt has%s, and examples/driver-sql/go.mod another version", line)
		}
	}
}

func compare(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is not what it was made of any more: go test ./cmd/boardd/scaffold -update", path)
		return
	}
	if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // sources
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	return data
}
