// Command two-tenants shows one server for two customers: each has boards, tokens and
// limits of its own, and nothing of the one shows at the other.
//
//	boardd serve --config examples/two-tenants/boardd.hcl
//	go run ./examples/two-tenants
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// as returns a client with somebody's token.
func as(token string) (*client.Client, error) {
	return client.New(client.Config{Addr: cmp.Or(os.Getenv("BOARDD_ADDR"), "http://127.0.0.1:7422"), Token: token})
}

func run(ctx context.Context) error {
	shop, err := as("a-secret-of-acme's-shop")
	if err != nil {
		return err
	}
	defer shop.Close()
	workers, err := as("a-secret-of-acme's-workers")
	if err != nil {
		return err
	}
	defer workers.Close()
	initech, err := as("a-secret-of-initech")
	if err != nil {
		return err
	}
	defer initech.Close()

	order := func(c *client.Client) error {
		_, err := c.Board("orders").Post(ctx, &client.NewJob{Name: "order"})
		return err
	}
	fmt.Println("acme's shop posts:", says(order(shop)))
	fmt.Println("acme's workers post:", says(order(workers)))
	fmt.Println("initech posts to acme's board:", says(order(initech)))

	fmt.Println("the shop posts a second:", says(order(shop)))
	fmt.Println("and a third, of two that acme may have open:", says(order(shop)))

	claims, err := workers.Board("orders").Claim(ctx, client.ClaimOptions{Owner: "w1"})
	if err != nil {
		return err
	}
	fmt.Println("a worker consumes one:", says(workers.Board("orders").Consume(ctx, claims...)))
	fmt.Println("so there is room again:", says(order(shop)))

	boards, err := initech.Boards(ctx)
	if err != nil {
		return err
	}
	for _, b := range boards {
		fmt.Println("initech sees the board", b.GetName())
	}
	return nil
}

// says tells how a call went. Every error has a kind, and programs look at nothing
// else of it.
func says(err error) string {
	if err == nil {
		return "done"
	}
	return job.KindOf(err).String()
}
