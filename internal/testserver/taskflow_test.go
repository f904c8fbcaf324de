package testserver_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// TestTaskFlow takes a job through its life on each of TaskFlow's boards, and
// lets a conductor do another one.
func TestTaskFlow(t *testing.T) {
	t.Parallel()
	r := testserver.StartRedis(t, testserver.RedisOptions{})
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	f := testserver.StartTaskFlow(t)
	number, _ := strconv.Atoi(r.Addr[strings.LastIndexByte(r.Addr, ':')+1:])
	for name, conf := range map[string]testserver.Args{
		"redis":     {"board": "redis", "host": "127.0.0.1", "port": number},
		"zookeeper": {"board": "zookeeper", "hosts": z.Servers()[0], "path": "/boards/one"},
	} {
		b := f.Connect(name, conf, 0)
		life(t, b)
		conduct(t, b)
	}
}

func life(t *testing.T, b *testserver.PythonBoard) {
	t.Helper()
	job := b.Post("a", testserver.Args{"python": "{'when': 1.5}", "priority": "HIGH"})
	list, err := b.List(false)
	if err != nil || len(list) != 1 || list[0].UUID != job.UUID || list[0].Priority != "HIGH" || list[0].Details != "{'when': 1.5}" {
		t.Fatalf("%s lists %+v (%v)", b.Name, list, err)
	}
	if err := b.Claim(job.UUID, "me", 0); err != nil {
		t.Fatal(err)
	}
	var no *testserver.TaskFlowError
	if err := b.Claim(job.UUID, "you", 0); !errors.As(err, &no) || no.Class != "UnclaimableJob" {
		t.Errorf("%s: the second claim: %v", b.Name, err)
	}
	if owner, err := b.Owner(job.UUID); err != nil || owner != "me" {
		t.Errorf("%s: owner %q (%v)", b.Name, owner, err)
	}
	if err := b.End("consume", job.UUID, "me"); err != nil {
		t.Error(err)
	}
	if state, err := b.State(job.UUID); err != nil || state != "COMPLETE" {
		t.Errorf("%s: state %q (%v)", b.Name, state, err)
	}
}

func conduct(t *testing.T, b *testserver.PythonBoard) {
	t.Helper()
	job := b.Post("b", testserver.Args{"book": true, "work": b.Name})
	name := "conductor of " + b.Name
	ended := b.Go("conductor", testserver.Args{"board": b.Name, "name": name})
	var done bool
	if err := b.On("wait", testserver.Args{"uuid": job.UUID, "timeout": 60}, &done); err != nil || !done {
		t.Errorf("%s: the job is done: %v (%v)", b.Name, done, err)
	}
	if err := b.Do("stop", testserver.Args{"name": name}, nil); err != nil {
		t.Error(err)
	}
	var problem *string
	if err := ended(&problem); err != nil || problem != nil {
		t.Errorf("%s: the conductor ended with %v (%v)", b.Name, problem, err)
	}
	var runs []string
	if err := b.Do("runs", nil, &runs); err != nil || len(runs) == 0 || runs[len(runs)-1] != b.Name {
		t.Errorf("%s: runs %v (%v)", b.Name, runs, err)
	}
}
