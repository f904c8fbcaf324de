package binding_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// A call that waited while another one made policies goes by what the board was given
// meanwhile, and not by what it had been given when the call came.
func TestDeployedLast(t *testing.T) {
	t.Parallel()
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var r binding.InForce
	r.Serve(binding.Serving{Board: board.New(d, board.Spec{Name: "b", Logger: slog.New(slog.DiscardHandler)})})
	making, made, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	last := catalog.Deployment{Board: "b", Owner: "last", Version: 2}
	var calls sync.WaitGroup
	calls.Go(func() {
		r.Deploy(func() catalog.Deployment {
			close(making)
			<-made
			return catalog.Deployment{Board: "b", Owner: "first", Version: 1}
		})
	})
	<-making
	calls.Go(func() {
		r.Deploy(func() catalog.Deployment {
			close(asked)
			return last
		})
	})
	late := time.NewTimer(100 * time.Millisecond)
	defer late.Stop()
	select {
	case <-asked:
		t.Error("what the board was given was asked for before it was this call's turn")
	case <-late.C: // as long as it takes: it is not its turn
	}
	close(made)
	calls.Wait()
	if r.Outdated(last) {
		t.Error("the board goes by what it was given before")
	}
}
