package history

import (
	"slices"
	"strings"
	"time"
)

// Webhook is an address that was told of a board, and every request that came there.
type Webhook struct {
	Name     string    `json:"name"`
	Board    string    `json:"board,omitempty"` // that it was told of
	Types    []string  `json:"types"`           // that it wants to be told of
	Jobs     []Life    `json:"jobs"`            // of the board, of which nobody else knew
	Requests []Request `json:"requests"`
}

// Life is what became of a job on a board with webhooks.
type Life struct {
	Job   string   `json:"job"`
	Tells []string `json:"tells"` // the type of each event, and the outcome of one that ended it, in order

	Begin time.Duration `json:"begin,omitempty"` // of its post

	// Left says that the job has left the trash again, into which it went by the first event.
	Left bool `json:"left,omitempty"`

	// Unsure says that somebody gave up on the job, so that more may have happened, or less.
	Unsure bool `json:"unsure,omitempty"`
}

// Request is one that came to a webhook.
type Request struct {
	ID     string `json:"id"` // as it says itself
	Job    string `json:"job,omitempty"`
	Tells  string `json:"tells,omitempty"` // the type, and the outcome if it has one
	Signed bool   `json:"signed"`          // as Standard Webhooks says
	From   int64  `json:"from"`            // when it had come, in the order of all ends
	To     int64  `json:"to,omitempty"`    // when its receiver had it, before that was answered; 0: it refused
}

// Wanted returns what the webhook is to be told of a job, without that it went to the trash, if it
// has left that again.
func (w *Webhook) Wanted(l *Life) (tells []string) {
	return w.wanted(l.Tells[min(len(l.Tells), l.passed()):])
}

// Passing returns what the webhook is to be told of that the job went to the trash, if it has left
// that again. Where a server can't go through the changes one by one, as after a move of the board,
// it does not see that any more.
func (w *Webhook) Passing(l *Life) (tells []string) {
	return w.wanted(l.Tells[:min(len(l.Tells), l.passed())])
}

func (l *Life) passed() int {
	if l.Left {
		return 1
	}
	return 0
}

func (w *Webhook) wanted(all []string) (tells []string) {
	for _, told := range all {
		kind, _, _ := strings.Cut(told, " ")
		if slices.Contains(w.Types, kind) {
			tells = append(tells, told)
		}
	}
	return tells
}
