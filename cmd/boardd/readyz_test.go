package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const readyToken = "not-very-secret-1234567890"

// readyz asks a server whether it is ready.
func readyz(t *testing.T, s *testserver.Server) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addr+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error() // it does not listen yet
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // what did not come is missed by whoever reads it
	return answer.StatusCode, string(body)
}

// shut returns the boards that a server has and that are not open.
func shut(t *testing.T, s *testserver.Server) (list []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Addr+"/boardd.v1.BoardService/ListBoards", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+readyToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Boards []struct {
			Name  string
			Ready bool
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || len(got.Boards) == 0 {
		t.Fatalf("ListBoards: %d boards, %v", len(got.Boards), err)
	}
	for _, b := range got.Boards {
		if !b.Ready {
			list = append(list, b.Name)
		}
	}
	return list
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boardd.hcl")
	text = "token \"root\" {\n  roles = [\"operator\", \"viewer\"]\n  secret = \"" + readyToken + "\"\n}\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReadyOnceBoardsAreOpen starts a server with many boards: the first time that it says
// that it is ready, all are open. Where the machine is so loaded that they take longer than
// host.OpeningStart, it says so in its log.
func TestReadyOnceBoardsAreOpen(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("backend \"main\" {\n  driver = \"embedded\"\n}\n")
	for i := range 50 {
		fmt.Fprintf(&text, "board \"board-%d\" {\n  backend = \"main\"\n}\n", i)
	}
	s := testserver.Start(t, testserver.Build(t, "./cmd/boardd"), "", "--config", writeConfig(t, text.String()))
	for start := 1; start <= 3; start++ {
		list := shut(t, s)
		starts := startsOver(t, s)
		if len(starts) != start {
			t.Fatalf("the server was started %d times, and says so %d times:\n%s", start, len(starts), s.Log())
		}
		if most := starts[start-1]; len(list) > most {
			t.Errorf("the server is ready, and %d boards are not open: its log says %d\n%s", len(list), most, s.Log())
		}
		s.Kill()
		s.Restart()
	}
}

// startsOver returns for each time that a server said that its start is over how many boards
// were not open: none unless it had waited for host.OpeningStart.
func startsOver(t *testing.T, s *testserver.Server) (left []int) {
	t.Helper()
	for _, line := range regexp.MustCompile(`msg="the start is over" took=(\S+) .*boards_not_open=(\d+)`).FindAllStringSubmatch(s.Log(), -1) {
		took, err := time.ParseDuration(line[1])
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(line[2])
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && took < host.OpeningStart {
			t.Errorf("after %v the server was ready, and %d boards were not open", took, n)
		}
		left = append(left, n)
	}
	return left
}

const twoStores = `
backend "main" {
  driver = "redis"
  config = { address = %q }
}
backend "spare" {
  driver   = "redis"
  config   = { address = %q }
  required = false
}
board "jobs" {
  backend = "main"
}
board "more" {
  backend = "spare"
}
`

// TestReadyAsStoresGoAndCome takes the stores away from a server that runs, and from one
// that starts.
func TestReadyAsStoresGoAndCome(t *testing.T) {
	t.Parallel()
	main, spare := testserver.StartRedis(t, testserver.RedisOptions{}), testserver.StartRedis(t, testserver.RedisOptions{})
	program, file := withDriver(t, "redis"), writeConfig(t, fmt.Sprintf(twoStores, main.Addr, spare.Addr))
	s := testserver.Start(t, program, "", "--config", file)
	says := func(status int, line string) {
		t.Helper()
		testserver.Eventually(t, fmt.Sprintf("/readyz says %d and %q", status, line), func() bool {
			got, text := readyz(t, s)
			return got == status && strings.Contains(text, line)
		})
	}
	says(http.StatusOK, "ready\n")
	if list := shut(t, s); slices.Contains(list, "jobs") {
		t.Errorf("the server is ready, and %v are not open", list)
	}
	testserver.Eventually(t, "the board that nobody waits for is open too", func() bool { return len(shut(t, s)) == 0 })
	spare.Kill()
	says(http.StatusOK, "the backend spare does not answer: its boards are not served\n")
	gone := time.Now()
	main.Kill()
	says(http.StatusServiceUnavailable, "the backend main does not answer\n")
	if took := time.Since(gone); took < host.FailedAfter {
		t.Errorf("a store was away for %v, and the server is not ready", took)
	}
	if _, text := readyz(t, s); strings.Contains(text, main.Addr) {
		t.Errorf("/readyz tells strangers where the store is:\n%s", text)
	}
	doctor := exec.CommandContext(t.Context(), program, "doctor", "--config", file, "--data", s.Data, "-o", "json")
	out, err := doctor.Output()
	for _, want := range []string{"; a server is not ready without it", "; a server is ready all the same (required = false)"} {
		if err == nil || !strings.Contains(string(out), `"store-does-not-answer"`) || !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q: %v\n%s", want, err, out)
		}
	}
	main.Restart()
	says(http.StatusOK, "ready\n")

	main.Kill()
	s.Stop()
	s.Launch()
	says(http.StatusServiceUnavailable, "the server starts: 0 of 1 boards are open\n")
	main.Restart()
	says(http.StatusOK, "the backend spare does not answer")
	if list := shut(t, s); fmt.Sprint(list) != "[more]" {
		t.Errorf("not open: %v", list)
	}
	spare.Restart()
	testserver.Eventually(t, "both stores are there", func() bool {
		_, text := readyz(t, s)
		return text == "ready\n"
	})
}

// TestReadyBehindASilentProxy has a proxy before PostgreSQL take what is sent, and pass nothing
// on: the server is not ready, calls end with their deadline, and all goes on when the proxy does.
func TestReadyBehindASilentProxy(t *testing.T) {
	t.Parallel()
	postgres := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	proxy := testserver.NewProxy(t, postgres.Addr)
	at := strings.Replace(postgres.URL("postgres"), postgres.Addr, proxy.Addr(), 1)
	config := fmt.Sprintf("backend \"main\" {\n  driver = \"postgres\"\n  config = { url = %q }\n}\nboard \"jobs\" {\n  backend = \"main\"\n}\n", at)
	s := testserver.Start(t, withDriver(t, "postgres"), "", "--config", writeConfig(t, config))
	says := func(status int, line string) {
		t.Helper()
		testserver.Eventually(t, fmt.Sprintf("/readyz says %d and %q", status, line), func() bool {
			got, text := readyz(t, s)
			return got == status && strings.Contains(text, line)
		})
	}
	c, err := client.New(client.Config{Addr: s.Addr, Token: readyToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	post := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c.Board("jobs").Post(ctx, &client.NewJob{Name: "j"})
		return err
	}
	says(http.StatusOK, "ready\n")
	testserver.Eventually(t, "a job is posted", func() bool { return post() == nil })
	proxy.SetDeaf(true)
	if err := post(); err == nil { // it comes back, or the test does not end
		t.Error("a job was posted, though nothing reached the store")
	}
	says(http.StatusServiceUnavailable, "the backend main does not answer\n")
	proxy.SetDeaf(false)
	says(http.StatusOK, "ready\n")
	testserver.Eventually(t, "jobs are posted again", func() bool { return post() == nil })
}
