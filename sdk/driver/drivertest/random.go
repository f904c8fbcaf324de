package drivertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

var randomChecks = []check{{name: "random/programs", run: randomPrograms}, {name: "random/killed", run: randomKilled}}

const (
	defaultPrograms = 24
	programSteps    = 60
	programJobs     = 4
)

// randomPrograms runs random programs on the driver and on memdriver, and
// compares what they say after each step. Each op is decided a third time by what the
// driver says of the job before.
func randomPrograms(e *env) {
	seed := e.suite.harness.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	programs := e.suite.harness.Programs
	if programs == 0 {
		programs = defaultPrograms
	}
	for i := range uint64(programs) {
		random := rand.New(rand.NewPCG(seed+i, 0))
		if trouble := e.program(random.IntN, programSteps); trouble != "" {
			e.Errorf("a random program, found again with Seed: %d and Programs: 1: %s", seed+i, trouble)
			return
		}
	}
}

// A twin is one thing as the driver under test has it, and as memdriver has it.
type twin[V any] struct{ subject, model V }

// A character is a job of a program and all that is known of it.
type character struct {
	posting  *driver.Posting
	tokens   []twin[job.Token]
	versions []twin[uint64]
}

// A play is a program while it runs.
type play struct {
	*env
	choose func(n int) int // what happens next: a number below n
	model  driver.Driver
	cast   []*character
	done   []twin[driver.Op] // for retries
	script []string

	problems []string // that Decided found
}

// program runs steps steps, and returns the first difference.
func (e *env) program(choose func(int) int, steps int) string {
	e.Helper()
	p, end := e.play(choose)
	defer end()
	p.driver = &Decided{Driver: e.driver, Report: func(problem string) { p.problems = append(p.problems, problem) }}
	return p.run(steps)
}

// play makes a program that has not begun.
func (e *env) play(choose func(int) int) (p *play, end func()) {
	e.Helper()
	model, err := memdriver.Open(e.Context(), driver.Config{})
	if err != nil {
		e.Fatalf("memdriver: %v", err)
	}
	if _, err := model.OpenBoard(e.Context(), driver.BoardSpec{Name: e.name}); err != nil {
		e.Fatalf("memdriver: %v", err)
	}
	own := *e
	p = &play{env: &own, choose: choose, model: model}
	for range programJobs {
		p.cast = append(p.cast, &character{posting: posting("job of a program")})
	}
	return p, func() { _ = model.Close() } // it only ends streams
}

func (p *play) run(steps int) string {
	for i := range steps {
		if trouble := p.step(); trouble != "" {
			return fmt.Sprintf("step %d: %s\nthe last steps were:\n  %s", i+1, trouble, strings.Join(p.script[max(0, len(p.script)-12):], "\n  "))
		}
	}
	return ""
}

// step takes one step and compares.
func (p *play) step() string {
	if p.suite.bubble && p.choose(12) == 0 {
		p.script = append(p.script, "wait until a short lease has run out")
		p.lapse()
		return p.compareJobs()
	}
	var ops twin[driver.Op]
	if len(p.done) > 0 && p.choose(6) == 0 {
		ops = p.done[p.choose(len(p.done))]
	} else {
		ops = p.invent()
		ops.subject.Request = random16()
		ops.model.Request = ops.subject.Request
		p.done = append(p.done, ops)
	}
	subject := p.apply(ops.subject)[0]
	model := p.model.Apply(p.Context(), p.name, []driver.Op{ops.model})[0]
	if i, ok := p.driver.(*insistent); ok && i.untold && subject.Repeated && !model.Repeated {
		model = p.model.Apply(p.Context(), p.name, []driver.Op{ops.model})[0] // it was done, and nobody was told
	}
	p.script = append(p.script, p.tell(&ops.subject)+": "+outcome(&model)+" "+goneKinds(model.Skipped))
	if trouble := p.compareResults(&ops.subject, &subject, &model); trouble != "" {
		return trouble
	}
	if len(p.problems) > 0 {
		return p.problems[0]
	}
	for i := range subject.Claims {
		c := p.character(subject.Claims[i].Job)
		c.tokens = append(c.tokens, twin[job.Token]{subject.Claims[i].Token, model.Claims[i].Token})
	}
	return p.compareJobs()
}

func (p *play) character(id job.ID) *character {
	for _, c := range p.cast {
		if c.posting.ID == id {
			return c
		}
	}
	p.Fatalf("the driver answered about job %v, which nobody asked for", id)
	return nil
}

// tell describes a step for people.
func (p *play) tell(op *driver.Op) string {
	var text strings.Builder
	text.WriteString(describe(op))
	for i, c := range p.cast {
		if op.Job == c.posting.ID || op.Posting != nil && op.Posting.ID == c.posting.ID {
			text.WriteString(" of job " + itoa(uint64(i)))
		}
		if op.Claim == nil {
			continue
		}
		for _, candidate := range op.Claim.Candidates {
			if candidate.Job == c.posting.ID {
				fmt.Fprintf(&text, " of job %d at version %d", i, candidate.Version)
			}
		}
	}
	for _, c := range p.cast {
		for n, t := range c.tokens {
			if op.Token == t.subject {
				text.WriteString(" with its token " + itoa(uint64(n)))
			}
		}
	}
	if op.Owner != "" {
		text.WriteString(" by " + op.Owner)
	}
	if op.Version != 0 {
		text.WriteString(" at version " + itoa(op.Version))
	}
	return text.String()
}

// compareResults says how the driver's answer differs from memdriver's.
func (p *play) compareResults(op *driver.Op, subject, model *driver.Result) string {
	switch {
	case subject.Kind != model.Kind || subject.Repeated != model.Repeated || subject.Taken != model.Taken:
		return fmt.Sprintf("%s: got %v, want %v", p.tell(op), outcome(subject), outcome(model))
	case (model.Kind == job.NotOwner || model.Kind == job.AlreadyClaimed) && subject.Owner != model.Owner:
		return fmt.Sprintf("%s: names owner %q, want %q", p.tell(op), subject.Owner, model.Owner)
	case len(subject.Claims) != len(model.Claims) || len(subject.Skipped) != len(model.Skipped):
		return fmt.Sprintf("%s: got %d claims and passed over %s, want %d and %s",
			p.tell(op), len(subject.Claims), goneKinds(subject.Skipped), len(model.Claims), goneKinds(model.Skipped))
	}
	for i, want := range model.Claims {
		if got := subject.Claims[i]; got.Job != want.Job || got.Token.Nonce != want.Token.Nonce {
			return fmt.Sprintf("%s: claim %d is of job %v, want %v, with the same nonce", p.tell(op), i, got.Job, want.Job)
		}
	}
	for i, want := range model.Skipped {
		if got := subject.Skipped[i]; got.Job != want.Job || got.Kind != want.Kind || got.Owner != want.Owner && want.Kind == job.AlreadyClaimed {
			return fmt.Sprintf("%s: candidate %d was passed over as %v (%q), want %v (%q)", p.tell(op), i, got.Kind, got.Owner, want.Kind, want.Owner)
		}
	}
	return ""
}

// forget has no op retried that names a version of a job which is gone: once it is posted
// again, that version may be the new job's on one store and not on the other.
func (p *play) forget(id job.ID) {
	p.done = slices.DeleteFunc(p.done, func(ops twin[driver.Op]) bool {
		op := &ops.subject
		return op.Job == id && op.Version != 0 || op.Claim != nil && slices.ContainsFunc(op.Claim.Candidates, func(c driver.Candidate) bool {
			return c.Job == id && c.Version != 0
		})
	})
}

// compareJobs says how the jobs differ.
func (p *play) compareJobs() string {
	const parts = driver.Details | driver.Attached | driver.FinalData
	ids := make([]job.ID, len(p.cast))
	for i, c := range p.cast {
		ids[i] = c.posting.ID
	}
	subject, err := p.driver.Read(p.Context(), p.name, ids, parts)
	if err != nil || len(subject) != len(ids) {
		return fmt.Sprintf("Read: %d records, %v", len(subject), err)
	}
	model, err := p.model.Read(p.Context(), p.name, ids, parts)
	if err != nil {
		return fmt.Sprintf("memdriver: %v", err)
	}
	for i, c := range p.cast {
		if diff := meaning(&model[i], &subject[i]); diff != "" {
			return fmt.Sprintf("job %d is not what it should be: %s", i, diff)
		}
		if n := len(c.versions); model[i].State != job.Unknown {
			now := twin[uint64]{subject[i].Version, model[i].Version}
			if n > 0 && (c.versions[n-1].subject == now.subject) != (c.versions[n-1].model == now.model) {
				return fmt.Sprintf("job %d is at version %d, after %d: want it changed: %v",
					i, now.subject, c.versions[n-1].subject, c.versions[n-1].model != now.model)
			}
			if n == 0 || c.versions[n-1] != now {
				c.versions = append(c.versions, now)
			}
		} else {
			c.versions = nil // purged: a job that is posted again begins anew
			p.forget(c.posting.ID)
		}
	}
	return ""
}
