// Package clienttest judges a worker, in whatever language, by what a server sees of it
// and by what it prints, while connections break, answers are lost and the server dies.
//
// The worker is a program. It finds its server in BOARDD_ADDR, BOARDD_TOKEN and
// BOARDD_BOARD, has three handlers, and asks for no lease of its own. BOARDD_ADDR may be
// several addresses with commas between them. A handler prints "begin UUID" when it
// starts, and goes by the name of its job:
//
//   - return: it returns
//   - trash, retry, fail: it has the job set aside; given back with the attempt refunded;
//     given back
//   - busy: it returns after 4 seconds
//   - hold: the first time that this process sees the job it goes on until it is told to
//     stop, prints "over UUID WHY", and fails; after that, it returns. WHY is LOST, CANCEL,
//     TIMEOUT or STOP
//
// SIGTERM stops the worker, which ends with code 0 then, and with another one when the
// server refuses it for good.
package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

// A Harness says what is judged, and against which server.
type Harness struct {
	Server  string   // boardd's program
	Command []string // the worker's
	Env     []string // its environment, beside what it finds its server by
	Only    []string // only these checks; absent: all

	// Patience is for how long something may take to come about; 0: 45 s. It says nothing of
	// how long it should.
	Patience time.Duration
}

// A Finding is the outcome of one check. Problem is empty where all is well.
type Finding struct {
	Check, Problem string
}

// lease is that of the board: long enough for a busy machine, and short enough to wait for.
const lease = 3 * time.Second

// check is one thing that is tried.
type check struct {
	name string
	try  func(ctx context.Context, s *stage) error
}

// Names returns the names of all checks, in their order.
func Names() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// atOnce is how many checks are made at the same time: they wait more than they work.
const atOnce = 4

// Check makes the checks, each with a server of its own, and reports how they ended, in
// their order.
func Check(ctx context.Context, h Harness, report func(Finding)) error {
	for _, name := range h.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no check %q; want some of %v", name, Names())
		}
	}
	h.Patience = cmp.Or(h.Patience, 45*time.Second)
	wanted := slices.DeleteFunc(slices.Clone(checks), func(c check) bool {
		return len(h.Only) > 0 && !slices.Contains(h.Only, c.name)
	})
	var making sync.WaitGroup
	defer making.Wait()
	room := make(chan struct{}, atOnce)
	results := make([]chan error, len(wanted))
	for i, c := range wanted {
		results[i] = make(chan error, 1)
		making.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			results[i] <- h.try(ctx, c)
		})
	}
	for i, c := range wanted {
		err := <-results[i]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f := Finding{Check: c.name}
		if err != nil {
			f.Problem = err.Error()
		}
		report(f)
	}
	return nil
}

// stage is what one check has: a board, a line to it that may be bad, and the worker.
type stage struct {
	*server
	line    *line
	known   []*line // all that the worker is told of, the first one first
	board   *client.Board
	harness Harness
	worker  *worker
}

func (h Harness) try(ctx context.Context, c check) error {
	ctx, cancel := context.WithTimeout(ctx, 2*h.Patience)
	defer cancel()
	server, err := startServer(ctx, h.Server, h.Patience)
	if err != nil {
		return err
	}
	defer server.remove()
	board, err := server.newBoard(ctx)
	if err != nil {
		return err
	}
	first, err := newLine(server.addr)
	if err != nil {
		return err
	}
	defer first.close()
	stage := &stage{server: server, line: first, known: []*line{first}, board: board, harness: h}
	defer stage.kill()
	if err := c.try(ctx, stage); err != nil {
		return fmt.Errorf("%w%s", err, stage.said())
	}
	return nil
}

// start starts the worker with a token.
func (s *stage) start(token string) error {
	addrs := make([]string, len(s.known))
	for i, l := range s.known {
		addrs[i] = "http://" + l.addr
	}
	w, err := startWorker(s.harness.Command, s.harness.Env, strings.Join(addrs, ","), token, s.board.Name(), s.patience)
	s.worker = w
	return err
}

func (s *stage) kill() {
	if s.worker != nil {
		s.worker.kill()
	}
}

// said is what the worker printed on standard error.
func (s *stage) said() string {
	if s.worker == nil {
		return ""
	}
	if text := s.worker.errors(); text != "" {
		return "\nit said:\n" + text
	}
	return ""
}

// post posts n jobs of a name.
func (s *stage) post(ctx context.Context, name string, n int) ([]string, error) {
	jobs := make([]*client.NewJob, n)
	for i := range jobs {
		jobs[i] = &client.NewJob{Name: name}
	}
	if _, err := s.board.Post(ctx, jobs...); err != nil {
		return nil, err
	}
	uuids := make([]string, n)
	for i, j := range jobs {
		uuids[i] = j.Uuid
	}
	return uuids, nil
}

// until waits until all jobs are so.
func (s *stage) until(ctx context.Context, want string, uuids []string, so func(*client.Job) bool) error {
	end := time.Now().Add(s.patience)
	for {
		left := ""
		jobs, err := s.board.Get(ctx, client.GetOptions{}, uuids...)
		if err != nil {
			return err
		}
		n := 0
		for _, j := range jobs {
			if !so(j) {
				n++
				left = fmt.Sprintf("%s (%s) is %s, attempt %d, outcome %s, %q", j.Uuid, j.Name, j.State, j.Attempt, j.Outcome, j.LastReason)
			}
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d jobs are not %s, such as %s", n, len(jobs), want, left)
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
