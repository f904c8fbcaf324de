// Command render-farm shows customers who share workers by weight. One customer has
// posted a thousand frames before the other comes with a few; the few do not wait
// behind the thousand.
//
//	boardd serve --config examples/render-farm/boardd.hcl
//	go run ./examples/render-farm
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
	board := c.Board("frames")
	for customer, frames := range map[string]int{"studio": 1000, "student": 3} {
		if err := post(ctx, board, customer, frames); err != nil {
			return err
		}
	}
	// Eight machines take a frame each. None is done yet, so the shares are those of
	// what is running.
	running := map[string]int{}
	for n := range 8 {
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: fmt.Sprintf("machine %d", n+1)})
		if err != nil {
			return err
		}
		for _, c := range claims {
			running[c.GetJob().GetLabels()["customer"]]++
		}
	}
	fmt.Printf("studio has %d machines, student has %d\n", running["studio"], running["student"])
	return nil
}

func post(ctx context.Context, board *client.Board, customer string, frames int) error {
	jobs := make([]*client.NewJob, frames)
	for i := range jobs {
		jobs[i] = &client.NewJob{Name: fmt.Sprintf("frame %04d", i+1), Labels: map[string]string{"customer": customer}}
	}
	_, err := board.Post(ctx, jobs...)
	return err
}
