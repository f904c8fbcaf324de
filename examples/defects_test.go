package examples

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// TestTaskFlowDefects runs the programs of docs/taskflow-defects.md with TaskFlow, and
// wants of each what the page says that it prints.
func TestTaskFlowDefects(t *testing.T) {
	t.Parallel()
	testserver.NeedTaskFlow(t)
	page := readText(t, filepath.Join("..", "docs", "taskflow-defects.md"))
	blocks := regexp.MustCompile("(?s)```txt\n(\\w+\\.py)([^\n]*)\n(.*?)```").FindAllStringSubmatch(page, -1)
	var programs []string
	redis := testserver.StartRedis(t, testserver.RedisOptions{}).Addr
	zookeeper := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true}).Servers()[0]
	for _, block := range blocks {
		program, args, want := filepath.Join("octavia", "defects", block[1]), strings.Fields(block[2]), block[3]
		programs = append(programs, program)
		args[len(args)-1] = strings.NewReplacer("127.0.0.1:6379", redis, "127.0.0.1:2181", zookeeper).Replace(args[len(args)-1])
		t.Run(strings.TrimSpace(block[1]+block[2]), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), python, append([]string{program}, args...)...)
			var said strings.Builder
			command.Stderr = &said
			got, err := command.Output()
			if err != nil || string(got) != want {
				t.Errorf("it prints\n%s, and docs/taskflow-defects.md says\n%s(%v)\n%s", got, want, err, said.String())
			}
		})
	}
	there, err := filepath.Glob(filepath.Join("octavia", "defects", "*.py"))
	if slices.Sort(programs); err != nil || len(there) == 0 || !slices.Equal(there, slices.Compact(programs)) {
		t.Errorf("the page runs %q, and there are %q: %v", programs, there, err)
	}
}
