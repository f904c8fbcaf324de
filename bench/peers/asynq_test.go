package peers

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

	"github.com/boardd/boardd/internal/testserver"
)

// asynqAt is asynq on a Redis. Its worker looks at an empty queue again after a
// millisecond, the least that it takes, and not after a second as by default.
type asynqAt struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
}

func newAsynq(server *testserver.Redis) *asynqAt {
	redis := asynq.RedisClientOpt{Addr: server.Addr, PoolSize: 64}
	return &asynqAt{redis: redis, client: asynq.NewClient(redis)}
}

func (s *asynqAt) Post(ctx context.Context, payloads [][]byte) error {
	return inBatches(payloads, 64, 1, func(part [][]byte) error {
		_, err := s.client.EnqueueContext(ctx, asynq.NewTask("bench", part[0]))
		return err
	})
}

func (s *asynqAt) Work(handlers int, handle func([]byte)) (func(), error) {
	w := asynq.NewServer(s.redis, asynq.Config{
		Concurrency: handlers, LogLevel: asynq.FatalLevel, TaskCheckInterval: time.Millisecond, ShutdownTimeout: time.Minute,
	})
	err := w.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task.Payload())
		return nil
	}))
	return w.Shutdown, err
}
