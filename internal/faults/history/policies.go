package history

import (
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// The calls about a board's policy. Only the first two change what the board asks.
const (
	Promote      Call = "promote"
	Rollback     Call = "rollback"
	PutPolicy    Call = "put policy"
	DeletePolicy Call = "delete policy"
	Shadow       Call = "shadow"
	Explain      Call = "explain" // which rule the server that is asked goes by
)

// Rule is what one promotion of a policy lets the board go by. Each promotion has a
// number of its own, above 0.
type Rule struct {
	Serial   int64  `json:"serial"`
	Kept     string `json:"kept,omitempty"`     // the team whose jobs only its own workers get
	Reversed bool   `json:"reversed,omitempty"` // the lowest rank comes first, and not the highest
}

// Everybody is the team of workers from whom no job is kept.
const Everybody = "all"

// Allows says whether the rule lets a worker of a team have a job of a team.
func (r Rule) Allows(worker, of string) bool {
	return r.Kept == "" || r.Kept != of || worker == of || worker == Everybody
}

// PolicyCall is a call about a board's policy.
type PolicyCall struct {
	Client string        `json:"client"`
	Call   Call          `json:"call"`
	Board  string        `json:"board"`
	Server string        `json:"server"`
	From   int64         `json:"from"`
	To     int64         `json:"to"`
	Begin  time.Duration `json:"begin"`
	End    time.Duration `json:"end"`

	Rule Rule `json:"rule,omitzero"` // that is promoted

	Outcome Outcome  `json:"outcome"`
	Kind    job.Kind `json:"kind,omitempty"`
	Text    string   `json:"text,omitempty"`
	Shown   int64    `json:"shown,omitempty"` // the number of the rule that the answer shows in force; 0: none
	Final   bool     `json:"final,omitempty"` // made after everything had come to rest
}

// AddPolicyCall keeps a call that began at a moment and has ended now.
func (r *Recorder) AddPolicyCall(from Mark, c PolicyCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.now()
	c.From, c.Begin, c.To, c.End = from.Order, from.At, to.Order, to.At
	if c.Outcome == Unknown {
		c.To, c.End = int64(Forever), Forever
	}
	r.history.Policies = append(r.history.Policies, c)
}
