package orders

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const hosts = 2

// What the choices of a step are for.
const (
	cJob   = iota
	cHost  // that does it
	cHow   // whatever the action has to choose
	cMany  // how many
	cLease // how long
	cClass // of the worker
)

var most = []uint8{cJob: jobs, cHost: hosts, cHow: 12, cMany: 4, cLease: 4, cClass: 4}

var leases = []time.Duration{time.Second, 10 * time.Second, 0, time.Minute}

// A world is a board and its hosts.
type world struct {
	rec    *simulation.Recorder
	board  *board
	backup *board
	hosts  [hosts]*host
	flaw   Flaw
}

// Game is the game of the index, with a flaw.
func Game(flaw Flaw) *simulation.Game {
	g := &simulation.Game{Name: "index", Length: 60, Open: func(rec *simulation.Recorder) simulation.World {
		w := &world{rec: rec, board: newBoard(), flaw: flaw}
		for i := range w.hosts {
			w.hosts[i] = newHost(flaw)
		}
		return w
	}}
	add := func(name string, weight int, faults ...string) {
		g.Actions = append(g.Actions, simulation.Action{Name: name, Weight: weight, Most: most, Faults: faults})
	}
	own := []string{"answer-late", "answer-lost", "edge"}
	add("post", 10, "answer-late", "answer-lost")
	add("claim", 10, append(own, "refused")...)
	add("extend", 3, own...)
	add("release", 5, own...)
	add("update", 5, own...)
	add("end", 5, own...)
	add("watch", 12, "twice", "swapped")
	add("answer", 6)
	add("sync", 3, "reset")
	add("bring", 8)
	add("forget", 3)
	add("return", 3)
	add("again", 2)
	add("tick", 4)
	add("pass", 3)
	add("rank", 3)
	add("order", 2)
	add("settle", 3)
	add("back-up", 1)
	add("put-back", 1)
	return g
}

// Close has nothing to end.
func (w *world) Close() {}

// Step takes a step and compares each index with its reference.
func (w *world) Step(s *simulation.Step) error {
	if err := w.do(s); err != nil {
		return err
	}
	for i, h := range w.hosts {
		if err := h.compare(); err != nil {
			return fmt.Errorf("host %d: %w", i, err)
		}
		for _, k := range h.m.jobs {
			w.rec.Note(uint64(k.ID[1]), uint64(k.Position), uint64(k.place))
		}
	}
	return nil
}

func (w *world) do(s *simulation.Step) error {
	h, id := w.hosts[s.Choices[cHost]], jobID(int(s.Choices[cJob]))
	how, many := s.Choices[cHow], int(s.Choices[cMany])
	saw := true
	var err error
	switch s.Do {
	case "watch":
		saw, err = w.follow(h, many, s.Fault)
	case "answer":
		saw, err = w.answer(h)
	case "sync":
		h.begin(w.board, s.Fault == "reset")
	case "bring":
		if saw = h.sync != nil; saw {
			err = h.bring(w.board, 1+many)
		}
	case "forget":
		h.forget()
	case "return":
		h.giveBack(id)
	case "again":
		saw = h.again(id)
	case "tick":
		err = w.tick(h)
	case "pass":
		time.Sleep([]time.Duration{1, time.Second, 4 * time.Second, time.Minute}[many])
		err = w.tickAll()
	case "rank":
		saw, err = h.rank(id, classes[s.Choices[cClass]])
	case "order":
		h.order(how%uint8(len(scores)), how%uint8(len(ranks)))
	case "settle":
		err = w.settle()
	case "back-up":
		w.backup = w.board.copy()
	case "put-back":
		if saw = w.backup != nil; saw {
			w.board = w.backup.copy()
			for _, h := range w.hosts {
				h.begin(w.board, true)
			}
		}
	default:
		saw, err = w.op(h, s)
	}
	if saw {
		w.rec.See(s.Do, s.Fault)
	}
	return err
}

// op is a change of the board by a host.
func (w *world) op(h *host, s *simulation.Step) (saw bool, err error) {
	id := w.suited(s)
	if s.Fault == "edge" && !w.edge(id, s.Choices[cHow]) {
		return false, nil
	}
	if s.Do == "claim" {
		return true, w.claim(h, s)
	}
	e := w.board.open[id]
	var c change
	lease := leases[s.Choices[cLease]]
	switch {
	case s.Do == "post" && e == nil:
		c = w.board.post(int(id[1]), s.Choices[cHow])
	case e == nil || s.Do == "post":
		return false, nil
	case s.Do == "extend" && e.Claim != nil:
		c = w.board.extend(id, lease)
	case s.Do == "release" && e.Claim != nil:
		c = w.board.write(id, func(e *index.Entry) { e.Claim, e.NotBefore = nil, time.Now().Add(lease).UTC() })
	case s.Do == "update":
		c = w.board.write(id, func(e *index.Entry) {
			e.Priority, e.Held = job.Priority(s.Choices[cHow]%3)-1, s.Choices[cHow]%4 == 3
			if lease == 0 {
				e.NotBefore = time.Time{}
			}
		})
	case s.Do == "end":
		c = w.board.end(id)
	default:
		return false, nil
	}
	w.rec.Tell("  job %d, position %d", id[1], c.position)
	return true, w.told(h, c, s.Fault)
}

// suited returns the job of a step, or the next one that the op can be done with.
func (w *world) suited(s *simulation.Step) job.ID {
	for n := range jobs {
		id := jobID(int(s.Choices[cJob]) + n)
		e := w.board.open[id]
		switch s.Do {
		case "post":
			if e == nil {
				return id
			}
		case "extend", "release":
			if e != nil && e.Claim != nil {
				return id
			}
		default:
			if e != nil {
				return id
			}
		}
	}
	return jobID(int(s.Choices[cJob]))
}

// told gives a host the answer to its op: now, later, or never, so that the watch brings
// the change first.
func (w *world) told(h *host, c change, fault string) error {
	switch fault {
	case "answer-late":
		h.late = append(h.late, c)
	case "answer-lost":
	default:
		return h.hear(c, true)
	}
	return nil
}

// edge moves time to the end of a lease or a delay, a moment before it, or after it.
func (w *world) edge(id job.ID, side uint8) bool {
	e := w.board.open[id]
	if e == nil {
		return false
	}
	at := e.NotBefore
	if e.Claim != nil && !e.Claim.NoExpiry {
		at = e.Claim.Ends
	}
	d := time.Until(at)
	if at.IsZero() || d <= 1 {
		return false
	}
	time.Sleep(d + time.Duration(side%3) - 1)
	return w.tickAll() == nil
}

// claim takes what the host believes to be free and asks the board for it.
func (w *world) claim(h *host, s *simulation.Step) error {
	taken, err := h.take(classes[s.Choices[cClass]], 1+int(s.Choices[cMany]))
	if err != nil {
		return err
	}
	w.rec.Tell("  takes %v", numbers(taken))
	for _, e := range taken {
		w.rec.Note(uint64(e.ID[1]))
		switch {
		case s.Fault == "refused":
			h.giveBack(e.ID)
		case w.board.claimable(e):
			err = w.told(h, w.board.claim(e.ID, leases[s.Choices[cLease]]), s.Fault)
		case w.board.open[e.ID] != nil: // the refusal shows the job
			is := *w.board.open[e.ID]
			err = h.put(&is)
			h.giveBack(e.ID)
		default:
			h.giveBack(e.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow brings the next lines of the log to a host.
func (w *world) follow(h *host, many int, fault string) (bool, error) {
	next := w.board.log[h.read:]
	next = next[:min(len(next), 1+many)]
	switch {
	case fault == "swapped":
		if len(next) < 2 || next[0].id == next[1].id {
			return false, nil
		}
		next = append([]change{next[1], next[0]}, next[2:]...)
	case fault == "twice":
		from := max(0, h.read-2)
		for from < h.read && w.board.log[from].position <= h.passed {
			from++
		}
		if from == h.read {
			return false, nil
		}
		h.read = from
		next = w.board.log[from:min(len(w.board.log), from+2+many)]
	case len(next) == 0:
		return false, nil
	}
	h.read += len(next)
	for _, c := range next {
		w.rec.Tell("  hears of job %d, position %d", c.id[1], c.position)
		if err := h.hear(c, false); err != nil {
			return true, err
		}
	}
	return true, nil
}

// answer gives a host the oldest answer that was late.
func (w *world) answer(h *host) (bool, error) {
	if len(h.late) == 0 {
		return false, nil
	}
	c := h.late[0]
	h.late = h.late[1:]
	w.rec.Tell("  answer for job %d, position %d", c.id[1], c.position)
	return true, h.hear(c, true)
}

// forget says that nothing comes any more up to where the watch is. Only an answer that
// amends what the index knew may.
func (h *host) forget() {
	var upTo driver.Position
	if h.read > 0 {
		upTo = driver.Position(h.read) // the log has one line for each
	}
	for _, c := range h.late {
		if c.entry == nil || c.entry.Version == 1 {
			upTo = min(upTo, c.position-1)
		}
	}
	h.passed = max(h.passed, upTo)
	if h.flaw == ForgetsTooMuch {
		upTo += 5
	}
	h.ix.Forget(upTo)
}
