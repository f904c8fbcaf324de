package client

import (
	"context"
	"encoding/json"
	"os"
	"runtime/debug"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// WorkerKind is the kind of entity as which a Worker shows itself on its board.
const WorkerKind = "worker"

const (
	// presence is how long a worker counts as there after it was last heard of.
	presence = 3 * time.Minute
	// shortly is the least time for which an entity may be noted: a worker that
	// leaves says that it is there for that long, and is gone then.
	shortly = time.Second
	// goodbye is how long a worker that leaves tries to say so.
	goodbye = time.Second
)

// about is what a worker says of itself to people.
type about struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Names       []string          `json:"names,omitempty"`
	Filter      string            `json:"filter,omitempty"`
	Concurrency int               `json:"concurrency"`
	Host        string            `json:"host,omitempty"`
	PID         int               `json:"pid"`
	Version     string            `json:"version,omitempty"`
}

func (r *run) entity() *Entity {
	host, _ := os.Hostname() // where there is none, none is shown
	a := about{
		Labels: r.Labels, Names: r.Names, Filter: r.Filter, Concurrency: cap(r.free), Host: host, PID: os.Getpid(), Version: r.Version,
	}
	if info, ok := debug.ReadBuildInfo(); ok && a.Version == "" {
		a.Version = info.Main.Version
	}
	metadata, err := json.Marshal(a)
	if err != nil {
		metadata = nil // strings and numbers always have a form
	}
	return &Entity{Kind: WorkerKind, Name: r.owner, Metadata: metadata}
}

// show keeps the worker among those who work on the board until ctx ends, and
// takes it away then. No claim depends on it: where the server refuses it, the
// worker is not shown.
func (r *run) show(ctx context.Context) {
	e, shown := r.entity(), false
	for failed := 0; ctx.Err() == nil; {
		_, err := r.Board.RegisterEntity(ctx, e, presence)
		again := presence / 3
		switch kind := job.KindOf(err); {
		case err == nil:
			failed, shown = 0, true
		case ctx.Err() != nil:
			shown = true // for all that is known
		case !kind.Retryable():
			r.log.Info("the board does not show who works on it", "call", "RegisterEntity", "error", err)
			return
		default:
			shown = shown || kind == job.OutcomeUnknown
			again = backoff(failed, time.Second, again)
			failed++
		}
		if sleep.For(ctx, again) != nil {
			break
		}
	}
	if shown {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		_, _ = r.Board.RegisterEntity(ctx, e, shortly) // unheard, it runs out by itself
	}
}
