package stores

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// op sends a new op, with what goes wrong with it. Its step is changed.
func (w *world) op(s *simulation.Step) error {
	c := &s.Choices
	c[cJob] = w.suited(s)
	if s.Fault == "edge" && !w.edge(int(c[cJob]), c[cHow]%2, c[cEdge]) {
		return nil
	}
	if s.Fault == "window-edge" && !w.edge(0, 2, c[cEdge]) {
		return nil
	}
	op := w.invent(s)
	switch s.Fault {
	case "stale-token":
		if len(w.issued[c[cJob]]) < 2 && c[cEdge] > 0 {
			return nil
		}
		if op.Precondition = driver.HeldByToken; c[cEdge] == 0 {
			op.Token = w.token(int(c[cJob])+1, 0) // another job's
		} else {
			op.Token = w.token(int(c[cJob]), 1)
		}
	case "limit-edge":
		w.limitEdge(&op, c)
	}
	w.done = append(w.done, op)
	if len(w.done) > memory {
		w.done = w.done[1:]
	}
	host := int(c[cHost])
	if err := w.land(host); err != nil {
		return err
	}
	w.rec.See(s.Do, s.Fault)
	switch s.Fault {
	case "lost-before":
		if w.rec.Telling() {
			w.rec.Tell("  lost on the way: %s", describe(&op))
		}
		return nil
	case "lost-after":
		return w.send(host, &op, false)
	case "repeated":
		if err := w.send(host, &op, true); err != nil {
			return err
		}
		return w.send(1-host, &op, true)
	case "other-request":
		if err := w.send(host, &op, true); err != nil {
			return err
		}
		op.Request = w.random16()
		return w.send(host, &op, true)
	}
	switch {
	case w.inner != nil:
		return w.sendInside(s, host, &op)
	case s.Fault == "disk":
		return w.sendToDisk(c, &op)
	}
	return w.send(host, &op, true)
}

// sendInside is send with what can only go wrong between a decision and its commit.
func (w *world) sendInside(s *simulation.Step, host int, op *driver.Op) error {
	c := &s.Choices
	switch s.Fault {
	case "overlap":
		w.flights[host] = w.inner.begin(host, copyOp(op))
		if w.rec.Telling() {
			w.rec.Tell("  decided by host %d: %s", host, describe(op))
		}
		return nil
	case "other-host":
		f := w.inner.begin(host, copyOp(op))
		if err := w.other(1-host, int(c[cJob]), c[cEdge]); err != nil {
			return err
		}
		return w.finish(f, op, true)
	case "jump":
		f := w.inner.begin(host, copyOp(op))
		w.inner.Jump()
		return w.finish(f, op, true)
	case "clock-step":
		f := w.inner.begin(host, copyOp(op))
		w.inner.skew += []time.Duration{-time.Hour, time.Second, time.Hour}[c[cEdge]]
		return w.finish(f, op, true)
	case "late":
		f := w.inner.begin(host, copyOp(op))
		w.edge(int(c[cJob]), c[cHow]%2, 1+c[cEdge]%2)
		return w.finish(f, op, true)
	case "crash-before":
		w.inner.begin(host, copyOp(op))
		return w.crash()
	case "crash-after":
		if err := w.send(host, op, false); err != nil {
			return err
		}
		return w.crash()
	}
	return w.send(host, op, true)
}

// other has the other host change the job in between.
func (w *world) other(host, n int, how uint8) error {
	op := driver.Op{Kind: driver.Update, Job: jobID(n), Request: w.random16(), Hold: &driver.Hold{}}
	switch how {
	case 1:
		op.Kind, op.Hold = driver.Release, nil
	case 2:
		op = driver.Op{Kind: driver.Claim, Request: op.Request, Claim: &driver.ClaimSpec{
			Owner: "eve", Lease: job.MinLease, Count: 1, Candidates: []driver.Candidate{{Job: jobID(n), Nonce: w.random16()}},
		}}
	}
	return w.send(host, &op, true)
}

// send has an op carried out, and checks the answer. told: the host gets it, too.
func (w *world) send(host int, op *driver.Op, told bool) error {
	sent := copyOp(op)
	r := w.store.Apply(host, sent)
	scribble(sent)
	return w.answered(op, &r, told)
}

// finish commits an op that was decided.
func (w *world) finish(f *flight, op *driver.Op, told bool) error {
	r := w.inner.commit(f)
	scribble(f.op)
	return w.answered(op, &r, told)
}

// land commits the op that a host has under way.
func (w *world) land(host int) error {
	f := w.flights[host]
	if f == nil {
		return nil
	}
	w.flights[host] = nil
	return w.finish(f, copyOp(f.op), true)
}

func (w *world) answered(op *driver.Op, r *driver.Result, told bool) error {
	if w.rec.Telling() {
		w.rec.Tell("  %s: %s", describe(op), tell(r))
	}
	w.rec.Note(uint64(r.Kind), r.Version, uint64(r.Position), uint64(len(r.Claims)), uint64(len(r.Skipped)), uint64(r.At.UnixNano()))
	if r.Repeated {
		w.rec.See("repeated", opNames[op.Kind])
	}
	for _, f := range w.flights {
		if f != nil {
			w.rec.See(opNames[f.op.Kind]+" under way", opNames[op.Kind])
		}
	}
	w.rec.See(opNames[op.Kind], r.Kind.String())
	if err := w.book.Answered(op, r); err != nil {
		return fmt.Errorf("%s: %w", describe(op), err)
	}
	for i := range r.Claims {
		n := r.Claims[i].Job[1]
		if known := w.issued[n]; told && (len(known) == 0 || known[len(known)-1] != r.Claims[i].Token) {
			w.issued[n] = append(known, r.Claims[i].Token)
		}
	}
	return nil
}

// again sends one of the last ops again, as a host does that got no answer.
func (w *world) again(s *simulation.Step) error {
	if len(w.done) == 0 {
		return nil
	}
	op := w.done[len(w.done)-1-int(s.Choices[cHow])%len(w.done)]
	host := int(s.Choices[cHost])
	if err := w.land(host); err != nil {
		return err
	}
	switch s.Fault {
	case "window-edge":
		if !w.edge(0, 2, s.Choices[cEdge]) {
			return nil
		}
	case "other-request":
		op.Request = w.random16()
	case "other-job":
		if op.Kind == driver.Post || op.Kind == driver.Claim {
			return nil
		}
		op.Job = jobID(int(op.Job[1]) + 1)
	}
	if op.Claim != nil {
		w.renew(&op)
	}
	w.rec.See(s.Do, s.Fault)
	return w.send(host, &op, true)
}

// renew gives new nonces to the candidates of a claim that comes again although its
// claimant has used the answer: a host repeats only what it has no answer to. A token
// is recognised by its nonce when it ends a claim, so that another claim with that
// nonce would take the place of the ending.
func (w *world) renew(op *driver.Op) {
	spec := *op.Claim
	spec.Candidates = slices.Clone(spec.Candidates)
	for i := range spec.Candidates {
		c := &spec.Candidates[i]
		if slices.ContainsFunc(w.book.deeds, func(d *deed) bool { return endsByToken(&d.op) && d.op.Token.Nonce == c.Nonce }) {
			c.Nonce = w.random16()
		}
	}
	op.Claim = &spec
}

// open opens the board again: with other bounds, or by a host that remembers more than
// the store has.
func (w *world) open(s *simulation.Step) error {
	spec := w.book.spec
	switch extra := s.Choices[cExtra]; {
	case w.disk != nil:
		spec = lasting()
	case extra == 1:
		spec.MaxTombstones = 3
	case extra == 2:
		spec.MaxFinals = 1
	case extra == 3:
		spec.MaxFinalBytes = 20
	case extra == 4:
		spec.Window = 10 * time.Second
	case extra == 5:
		first := firstSpec()
		spec.MaxTombstones, spec.MaxFinals, spec.MaxFinalBytes, spec.Window = first.MaxTombstones, first.MaxFinals, first.MaxFinalBytes, first.Window
	}
	spec.Witness, spec.Seen = w.witness, w.book.position
	want, loss := w.book.generation, false
	switch s.Fault {
	case "seen-ahead":
		spec.Seen = w.position() + 1
		want, loss = want+1, true
	case "no-witness":
		spec.Witness = nil
	case "other-store":
		spec.Witness = append([]byte{w.witness[0] + 1}, w.witness[1:]...)
		want, loss = want+1, true
	}
	w.rec.See(s.Do, s.Fault)
	return w.reopen(spec, want, loss)
}

// reopen opens the board and compares what is said of it. loss: it has to be said that
// changes were lost, in the generation want.
func (w *world) reopen(spec driver.BoardSpec, want uint64, loss bool) error {
	lapse := want != w.book.generation
	status, err := w.store.Open(spec)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	w.rec.Tell("  open with %d tombstones, seen %d: generation %d, %s", spec.MaxTombstones, spec.Seen, status.Generation, status.Loss)
	if status.Generation != want || (status.Loss != "") != loss {
		return fmt.Errorf("the board opens in generation %d with the loss %q: want %d, and a loss: %v", status.Generation, status.Loss, want, loss)
	}
	if status.Window != spec.Window {
		return fmt.Errorf("the window is %v, want %v", status.Window, spec.Window)
	}
	if ahead := w.doubt && status.Position > w.book.position; status.Position != w.book.position && w.inner == nil && !ahead {
		if !loss || w.disk == nil || status.Position < w.book.position {
			return fmt.Errorf("the board is at position %d, want %d", status.Position, w.book.position)
		}
		w.book.position = status.Position // a new generation begins behind what was seen
	}
	w.witness, w.opened = status.Witness, status.Position
	w.book.Open(spec, lapse, want)
	if !lapse {
		return nil
	}
	return w.rescanAll()
}

var opNames = map[driver.OpKind]string{
	driver.Post: "post", driver.Claim: "claim", driver.Extend: "extend", driver.Update: "update", driver.Release: "release",
	driver.Remove: "remove", driver.Trash: "trash", driver.Restore: "restore", driver.Purge: "purge",
}

// describe is an op for people.
func describe(op *driver.Op) string {
	switch op.Kind {
	case driver.Post:
		return fmt.Sprintf("post job %d, digest %d, limits %v", op.Job[1], op.Posting.Digest[0], op.Limits)
	case driver.Claim:
		var b strings.Builder
		fmt.Fprintf(&b, "%s claims %d of", op.Claim.Owner, op.Claim.Count)
		for _, c := range op.Claim.Candidates {
			fmt.Fprintf(&b, " job %d (version %d, limits %v)", c.Job[1], c.Version, c.Limits)
		}
		fmt.Fprintf(&b, " for %v, remembered %v, more %v", op.Claim.Lease, op.Claim.Remember, op.Claim.More)
		return b.String()
	}
	text := fmt.Sprintf("%s job %d, precondition %d", opNames[op.Kind], op.Job[1], op.Precondition)
	if !op.Token.IsZero() {
		text += fmt.Sprintf(", token %d.%d", op.Token.Generation, op.Token.Epoch)
	}
	if op.Owner != "" {
		text += " of " + op.Owner
	}
	if op.Version != 0 {
		text += fmt.Sprintf(", version %d", op.Version)
	}
	if op.Hold != nil {
		text += fmt.Sprintf(", hold %+v", *op.Hold)
	}
	return text
}
