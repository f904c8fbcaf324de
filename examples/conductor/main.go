// Command conductor shows boardd beside a service that uses TaskFlow's own jobboard, as
// Octavia does: boardd shows its jobs, sets one aside, and brings it back, and the
// service's conductor never knows. It needs Redis, and python3 with TaskFlow.
//
//	boardd serve --config examples/conductor/boardd.hcl
//	go run ./examples/conductor
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

//go:embed service.py
var program []byte

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	c, err := client.New(client.Config{
		Addr:  cmp.Or(os.Getenv("BOARDD_ADDR"), "http://127.0.0.1:7422"),
		Token: "a-secret-to-try-things-with",
	})
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "conductor-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	if err := service(ctx, dir, "post", "lb1", "lb2", "lb3"); err != nil {
		return err
	}
	board := c.Board("octavia")
	second, err := find(ctx, board, "lb2")
	if err != nil {
		return err
	}
	if err := board.TrashUnclaimed(ctx, "somebody wants to look at it", second.GetUuid()); err != nil {
		return err
	}
	fmt.Println("a person sets lb2 aside")
	if err := service(ctx, dir, "conduct"); err != nil {
		return err
	}
	if err := board.Restore(ctx, second.GetUuid()); err != nil {
		return err
	}
	fmt.Println("a person puts lb2 back")
	return service(ctx, dir, "conduct")
}

// find lists the board, tells what is on it, and returns the job of that name. What
// other programs post is seen a moment later, so it asks until all three are there.
func find(ctx context.Context, board *client.Board, name string) (*client.Job, error) {
	for {
		var jobs []*client.Job
		for j, err := range board.List(ctx, client.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, j)
		}
		if len(jobs) < 3 {
			if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
			continue
		}
		var found *client.Job
		for _, j := range jobs {
			fmt.Printf("boardd sees %s, %s\n", j.GetName(), boarddv1.State_Enum_name[int32(j.GetState())])
			if j.GetName() == name {
				found = j
			}
		}
		return found, nil
	}
}

// service runs the other program, which has its flows in dir, and shows what it prints.
func service(ctx context.Context, dir string, args ...string) error {
	path := filepath.Join(dir, "service.py")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		return err
	}
	redis := cmp.Or(os.Getenv("REDIS"), "127.0.0.1:6379")
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", append([]string{path, redis, filepath.Join(dir, "flows")}, args...)...) //nolint:gosec // a program of ours
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	lines := strings.SplitAfter(string(out), "\n")
	slices.Sort(lines) // TaskFlow's conductors promise no order
	fmt.Print(strings.Join(lines, ""))
	return err
}
