// Command gpu-worker shows workers that get only the jobs that they are fit for. The
// board's policy compares labels; a job that nobody may have waits, and says why.
//
//	boardd serve --config examples/gpu-worker/boardd.hcl
//	go run ./examples/gpu-worker
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/boardd/boardd/sdk/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := client.New(client.Config{
		Addr:  cmp.Or(os.Getenv("BOARDD_ADDR"), "http://127.0.0.1:7422"),
		Token: "a-secret-to-try-things-with",
	})
	if err != nil {
		return err
	}
	defer c.Close()
	board := c.Board("training")
	jobs, err := board.Post(ctx,
		&client.NewJob{Name: "large model", Labels: map[string]string{"requires.gpu": "a100"}},
		&client.NewJob{Name: "small model", Labels: map[string]string{"requires.gpu": "a100|h100"}},
		&client.NewJob{Name: "report"})
	if err != nil {
		return err
	}
	if err := work(ctx, board, "h100"); err != nil {
		return err
	}
	why, err := board.Explain(ctx, jobs[0].GetUuid(), "the h100 worker", map[string]string{"gpu": "h100"})
	if err != nil {
		return err
	}
	fmt.Printf("large model waits: %s\n", why.GetReason())
	return work(ctx, board, "a100")
}

// work does what a worker with such a GPU may have, and returns when that is all done.
func work(ctx context.Context, board *client.Board, gpu string) error {
	w := client.Worker{
		Board:      board,
		Owner:      "the " + gpu + " worker",
		Labels:     map[string]string{"gpu": gpu},
		UntilEmpty: true,
		Handler: func(_ context.Context, c *client.Claim) error {
			fmt.Printf("%s: %s\n", gpu, c.GetJob().GetName())
			return nil
		},
	}
	return w.Run(ctx)
}
