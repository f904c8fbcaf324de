package wasm

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// A process that does not read what it is told is given up, as is one that does not answer.
func TestStartedProcessDoesNotRead(t *testing.T) {
	t.Parallel()
	e := &Engine{config: Config{Child: func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", "exec sleep 1000")
	}}}
	r := &process{pool: &pool{engine: e, name: "p", module: &Module{digest: "d"}}}
	if err := r.launch(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = r.cmd.Wait() // it was killed
	}()
	for range 2 {
		var fault *Fault
		err := r.tell(order{}, make([]byte, 200<<10), nil, 10*time.Millisecond) // more than a pipe holds
		if !errors.As(err, &fault) || fault.Kind != Lost || fault.Text != errSilent.Error() {
			t.Fatalf("got %v, want that the process is lost", err)
		}
	}
}
