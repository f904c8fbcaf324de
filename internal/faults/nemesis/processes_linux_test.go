package nemesis_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/faults/nemesis"
	"github.com/boardd/boardd/internal/testserver"
)

// broken returns a server on a Redis, and one of the faults of its processes.
func broken(t *testing.T, fault string) (*testserver.Server, nemesis.Fault) {
	t.Helper()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	link := testserver.NewProxy(t, redis.Addr)
	config := testserver.CatalogConfig(t, "redis", fmt.Sprintf("address = %q", link.Addr()), "board \"default\" { backend = \"main\" }\n")
	s := testserver.Start(t, testserver.BuildWith(t, []string{"redis"}), "", "--config", config)
	d := &nemesis.Deployment{Servers: []*testserver.Server{s}, Doors: []*testserver.Proxy{testserver.NewProxy(t, strings.TrimPrefix(s.Addr, "http://"))}, Links: []*testserver.Proxy{link}}
	all := nemesis.Faults(d, random())
	i := slices.IndexFunc(all, func(f nemesis.Fault) bool { return f.Name == fault })
	if i < 0 {
		t.Fatalf("there is no %q", fault)
	}
	testserver.Eventually(t, "a job is posted", func() bool { return posts(s, 10) })
	return s, all[i]
}

// posts posts a job with a text of so many bytes.
func posts(s *testserver.Server, size int) bool {
	body := fmt.Sprintf(`{"board": "default", "jobs": [{"name": "x", "details": {"text": %q}}]}`, strings.Repeat("x", size))
	request, err := http.NewRequest(http.MethodPost, s.Addr+"/boardd.v1.BoardService/PostJobs", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+testserver.RootSecret)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"state":"UNCLAIMED"`))
}

// still reports whether a process stands still.
func still(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(text, []byte(") "))
	return bytes.HasPrefix(state, []byte("T"))
}

// TestSlow: a slow process stands still, and goes on, and is not left standing.
func TestSlow(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"server", "driver"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, slow := broken(t, what+" slow")
			pid := s.PID()
			if what == "driver" {
				pid = s.Drivers()[0]
			}
			for range 2 {
				slow.Begin()
				for range 2 {
					testserver.Eventually(t, "it stands still", func() bool { return still(pid) })
					testserver.Eventually(t, "it goes on", func() bool { return !still(pid) })
				}
				if !posts(s, 10) {
					t.Error("what is slow does nothing at all")
				}
				slow.End()
				if still(pid) {
					t.Error("it stands still and nothing is broken")
				}
			}
			if !posts(s, 10) {
				t.Error("no job is posted although nothing is broken")
			}
		})
	}
}

// TestServerWithoutDescriptors: a server that can open nothing takes no connections, and takes
// those that waited once it can.
func TestServerWithoutDescriptors(t *testing.T) {
	t.Parallel()
	s, f := broken(t, "server without file descriptors")
	pid, refused := s.PID(), func() int { return strings.Count(s.Log(), "connections cannot be taken") }
	f.Begin()
	answers := make(chan bool, 4)
	for range cap(answers) {
		go func() { answers <- posts(s, 10) }()
	}
	testserver.Eventually(t, "the server takes no connections", func() bool { return refused() > 0 })
	f.End()
	for range cap(answers) {
		if !<-answers {
			t.Error("a job is not posted although nothing is broken")
		}
	}
	if !s.Running() || s.PID() != pid {
		t.Error("the server has ended")
	}
}

// TestDriverWithoutDescriptors: a driver that can open nothing does not reach its store anew, and
// does once it can.
func TestDriverWithoutDescriptors(t *testing.T) {
	t.Parallel()
	s, f := broken(t, "driver without file descriptors")
	drivers := s.Drivers()
	f.Begin()
	testserver.Eventually(t, "no job can be posted", func() bool {
		if !posts(s, 10) {
			return true
		}
		f.End()
		f.Begin() // what it has closed it may open again, unless it gets nothing at all
		return false
	})
	f.End()
	testserver.Eventually(t, "a job is posted", func() bool { return posts(s, 10) })
	if now := s.Drivers(); !slices.Equal(now, drivers) {
		t.Errorf("the drivers were %v, and are %v", drivers, now)
	}
}

// TestServerWithoutMemory: a server that gets no memory ends, and runs again.
func TestServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s, f := broken(t, "server without memory")
	f.Begin()
	testserver.Eventually(t, "the server has ended", func() bool {
		posts(s, 100_000)
		return !s.Running()
	})
	if log := s.Log(); !strings.Contains(log, "out of memory") && !strings.Contains(log, "cannot allocate memory") {
		t.Errorf("the server has ended, and not since it got no memory:\n%s", log)
	}
	f.End()
	testserver.Eventually(t, "a job is posted", func() bool { return posts(s, 10) })
}

// TestDriverWithoutMemory: a driver that gets no memory ends, and another one takes its place.
func TestDriverWithoutMemory(t *testing.T) {
	t.Parallel()
	s, f := broken(t, "driver without memory")
	drivers := s.Drivers()
	f.Begin()
	testserver.Eventually(t, "the driver has ended", func() bool {
		posts(s, 100_000)
		return !slices.Equal(s.Drivers(), drivers)
	})
	f.End()
	testserver.Eventually(t, "a job is posted", func() bool { return posts(s, 10) })
}
