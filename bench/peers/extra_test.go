package peers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// besideTaskFlow has TaskFlow, as a conductor does, go through a board on Redis and take
// what it gets, until the board is empty.
func besideTaskFlow(t *testing.T, redis *testserver.Redis, n int) string {
	t.Helper()
	port, err := strconv.Atoi(redis.Addr[strings.LastIndexByte(redis.Addr, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	python := testserver.StartTaskFlow(t).Connect("peers", testserver.Args{"board": "redis", "host": "127.0.0.1", "port": port, "namespace": "peers"}, 0)
	began := time.Now()
	for range n {
		python.Post("bench", testserver.Args{"details": map[string]any{"p": string(stamped(began))}})
	}
	posted := time.Since(began)
	began = time.Now()
	var done int
	if err := python.On("drain", testserver.Args{"who": "bench"}, &done); err != nil || done != n {
		t.Fatalf("TaskFlow did %d jobs of %d: %v", done, n, err)
	}
	return fmt.Sprintf("TaskFlow on Redis, one conductor and %s jobs: %s enqueued in a second and %s worked.",
		rate(float64(n)), rate(float64(n)/posted.Seconds()), rate(float64(n)/time.Since(began).Seconds()))
}

// behind measures 64 handlers while so many jobs wait that they do not come to.
func behind(t *testing.T, peers []*peer, n int) []string {
	t.Helper()
	var lines []string
	for _, one := range peers {
		began := time.Now()
		for left := n; left > 0; left -= 100_000 {
			if err := one.Post(t.Context(), payloads(min(left, 100_000))); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(began)
		done := make(chan struct{}, n)
		stop, err := one.Work(64, func([]byte) { done <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		<-done
		began = time.Now()
		const some = 10_000
		for range min(some, n-1) {
			<-done
		}
		worked := float64(min(some, n-1)) / time.Since(began).Seconds()
		lines = append(lines, fmt.Sprintf("%s on %s behind %s jobs: %s enqueued in a second, and the first %s worked at %s a second.",
			one.name, one.what, rate(float64(n)), rate(float64(n)/took.Seconds()), rate(some), rate(worked)))
		stop()
	}
	return lines
}

// byTurns has peers empty a queue of n jobs, each with so many handlers, by turns and for as
// long as more says. It returns the rates of each.
func byTurns(t *testing.T, peers []*peer, handlers, n int, more func(turn int) bool) [][]float64 {
	t.Helper()
	worked := make([][]float64, len(peers))
	for turn := 0; more(turn); turn++ {
		for i := range peers {
			k := (i + turn) % len(peers) // who comes first was last before
			_, rate, err := emptied(t.Context(), peers[k], handlers, n)
			if err != nil {
				t.Fatalf("%s, %d handlers, turn %d: %v", peers[k].name, handlers, turn, err)
			}
			worked[k] = append(worked[k], rate)
		}
	}
	return worked
}

// withMany measures the first peer and the second one with very many handlers.
func withMany(t *testing.T, p *plan, peers []*peer, handlers, turns int) string {
	t.Helper()
	n := handlers * p.each
	byTurns(t, peers, handlers, n, func(turn int) bool { return turn < 1 }) // everything is warm then
	worked := byTurns(t, peers, handlers, n, func(turn int) bool { return turn < turns })
	one, other := median(worked[0]), median(worked[1])
	return fmt.Sprintf("On %s with %s handlers and %s jobs: %s works %s in a second and %s %s, a ratio of %.2f (medians of %d turns).",
		peers[0].what, rate(float64(handlers)), rate(float64(n)), peers[0].name, rate(one), peers[1].name, rate(other), one/other, turns)
}
