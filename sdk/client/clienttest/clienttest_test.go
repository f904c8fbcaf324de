package clienttest_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client/clienttest"
)

func check(t *testing.T, h clienttest.Harness) map[string]string {
	t.Helper()
	problems := make(map[string]string)
	h.Env = os.Environ()
	h.Server = testserver.Build(t, "./cmd/boardd")
	if err := clienttest.Check(t.Context(), h, func(f clienttest.Finding) { problems[f.Check] = f.Problem }); err != nil {
		t.Fatal(err)
	}
	return problems
}

func TestGo(t *testing.T) {
	t.Parallel()
	worker := testserver.Build(t, "./sdk/client/clienttest/testdata/worker")
	problems := check(t, clienttest.Harness{Command: []string{worker}})
	if len(problems) != len(clienttest.Names()) {
		t.Errorf("%d checks were made, want %d", len(problems), len(clienttest.Names()))
	}
	for name, problem := range problems {
		if problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestWrong: a worker that is wrong is found.
func TestWrong(t *testing.T) {
	t.Parallel()
	const short = 12 * time.Second
	worker := testserver.Build(t, "./sdk/client/clienttest/testdata/worker")
	for _, test := range []struct {
		command  []string
		check    string
		want     string
		patience time.Duration
	}{
		{[]string{worker, "deaf"}, "canceled", "did not print \"over", short},
		{[]string{worker, "deaf"}, "stopped", "did not print \"over", short},
		{[]string{worker, "twice"}, "unknown", "began 2 times", short},
		{[]string{worker, "alone"}, "elsewhere", "are not consumed", 0},
		{[]string{worker, "patient"}, "elsewhere", "is to be asked at /healthz", 0},
		{[]string{worker, "stays"}, "straight", "did not go to where", short},
		{[]string{worker, "trusting"}, "straight", "such a one is to be left out", 0},
		{[]string{worker, "patient"}, "straight", "where /healthz does not answer with 200", 0},
		{[]string{"false"}, "lost", "ended with code 1", short},
		{[]string{"false"}, "endings", "return", short},
		{[]string{"no-such-program"}, "cut", "not found", short},
	} {
		t.Run(strings.Join(append(test.command[len(test.command)-1:], test.check), " "), func(t *testing.T) {
			t.Parallel()
			problems := check(t, clienttest.Harness{Command: test.command, Only: []string{test.check}, Patience: test.patience})
			if len(problems) != 1 || !strings.Contains(problems[test.check], test.want) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
	if err := clienttest.Check(t.Context(), clienttest.Harness{Only: []string{"no"}}, nil); err == nil || !strings.Contains(err.Error(), "there is no check") {
		t.Errorf("got %v", err)
	}
}
