package boardtest_test

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/internal/testserver"
	redis "github.com/boardd/boardd/plugins/redis/store"
	zookeeper "github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A job that waits is claimed to TaskFlow's eyes; what a Python process consumes
// counts as done, and what it puts into the trash as failed.
func TestTaskFlowEndsPrerequisites(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
		python := testserver.StartTaskFlow(t)
		host, text, err := net.SplitHostPort(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		endPrerequisites(t, opener(redis.Program(), `{"address":`+strconv.Quote(server.Addr)+`}`)(t), `{"namespace":"shared"}`,
			python.Connect("python", testserver.Args{"board": "redis", "host": host, "port": port, "namespace": "shared"}, 0))
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
		python := testserver.StartTaskFlow(t)
		endPrerequisites(t, opener(zookeeper.Program(), `{"servers":[`+strconv.Quote(z.Servers()[0])+`]}`)(t), `{"path":"/shared/jobs"}`,
			python.Connect("python", testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": "/shared/jobs"}, 0))
	})
}

func endPrerequisites(t *testing.T, d driver.Driver, settings string, python *testserver.PythonBoard) {
	t.Helper()
	b := board.New(d, board.Spec{Name: "shared", Settings: []byte(settings), FenceByOwner: true, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := b.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	post := func(p job.Posting) string {
		t.Helper()
		results, err := b.Post(ctx, []job.Posting{p})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		return results[0].Job.ID.String()
	}
	get := func(uuid string) *job.Job {
		t.Helper()
		id, err := job.ParseID(uuid)
		if err != nil {
			t.Fatal(err)
		}
		results, err := b.Get(ctx, []job.ID{id}, board.GetOptions{})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		return results[0].Job
	}
	after := func(uuid string) job.Posting {
		t.Helper()
		id, err := job.ParseID(uuid)
		if err != nil {
			t.Fatal(err)
		}
		return job.Posting{Name: "dependent", After: []job.Prerequisite{{ID: id}}, Operations: []job.NewOperation{{Name: "x"}}}
	}
	for _, end := range []string{"consume", "trash"} {
		first := post(job.Posting{Name: "first"})
		dependent := post(after(first))
		if python.Claim(dependent, "conductor", 0) == nil {
			t.Fatal("TaskFlow claims a job that waits")
		}
		if err := python.Claim(first, "conductor", 0); err != nil {
			t.Fatal(err)
		}
		if err := python.End(end, first, "conductor"); err != nil {
			t.Fatal(err)
		}
		switch end {
		case "consume":
			testserver.Eventually(t, "the dependent is let go", func() bool { return !get(dependent).Held })
			if err := python.Claim(dependent, "conductor", 0); err != nil {
				t.Error(err)
			}
		case "trash":
			testserver.Eventually(t, "the dependent is canceled", func() bool { return get(dependent).State == job.Complete })
			if j := get(dependent); j.Outcome != job.Canceled {
				t.Errorf("%+v", j)
			}
			if state, err := python.State(dependent); err == nil && !strings.EqualFold(state, "COMPLETE") {
				t.Errorf("to TaskFlow it is %s", state)
			}
		}
	}
	// A priority that was changed here orders our line, and never touches what TaskFlow reads.
	uuid := post(job.Posting{Name: "urgent", Operations: []job.NewOperation{{Name: "x"}}})
	id, err := job.ParseID(uuid)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := b.SetPriority(ctx, []job.ID{id}, job.VeryHigh); err != nil || !changes[0].Changed {
		t.Fatal(changes, err)
	}
	list, err := python.List(false)
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, j := range list {
		if j.UUID == uuid {
			seen = true
			if !strings.EqualFold(j.Priority, "NORMAL") {
				t.Errorf("TaskFlow sees the priority %s", j.Priority)
			}
		}
	}
	if !seen {
		t.Error("TaskFlow does not see the job")
	}
	endBatch(t, b, python)
}

// endBatch has TaskFlow end the jobs of a batch, one each way: it is done, and what follows it
// comes.
func endBatch(t *testing.T, b *board.Board, python *testserver.PythonBoard) {
	t.Helper()
	ctx := t.Context()
	if _, err := b.PutBatch(ctx, "night", &job.Posting{Name: "sum"}, 2); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"consume", "trash"} {
		results, err := b.Post(ctx, []job.Posting{{Name: "part", Batch: "night"}})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		uuid := results[0].Job.ID.String()
		if err := python.Claim(uuid, "conductor", 0); err != nil {
			t.Fatal(err)
		}
		if err := python.End(end, uuid, "conductor"); err != nil {
			t.Fatal(err)
		}
	}
	var night board.Batch
	testserver.Eventually(t, "the batch is done", func() bool {
		got, err := b.Batch(ctx, "night", 0)
		if err != nil {
			t.Fatal(err)
		}
		night = got
		return got.Done()
	})
	if want := (driver.Group{Trashed: 1, Consumed: 1, Closed: true, Followed: true}); night.Group != want || night.ThenID == (job.ID{}) {
		t.Errorf("the batch is done with %+v, want %+v and what follows it", night, want)
	}
}
