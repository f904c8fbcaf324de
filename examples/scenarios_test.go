package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestScenarios serves a board as the example's boardd.hcl says, runs the program
// beside it, and compares what that prints with its output.txt.
func TestScenarios(t *testing.T) {
	t.Parallel()
	boardd := testserver.Build(t, "./cmd/boardd")
	for _, name := range []string{"gpu-worker", "render-farm", "two-tenants"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, boardd, name, sources(t, name+"/boardd.hcl")[0])
		})
	}
	t.Run("webhook", func(t *testing.T) {
		t.Parallel()
		addr := strings.TrimPrefix(testserver.New(t, boardd, "").Addr, "http://") // nobody listens there
		config := strings.ReplaceAll(sources(t, "webhook/boardd.hcl")[0], "127.0.0.1:8099", addr)
		scenario(t, boardd, "webhook", config, "LISTEN="+addr)
	})
	t.Run("conductor", func(t *testing.T) {
		t.Parallel()
		testneed.Program(t, python)
		if err := exec.CommandContext(t.Context(), python, "-c", "import taskflow, redis").Run(); err != nil {
			testneed.Skip(t, python+" has no taskflow and redis")
		}
		sources(t, "conductor/service.py") // so that the test cache sees it
		redis := testserver.StartRedis(t, testserver.RedisOptions{})
		config := strings.ReplaceAll(sources(t, "conductor/boardd.hcl")[0], "127.0.0.1:6379", redis.Addr)
		plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
		scenario(t, boardd, "conductor", "plugin_dir = \""+plugins+"\"\n"+config, "REDIS="+redis.Addr)
	})
}

// TestFirstSteps makes a module of somebody's own with the commands of docs/go.md, and runs
// the program of which that page has the pieces.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	page, program := sources(t, "../docs/go.md")[0], sources(t, "first-steps/main.go")[0]
	_, commands, _ := strings.Cut(page, "```shell\ngo mod edit")
	commands, _, found := strings.Cut(commands, "```")
	if !found {
		t.Fatal("docs/go.md does not say how the module is taken from a clone")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "set -e\ngo mod init example.org/program\ngo mod edit" + strings.ReplaceAll(commands, "/path/to/boardd", testserver.Root(t)) + "go build -o program ."
	build := exec.CommandContext(t.Context(), testneed.Program(t, "bash"), "-c", script)
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := testserver.Start(t, testserver.Build(t, "./cmd/boardd"), "")
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "program"))
	cmd.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=dev")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server.Log())
	}
	if diff := cmp.Diff(sources(t, "first-steps/output.txt")[0], string(out)); diff != "" {
		t.Errorf("it prints something else than output.txt has (-want +got):\n%s", diff)
	}
}

func scenario(t *testing.T, boardd, name, config string, env ...string) {
	t.Helper()
	program := testserver.Build(t, "./examples/"+name)
	file := filepath.Join(t.TempDir(), "boardd.hcl")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, boardd, "", "--config", file)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(append(os.Environ(), "BOARDD_ADDR="+server.Addr), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server.Log())
	}
	if diff := cmp.Diff(sources(t, name+"/output.txt")[0], string(out)); diff != "" {
		t.Errorf("it prints something else than output.txt has (-want +got):\n%s", diff)
	}
}
