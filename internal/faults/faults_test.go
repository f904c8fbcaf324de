package faults_test

import (
	"fmt"
	"os"
	"runtime"
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

// together returns how many schedules run at the same time: they wait a good deal, and where they
// have too little of the processors they do nothing but try again.
func together() int { return runtime.GOMAXPROCS(0) + 1 }

// schedules runs schedules by their names.
func schedules(t *testing.T, all []faults.Schedule) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	programs := faults.Programs(t)
	turns := make(chan struct{}, together())
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

// chosen are the schedules of TestSchedules: so many, and such that TestChosen finds everything
// among them. The longest come first, so that none is left alone at the end.
func chosen() (all []faults.Schedule) {
	for _, of := range []struct {
		store string
		seeds []uint64
	}{
		{faults.Moving, []uint64{6, 9, 10, 13, 14, 15, 17, 21}},
		{faults.Fleet, []uint64{3, 7, 24, 27, 29}},
		{faults.ZooKeeper, []uint64{7, 9, 10, 11, 12, 13, 16}},
		{faults.Standby, []uint64{15, 37}},
		{faults.Postgres, []uint64{2, 7, 8, 9, 13, 16}},
		{faults.Redis, []uint64{3, 7, 8, 9, 10, 13, 18}},
		{faults.Embedded, []uint64{2, 3, 7, 9, 13, 14, 16}},
	} {
		for _, seed := range of.seeds {
			all = append(all, faults.Make(of.store, seed))
		}
	}
	return all
}

// TestSchedules runs a few schedules on each store; scripts/faults.sh runs more of them.
func TestSchedules(t *testing.T) {
	testneed.Program(t, "redis-server")
	testneed.Program(t, "/usr/bin/python3")
	schedules(t, chosen())
}

// TestChosen looks whether the chosen schedules break everything that there is on each store, and
// have everybody work there.
func TestChosen(t *testing.T) {
	t.Parallel()
	everywhere := []string{"server killed", "driver stopped", "too little of everything", "client", "a limit", "Python", "tenants"}
	several := append([]string{"store killed", "store stopped", "store cut", "two servers", "three servers"}, everywhere...)
	single := append([]string{"put back", "policies", "policy killed", "one server", "nothing broken"}, everywhere...)
	of := map[string]map[string]bool{}
	for _, s := range chosen() {
		if of[s.Store] == nil {
			of[s.Store] = map[string]bool{}
		}
		for _, has := range hasAndBreaks(s) {
			of[s.Store][has] = true
		}
	}
	for store, want := range map[string][]string{
		faults.Embedded:  append([]string{"disk full"}, single...),
		faults.Redis:     slices.Concat(single, several, []string{"redis"}),
		faults.ZooKeeper: slices.Concat(single, several, []string{"an ensemble"}),
		faults.Postgres:  slices.Concat(single[:3], several[:4], everywhere, []string{"postgres", "four servers"}),
		faults.Standby:   {"postgres", "server killed", "driver stopped", "a limit", "Python", "tenants", "policies", "one server", "two servers"},
		faults.Fleet:     slices.Concat(several[:1], everywhere, []string{"put back", "peer cut", "two servers", "three servers", "four servers"}),
		faults.Moving:    slices.Concat(several, []string{"policies", "one server", "between embedded", "between redis", "between zookeeper", "between postgres"}),
	} {
		for _, w := range want {
			if !of[store][w] {
				t.Errorf("none of the schedules of %s has: %s", store, w)
			}
		}
	}
}

// hasAndBreaks names what a schedule has, and what it may break.
func hasAndBreaks(s faults.Schedule) (all []string) {
	for name, so := range map[string]bool{
		"a limit": s.Limit > 0, "Python": s.Python, "tenants": s.Tenants, "policies": s.Policies, "put back": s.PutBack, "an ensemble": s.Members > 1,
		"one server": s.Servers == 1, "two servers": s.Servers == 2, "three servers": s.Servers == 3, "four servers": s.Servers == 4,
		"too little of everything": slices.Contains(s.Kinds, "server slow"),
		"nothing broken":           slices.Equal(s.Kinds, []string{"none"}),
	} {
		if so {
			all = append(all, name)
		}
	}
	for _, name := range []string{"server killed", "driver stopped", "client", "store killed", "store stopped", "store cut", "redis", "postgres", "peer cut"} {
		if len(s.Kinds) == 0 || slices.ContainsFunc(s.Kinds, func(kind string) bool { return strings.HasPrefix(name, kind) }) {
			all = append(all, name)
		}
	}
	if s.Policies && (len(s.Kinds) == 0 || slices.Contains(s.Kinds, "policy")) {
		all = append(all, "policy killed")
	}
	if s.Disk {
		all = append(all, "disk full")
	}
	for _, store := range s.Stores {
		all = append(all, "between "+store)
	}
	return all
}

// TestNamed runs the schedules that BOARDD_TEST_FAULTS names, such as "redis:17 embedded:3".
// With BOARDD_TEST_BEFORE=COMMIT every second server is of that commit, but for embedded boards;
// with BOARDD_TEST_TASKFLOW=1 TaskFlow works beside those on Redis and ZooKeeper.
func TestNamed(t *testing.T) {
	named, before := os.Getenv("BOARDD_TEST_FAULTS"), ""
	if commit := os.Getenv("BOARDD_TEST_BEFORE"); commit != "" {
		stores := []string{faults.Redis, faults.ZooKeeper, faults.Postgres} // an earlier commit may lack one that nobody names
		stores = slices.DeleteFunc(stores, func(store string) bool {
			return !strings.Contains(strings.ReplaceAll(named, faults.Fleet, faults.Redis), store)
		})
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
