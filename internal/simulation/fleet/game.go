package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/internal/simulation"
)

// small is the fleet of the game.
var small = Size{Servers: 5, Spare: 3, Tenants: 60, Boards: 6000, Reads: 2 * time.Second}

// settleFor is how long a fleet with which nothing is wrong any more may take until all is
// as it should be: a server that was gone often counts after fleet.MostWait.
const settleFor = 400 * time.Second

// Game is a small fleet with a flaw.
func Game(flaw Flaw) *simulation.Game {
	action := func(name string, weight int, faults ...string) simulation.Action {
		return simulation.Action{Name: name, Weight: weight, Most: []uint8{8, 30}, Faults: faults}
	}
	boards := names(small)
	return &simulation.Game{
		Name: "fleet", Length: 24,
		Actions: []simulation.Action{
			action("pass", 10),
			action("kill", 4, "another", "most"),
			action("start", 6, "another", "all"),
			action("stop", 3, "another", "most"),
			action("drain", 2, "undo"),
			action("pause", 4, "another", "all"),
			action("cut", 4, "store", "deaf", "mute", "dumb", "unheard"),
			action("slow", 2),
			action("heal", 5),
			action("silence", 3),
			action("call", 6),
			action("settle", 2),
		},
		Open: func(rec *simulation.Recorder) simulation.World {
			w := newWorld(rec, small, boards, flaw)
			w.tables.whole = true
			return w
		},
	}
}

// Close ends nothing: nothing runs by itself.
func (w *world) Close() {}

// Step takes one step of a program.
func (w *world) Step(step *simulation.Step) error {
	w.rec.See(step.Do, step.Fault)
	n := int(step.Choices[0])
	d := time.Duration(1+step.Choices[1]) * time.Second
	if step.Do != "pass" && step.Do != "call" {
		w.trouble = w.now
	}
	if err := w.do(step, n, d); err != nil {
		return err
	}
	if err := w.pass(time.Second + d/4); err != nil {
		return err
	}
	w.note()
	return nil
}

func (w *world) do(step *simulation.Step, n int, d time.Duration) error {
	switch step.Do {
	case "pass":
		return w.pass(d)
	case "kill":
		w.some(n, step.Fault, func(s *server) { s.end() })
	case "start":
		w.some(n, step.Fault, func(s *server) { w.restart(s, "one") })
	case "stop":
		w.some(n, step.Fault, func(s *server) { w.stop(s) })
	case "drain":
		return w.drain(w.servers[n%len(w.servers)], step.Fault == "undo")
	case "pause":
		w.some(n, step.Fault, func(s *server) { s.paused = w.now.Add(20 * time.Second) })
	case "cut":
		w.cut(w.servers[n%len(w.servers)], step.Fault)
	case "slow":
		w.servers[n%len(w.servers)].slow = true
	case "heal":
		w.heal(w.servers[n%len(w.servers)])
	case "silence":
		w.store.silent = true
		err := w.pass(d)
		w.store.silent, w.trouble = false, w.now
		return err
	case "call":
		return w.callSome(n, 50)
	case "settle":
		return w.settle()
	}
	return nil
}

// some does something to a server, two, most of them or all.
func (w *world) some(n int, how string, do func(*server)) {
	count := map[string]int{"": 1, "another": 2, "most": len(w.servers) - 2, "all": len(w.servers)}[how]
	for i := range count {
		do(w.servers[(n+i)%len(w.servers)])
	}
}

// restart begins a server that does not run.
func (w *world) restart(s *server, version string) {
	if !s.up {
		s.start(version)
	}
}

// stop tells a server to end.
func (w *world) stop(s *server) {
	if s.up && !s.draining {
		s.draining, s.ends = true, w.now.Add(drainFor)
	}
}

// drain has an operator drain a server, by a word of another one.
func (w *world) drain(s *server, undo bool) error {
	for _, by := range w.servers {
		if by.healthy() && s.member != nil {
			return by.member.Drain(context.Background(), s.member.Boot(), undo)
		}
	}
	return nil
}

func (w *world) cut(s *server, what string) {
	switch what {
	case "", "store":
		s.way.cut = true
	case "deaf":
		s.way.deaf = true
	case "mute":
		s.way.mute = true
	case "dumb":
		s.dumb = true
	case "unheard":
		s.unheard = true
	}
}

func (w *world) heal(s *server) {
	s.way.cut, s.way.deaf, s.way.mute, s.dumb, s.unheard, s.slow = false, false, false, false, false, false
}

// callSome makes calls at servers that are well, and checks that those are served which can
// be.
func (w *world) callSome(from, count int) error {
	for i := range count {
		b := int32((from*1009 + i*7919) % len(w.boards))
		s := w.servers[(from+i)%len(w.servers)]
		if !s.healthy() || s.table == nil {
			continue
		}
		a := s.call(b)
		w.rec.Note(uint64(a.took), uint64(len(a.err)))
		if a.took > 2*hangs+openLast {
			return fmt.Errorf("a call of the board %v at %s took %s", w.boards[b], s.id, a.took)
		}
	}
	return nil
}

// settle mends everything, and checks that the fleet is as it should be after a while.
func (w *world) settle() error {
	for _, s := range w.servers {
		w.heal(s)
		if s.member != nil && !s.draining {
			if err := w.drain(s, true); err != nil {
				return err
			}
		}
	}
	if err := w.pass(drainFor + 2*time.Second); err != nil {
		return err
	}
	for _, s := range w.servers {
		w.restart(s, "one")
	}
	if err := w.pass(settleFor); err != nil {
		return err
	}
	return w.settled()
}

// note takes down how the fleet is.
func (w *world) note() {
	for _, s := range w.servers {
		w.rec.Note(uint64(len(s.held)), uint64(len(s.wanted)), uint64(len(s.queue)))
		for n, live := range s.live {
			if live {
				w.rec.Note(uint64(n))
			}
		}
		w.rec.Tell("  %s: up %v serves %v, sees %v, has %d boards, %d to open", s.id, s.up, s.serving, s.live, len(s.held), len(s.wanted)+len(s.queue))
	}
}
