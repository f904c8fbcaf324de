package peers

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/boardd/boardd/internal/testserver"
)

// riverOn is River on a PostgreSQL, with the pauses of its own benchmark: 2 ms between
// fetches, and 20 ms between looks at an empty queue.
type riverOn struct {
	pool *pgxpool.Pool
	post *river.Client[pgx.Tx]
}

func newRiver(t *testing.T, server *testserver.Postgres) *riverOn {
	t.Helper()
	server.SQL("postgres", "CREATE DATABASE river ENCODING 'UTF8' TEMPLATE template0")
	pool, err := pgxpool.New(t.Context(), server.URL("river")+"&pool_max_conns=16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: silent})
	if err == nil {
		_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &riverOn{pool: pool}
	if s.post, err = river.NewClient(driver, &river.Config{Logger: silent}); err != nil {
		t.Fatal(err)
	}
	return s
}

var silent = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))

type riverArgs struct{ Payload string }

// Kind is how River tells workers apart.
func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]

	handle func([]byte)
}

// Work does one job.
func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.handle([]byte(job.Args.Payload))
	return nil
}

func (s *riverOn) Post(ctx context.Context, payloads [][]byte) error {
	const batch = 5000
	return inBatches(payloads, 4, batch, func(part [][]byte) error {
		list := make([]river.InsertManyParams, len(part))
		for i, p := range part {
			list[i].Args = riverArgs{Payload: string(p)}
		}
		_, err := s.post.InsertManyFast(ctx, list)
		return err
	})
}

func (s *riverOn) Work(handlers int, handle func([]byte)) (func(), error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: handlers}}, Workers: workers, Logger: silent,
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := c.Start(context.Background()); err != nil {
		return nil, err
	}
	return func() { _ = c.Stop(context.Background()) }, nil
}
