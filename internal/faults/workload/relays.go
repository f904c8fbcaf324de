package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

// Relays are clients of a board that several servers serve, of which each asks one server at
// a time. Some change the board all the while, each change by a call of its own, so that every
// server hears of many. Others hand one job after another from server to server: posted
// through one, it is waited for at another, by somebody who alone knows its name.
type Relays struct {
	recorder *history.Recorder
	board    string
	servers  []Server
	seed     uint64

	busy context.CancelFunc // ends the changes
	done sync.WaitGroup
}

const (
	// relayWait is how long a job is waited for: longer than it may take, so that one which
	// comes too late is told from one which does not come.
	relayWait = 7 * time.Second

	// stepPause is between two changes of a board, whichever server is asked: there are some
	// hundred a second.
	stepPause = 2 * time.Millisecond

	relayClients = 2
	stillRounds  = 3
	changers     = 2 // of each server
	busyJob      = "busy"
	atOnce       = 20 // jobs that are taken away by one call
)

// NewRelays asks for nothing yet. There have to be two servers at least.
func NewRelays(recorder *history.Recorder, board string, servers []Server, seed uint64) *Relays {
	return &Relays{recorder: recorder, board: board, servers: servers, seed: seed}
}

// Run hands on jobs until ctx ends. The board goes on being changed until Rest.
func (r *Relays) Run(ctx context.Context) {
	busy, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.busy = stop
	for _, s := range r.servers {
		for range changers {
			r.done.Go(func() { r.change(busy, s) })
		}
	}
	var group sync.WaitGroup
	for n := range relayClients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(r.seed, uint64(2000+n))) //nolint:gosec // a run that can be made again
			for i := 0; ctx.Err() == nil; i++ {
				from := random.IntN(len(r.servers))
				to := (from + 1 + random.IntN(len(r.servers)-1)) % len(r.servers)
				r.hand(context.WithoutCancel(ctx), fmt.Sprint("relay-", n), r.servers[from], r.servers[to])
				_ = sleep.For(ctx, 20*time.Millisecond) // the end of ctx is seen by the next turn
			}
		})
	}
	group.Wait()
}

// Rest goes on for a while when nothing is broken any more. Then a job is handed on from each
// server to each other one, at the same time while the board is changed, and one after the
// other when it is not, so that nothing else tells a server to look.
//
// Where Run was not called it does nothing.
func (r *Relays) Rest(ctx context.Context, while time.Duration) error {
	if r.busy == nil {
		return nil
	}
	err := sleep.For(ctx, while)
	var group sync.WaitGroup
	var missed atomic.Bool
	hand := func(from, to Server) {
		if !missed.Load() && !r.hand(ctx, "at rest", from, to) {
			missed.Store(true) // once is enough: the others would be waited for as long
		}
	}
	r.pairs(func(from, to Server) { group.Go(func() { hand(from, to) }) })
	group.Wait()
	r.busy()
	r.done.Wait()
	for range stillRounds {
		r.pairs(hand)
	}
	return err
}

func (r *Relays) pairs(do func(from, to Server)) {
	for _, from := range r.servers {
		for _, to := range r.servers {
			if from.Name != to.Name {
				do(from, to)
			}
		}
	}
}

// change posts jobs through a server, one by each call, and takes them away, until ctx ends. It
// rests for as long as it was waited for at least: where much else runs on the machine, servers
// are not asked for more changes than they can hear of besides.
func (r *Relays) change(ctx context.Context, s Server) {
	board, pause := s.Client.Board(r.board), stepPause*time.Duration(changers*len(r.servers))
	for n := 1; ctx.Err() == nil; n++ {
		begun := time.Now()
		_, err := board.Post(ctx, &client.NewJob{Uuid: client.NewUUID(), Name: busyJob})
		if err == nil && n%atOnce == 0 {
			var claims []*client.Claim
			claims, err = board.Claim(ctx, client.ClaimOptions{Owner: "busy", Names: []string{busyJob}, Max: atOnce, Lease: time.Minute, RequestID: client.NewUUID()})
			if len(claims) > 0 {
				err = board.Consume(ctx, claims...)
			}
		}
		if err != nil {
			_ = sleep.For(ctx, 50*time.Millisecond) // the end of ctx is seen by the loop
		}
		_ = sleep.For(ctx, max(pause, time.Since(begun)))
	}
}

// hand posts a job through one server, waits for it at another and reports whether it came.
// Nothing is written down where the servers do not say what became of it.
func (r *Relays) hand(ctx context.Context, name string, from, to Server) bool {
	id := client.NewUUID()
	name += " " + id // what was left by an earlier one is not taken for this one
	if !insist(ctx, func() error {
		_, err := from.Client.Board(r.board).Post(ctx, &client.NewJob{Uuid: id, Name: name})
		return err
	}) {
		return false
	}
	relay := history.Relay{Job: id, From: from.Name, To: to.Name, Ready: r.recorder.Now().At, Wait: relayWait, Got: history.Forever}
	o := client.ClaimOptions{Owner: "relay", Names: []string{name}, Lease: time.Minute, Wait: relayWait, RequestID: client.NewUUID()}
	var claims []*client.Claim
	if !insist(ctx, func() (err error) {
		relay.Asked = r.recorder.Now().At
		claims, err = to.Client.Board(r.board).Claim(ctx, o) // again by the same name where an answer was lost
		return err
	}) {
		return false
	}
	if len(claims) > 0 {
		relay.Got = r.recorder.Now().At
		_ = to.Client.Board(r.board).Consume(ctx, claims...) // else it stays, and is in nobody's way
	}
	r.recorder.Change(func(h *history.History) { h.Relays = append(h.Relays, relay) })
	return len(claims) > 0
}
