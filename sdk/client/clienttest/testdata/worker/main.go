// Command worker is Go's worker, to be judged by clienttest. It is wrong in one way with an
// argument: with "deaf" its handlers do not hear that they are over, with "twice" they work
// twice, with "patient" it takes every server for alive, with "alone" it knows the first one only,
// with "stays" it makes every call there, with "trusting" it takes any address for one.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

var seen sync.Map

func handle(ctx context.Context, c *client.Claim) error {
	uuid, name := c.GetUuid(), c.GetJob().GetName()
	fmt.Println("begin", uuid)
	if wrong("twice") {
		fmt.Println("begin", uuid)
	}
	switch name {
	case "trash":
		return fmt.Errorf("no good: %w", client.ErrTrash)
	case "retry":
		return fmt.Errorf("not now: %w", client.ErrRetry)
	case "fail":
		return errors.New("failed")
	case "busy":
		time.Sleep(4 * time.Second)
	case "hold":
		if _, again := seen.LoadOrStore(uuid, true); again {
			return nil
		}
		if wrong("deaf") {
			select {}
		}
		<-ctx.Done()
		fmt.Println("over", uuid, why(context.Cause(ctx)))
		return context.Cause(ctx)
	}
	return nil
}

func wrong(how string) bool { return len(os.Args) > 1 && os.Args[1] == how }

func why(cause error) string {
	switch {
	case errors.Is(cause, job.LeaseLost):
		return "LOST"
	case errors.Is(cause, client.ErrCancelRequested):
		return "CANCEL"
	case errors.Is(cause, client.ErrTimeout):
		return "TIMEOUT"
	default:
		return "STOP"
	}
}

// patient takes every server for alive.
type patient struct{}

// Do makes a request, and does not ask whether a server is alive.
func (patient) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/healthz" {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	return http.DefaultClient.Do(r)
}

// trusting makes an address of whatever a server names.
type trusting struct{}

// Do makes a request, and mends what the answer says.
func (trusting) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if public, err := url.Parse(answer.Header.Get("Boardd-Public")); err == nil && public.Host != "" {
		answer.Header.Set("Boardd-Public", "http://"+public.Host)
	}
	return answer, nil
}

func main() {
	config := client.Config{Addr: os.Getenv("BOARDD_ADDR"), Token: os.Getenv("BOARDD_TOKEN")}
	if wrong("alone") {
		config.Addr, _, _ = strings.Cut(config.Addr, ",")
	}
	if wrong("patient") {
		config.HTTPClient = patient{}
	}
	if wrong("trusting") {
		config.HTTPClient = trusting{}
	}
	config.StayAtAddr = wrong("stays")
	c, err := client.New(config)
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := client.Worker{Board: c.Board(os.Getenv("BOARDD_BOARD")), Handler: handle, Concurrency: 3}
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
