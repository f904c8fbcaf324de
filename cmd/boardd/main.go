// Command boardd is a jobboard: the server and its client in one program.
//
// Every command explains itself: boardd help, boardd job post --help. The client
// ends with 0 when everything was done, 1 when the server said no to something
// or a check has findings, 2 for a wrong command line or input, 3 when no server
// is reachable, 4 when there was nothing or the wait ran out, 5 when it is not
// known whether a change took effect, and 130 when it was interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/boardd/boardd/host/wasm"
)

func main() {
	os.Exit(runMain())
}

func runMain() int {
	if len(os.Args) > 1 && os.Args[1] == wasm.ChildArgument {
		return wasm.ChildMain(os.Args[2:])
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, settle: coarseTimers}
	return p.run(ctx, os.Args[1:])
}

// interruptible returns a context that the first SIGINT or SIGTERM ends, with
// the signal as its cause. A second one ends the program at once.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signaled{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}

// signaled is the cause of a context that a signal ended.
type signaled struct{ signal syscall.Signal }

func (s signaled) Error() string { return s.signal.String() }
