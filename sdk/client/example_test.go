package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func Example() {
	server := newFake().serve() // stands for a boardd
	defer server.Close()

	c, err := client.New(client.Config{Addr: server.URL, Token: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	ctx := context.Background()

	if _, err := board.Post(ctx, &client.NewJob{
		Name:     "resize",
		Details:  []byte(`{"path":"/a.png"}`),
		Priority: boarddv1.Priority_HIGH,
	}); err != nil {
		log.Fatal(err)
	}
	claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "me"})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range claims {
		fmt.Printf("%s %s\n", c.Job.Name, c.Job.Details)
	}
	if err := board.Consume(ctx, claims...); err != nil {
		log.Fatal(err)
	}
	// Output: resize {"path":"/a.png"}
}

// A worker that stops when the board is empty. One without UntilEmpty runs until
// its context ends.
func ExampleWorker() {
	server := newFake().serve() // stands for a boardd
	defer server.Close()
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	ctx := context.Background()
	for _, details := range []string{`{"path":"/a.png"}`, `{"path":""}`} {
		if _, err := board.Post(ctx, &client.NewJob{Name: "resize", Details: []byte(details)}); err != nil {
			log.Fatal(err)
		}
	}

	w := client.Worker{
		Board:      board,
		UntilEmpty: true,
		Handler: func(_ context.Context, c *client.Claim) error {
			var details struct{ Path string }
			if err := json.Unmarshal(c.Job.Details, &details); err != nil {
				return fmt.Errorf("%w: %w", client.ErrTrash, err)
			}
			if details.Path == "" {
				return fmt.Errorf("%w: no path", client.ErrTrash)
			}
			fmt.Println("resizing", details.Path)
			return nil
		},
		Report: func(r client.Report) {
			fmt.Println(r.Ending, r.Err)
		},
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// resizing /a.png
	// CONSUMED <nil>
	// TRASHED trash: no path
}

// A handler asks for another try later when the reason is not the job's.
func ExampleRetryAfter() {
	handler := func(context.Context, *client.Claim) error {
		return client.RetryAfter{Delay: time.Minute, Reason: "the printer is warming up"}
	}
	err := handler(context.Background(), nil)
	fmt.Println(err, errors.Is(err, client.ErrRetry))
	// Output: the printer is warming up true
}

// The items of a call fail one by one; the others are done.
func ExampleFailures() {
	server := newFake().serve() // stands for a boardd
	defer server.Close()
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	jobs, err := c.Board("default").Post(context.Background(), &client.NewJob{Name: "good"}, &client.NewJob{Name: ""})
	fmt.Println(jobs[0].GetName(), errors.Is(err, job.Invalid))
	for i, err := range client.Each(err, 2) {
		if err != nil {
			fmt.Println("item", i, "was refused:", job.KindOf(err))
		}
	}
	// Output:
	// good true
	// item 1 was refused: INVALID
}
