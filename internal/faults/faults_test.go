package faults_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/faults"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// together is how many schedules run at the same time: they mostly wait.
const together = 5

// schedules runs schedules by their names.
func schedules(t *testing.T, all []faults.Schedule) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	programs := faults.Programs(t)
	turns := make(chan struct{}, together)
	var group sync.WaitGroup
	for _, s := range all {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			t.Run(fmt.Sprintf("%s-%d", s.Store, s.Seed), func(t *testing.T) {
				h := faults.Run(t, programs, s, os.Getenv("BOARDD_TEST_FAULTS_FOLDER"))
				if worked := slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Client == workload.PythonName }); worked != s.Python {
					t.Errorf("the client in Python has made calls: %v, want %v", worked, s.Python)
				}
				theirs := func(op history.Op) bool { return op.Client == workload.TaskFlowName }
				if slices.Equal(s.Kinds, []string{"none"}) && slices.ContainsFunc(h.Ops, theirs) != s.TaskFlow {
					t.Errorf("TaskFlow has made calls: %v, want %v", !s.TaskFlow, s.TaskFlow)
				}
				if s.Store == faults.Moving && slices.Equal(s.Kinds, []string{"none"}) && !slices.ContainsFunc(h.Moves, func(m history.Move) bool { return m.State == "MOVED" }) {
					t.Error("no board has moved")
				}
				promoted := func(c history.PolicyCall) bool { return c.Call == history.Promote && c.Outcome != history.Refused } // while things break nobody may be told
				if s.Policies && !slices.ContainsFunc(h.Policies, promoted) {
					t.Error("no policy was promoted")
				}
				t.Logf("%+v: %d calls, %d faults: %s%s", s, len(h.Ops), len(h.Faults), workload.Totals(h), h.Reported)
			})
		})
	}
	group.Wait()
}

// TestSchedules runs a few schedules on each store; scripts/faults.sh runs more of them.
func TestSchedules(t *testing.T) {
	testneed.Program(t, "redis-server")
	testneed.Program(t, "/usr/bin/python3")
	var all []faults.Schedule
	for _, store := range []string{faults.Embedded, faults.Redis, faults.ZooKeeper} {
		for seed := range uint64(6) {
			all = append(all, faults.Make(store, seed+1))
		}
	}
	for seed := range uint64(4) {
		all = append(all, faults.Make(faults.Postgres, seed+1), faults.Make(faults.Fleet, seed+1))
	}
	for _, seed := range []uint64{3, 7} { // with one server, and with two
		all = append(all, faults.Make(faults.Moving, seed))
	}
	schedules(t, all)
}

// TestNamed runs the schedules that BOARDD_TEST_FAULTS names, such as "redis:17 embedded:3".
// With BOARDD_TEST_BEFORE=COMMIT every second server is of that commit, but for embedded boards;
// with BOARDD_TEST_TASKFLOW=1 TaskFlow works beside those on Redis and ZooKeeper.
func TestNamed(t *testing.T) {
	named, before := os.Getenv("BOARDD_TEST_FAULTS"), ""
	if commit := os.Getenv("BOARDD_TEST_BEFORE"); commit != "" {
		stores := []string{faults.Redis, faults.ZooKeeper, faults.Postgres} // an earlier commit may lack one that nobody names
		stores = slices.DeleteFunc(stores, func(store string) bool { return !strings.Contains(named, store) })
		before = faults.Before(t, commit, stores...)
	}
	taskflow := os.Getenv("BOARDD_TEST_TASKFLOW") == "1"
	if taskflow {
		testserver.NeedTaskFlow(t)
	}
	var all []faults.Schedule
	for one := range strings.FieldsSeq(named) {
		store, number, _ := strings.Cut(one, ":")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := faults.Make(store, seed)
		if before != "" && store != faults.Embedded {
			s = s.Beside(before)
		}
		if taskflow {
			s = s.WithTaskFlow()
		}
		all = append(all, s)
	}
	schedules(t, all)
}
