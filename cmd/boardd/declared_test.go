package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

const declaredConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
board "default" {
  backend = "main"
  schedule %q {
    every = "%ds"
    job {
      name = "tick"
    }
  }
}
`

// declaring writes a configuration with one schedule.
func declaring(t *testing.T, path, redis, name string, seconds int) {
	t.Helper()
	if err := os.WriteFile(path, fmt.Appendf(nil, declaredConfig, redis, name, seconds), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runOn runs boardd against a server.
func runOn(t *testing.T, program string, s *testserver.Server, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+s.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("boardd %v: %v\n%s\n%s", args, err, out, s.Log())
	}
	return string(out)
}

// TestDeclaredScheduleOfTwoServers: two servers with the same files on one Redis write a
// schedule once, whoever of them is started or reloads, and post each of its ticks once.
func TestDeclaredScheduleOfTwoServers(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	declaring(t, config, redis.Addr, "often", 1)
	servers := []*testserver.Server{testserver.Start(t, program, "", "--config", config), testserver.Start(t, program, "", "--config", config)}
	run := func(s *testserver.Server, args ...string) string {
		t.Helper()
		return runOn(t, program, s, args...)
	}
	stands := func(every string, version int) {
		t.Helper()
		for _, s := range servers {
			testserver.Eventually(t, "the schedule ticks every "+every, func() bool { return strings.Contains(run(s, "schedule", "list"), "every "+every) })
			if got := run(s, "schedule", "get", "often", "-o", "json"); !strings.Contains(got, fmt.Sprintf(`"version":"%d"`, version)) {
				t.Errorf("want version %d: %s", version, got)
			}
		}
	}
	stands("1s", 1)
	jobs := func() int { return strings.Count(run(servers[0], "job", "list", "--limit", "0"), " tick ") }
	testserver.Eventually(t, "it ticks", func() bool { return jobs() >= 3 })
	declaring(t, config, redis.Addr, "often", 3600)
	for _, s := range servers {
		run(s, "reload")
		stands("1h0m0s", 2)
	}
	ticks := 0
	for _, s := range servers {
		m := regexp.MustCompile(`event="tick",tenant="default"} (\d+)`).FindStringSubmatch(metricsOf(t, s.Addr, "not-very-secret-1234567890"))
		if m == nil {
			t.Fatal("a server does not say how many ticks it posted")
		}
		n, _ := strconv.Atoi(m[1]) // they are digits
		ticks += n
	}
	if n := jobs(); n < 3 || n != ticks {
		t.Errorf("%d jobs were posted for %d ticks", n, ticks)
	}
	for _, s := range servers {
		s.Kill()
	}
	for _, s := range servers {
		s.Restart()
	}
	stands("1h0m0s", 2)
}

// TestDeclaredScheduleOfServersThatDiffer: of two servers with different files on one Redis the
// one that was told last has its way, and the other one says so and does not fight. What a Redis
// that lost everything had of it comes back.
func TestDeclaredScheduleOfServersThatDiffer(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	paths := []string{filepath.Join(t.TempDir(), "one.hcl"), filepath.Join(t.TempDir(), "other.hcl")}
	declaring(t, paths[0], redis.Addr, "report", 3600)
	declaring(t, paths[1], redis.Addr, "report", 7200)
	const disputed = "a schedule is not as the configuration declares it any more"
	stands := func(s *testserver.Server, every string, version int) {
		t.Helper()
		want := fmt.Sprintf(`"every":"%ss".*"version":"%d"`, every, version)
		testserver.Eventually(t, "the schedule stands as "+want, func() bool {
			return regexp.MustCompile(want).MatchString(runOn(t, program, s, "schedule", "list", "-o", "json"))
		})
	}
	told := func(s *testserver.Server) {
		t.Helper()
		testserver.Eventually(t, "the log says that another server has other files", func() bool { return strings.Contains(s.Log(), disputed) })
	}
	one := testserver.Start(t, program, "", "--config", paths[0])
	stands(one, "3600", 1)
	other := testserver.Start(t, program, "", "--config", paths[1])
	stands(one, "7200", 2)
	told(one)
	// A schedule of a call ticks meanwhile, on both servers.
	runOn(t, program, other, "schedule", "put", "tick", "--every", "1s", "--", "tick")
	testserver.Eventually(t, "it ticks", func() bool {
		return strings.Count(runOn(t, program, one, "job", "list", "--limit", "0"), " tick ") >= 3
	})
	stands(one, "7200", 2)
	runOn(t, program, one, "reload")
	stands(other, "3600", 3)
	told(other)

	other.Stop()
	redis.Kill()
	redis.Restart()
	testserver.Eventually(t, "the server is ready again", one.Ready)
	stands(one, "3600", 1)
}
