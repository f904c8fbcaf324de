// Command first-steps posts a job, one of which there is only one, a schedule and a batch
// that a job follows, and works on all of it. docs/go.md has it in pieces. Against a server
// of `boardd serve --dev`:
//
//	BOARDD_TOKEN=dev go run ./examples/first-steps
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := client.New(client.Config{Addr: os.Getenv("BOARDD_ADDR"), Token: os.Getenv("BOARDD_TOKEN")})
	if err != nil {
		return err
	}
	defer c.Close()
	board := c.Board("default")

	_, err = board.Post(ctx, &client.NewJob{Name: "resize", Details: []byte(`{"path":"/a.png"}`)})
	if err != nil {
		return err
	}
	batch, err := post(ctx, board)
	if err != nil {
		return err
	}
	return work(ctx, board, batch)
}

// post posts what is more than a job, and returns the name of a batch.
func post(ctx context.Context, board *client.Board) (string, error) {
	// One job of the board has the key at a time: the second call posts nothing, and
	// returns the job that stands.
	var mail [2]string
	for i := range mail {
		jobs, err := board.Post(ctx, &client.NewJob{Name: "mail", Unique: &client.Unique{Key: "ada"}})
		if err != nil {
			return "", err
		}
		mail[i] = jobs[0].GetUuid()
	}
	fmt.Println("the same mail:", mail[0] == mail[1])

	// A schedule posts its job at each tick. Writing it again changes it.
	if _, err := board.PutSchedule(ctx, &client.Schedule{
		Name: "nightly", Cron: "0 3 * * *", Timezone: "Europe/Berlin",
		Job: &client.NewJob{Name: "report"},
	}, nil); err != nil {
		return "", err
	}

	// The album follows once both photos have ended. A batch's name is used once.
	batch := "photos-" + client.NewUUID()
	if _, err := board.PutBatch(ctx, batch, &client.NewJob{Name: "album"}, 2); err != nil {
		return "", err
	}
	_, err := board.Post(ctx,
		&client.NewJob{Name: "photo", Details: []byte(`{"n":1}`), Batch: batch},
		&client.NewJob{Name: "photo", Details: []byte(`{"n":2}`), Batch: batch})
	return batch, err
}

func work(ctx context.Context, board *client.Board, batch string) error {
	worker := client.Worker{
		Board:   board,
		MaxJobs: 5, // without it, it works until ctx ends
		Handler: func(_ context.Context, claim *client.Claim) error {
			fmt.Println(claim.GetJob().GetName(), string(claim.GetJob().GetDetails()))
			return nil // done; an error: it is tried again later
		},
	}
	if err := worker.Run(ctx); err != nil {
		return err
	}
	done, err := board.Batch(ctx, batch, time.Minute)
	fmt.Println("consumed of the batch:", done.GetConsumed())
	return err
}
