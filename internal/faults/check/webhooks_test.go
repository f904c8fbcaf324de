package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
)

// told is a webhook of three jobs: the first one went to the trash and was consumed, and its
// receiver refused once and lost an answer; of the second one the webhook wants nothing, and of
// the last one nobody knows.
func told() history.Webhook {
	return history.Webhook{
		Name: "all", Types: []string{"job.ended", "job.trashed"},
		Jobs: []history.Life{
			{Job: a, Tells: []string{"job.trashed", "job.ended CONSUMED"}},
			{Job: b, Tells: []string{"job.exhausted"}},
			{Job: c, Tells: []string{"job.trashed"}, Unsure: true},
		},
		Requests: []history.Request{
			{ID: "1", Job: a, Tells: "job.trashed", Signed: true, From: 1},
			{ID: "1", Job: a, Tells: "job.trashed", Signed: true, From: 2, To: 3},
			{ID: "1", Job: a, Tells: "job.trashed", Signed: true, From: 4, To: 5},
			{ID: "2", Job: a, Tells: "job.ended CONSUMED", Signed: true, From: 6, To: 7},
			{ID: "3", Job: c, Tells: "job.ended CONSUMED", Signed: true, From: 8},
		},
	}
}

// TestWebhooksOfAGap: that a job went to the trash, and left it again, may be missed where its
// board's changes were not known one by one, or be told late; all else is told as ever, and what
// stays in the trash.
func TestWebhooksOfAGap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change           func(*history.Webhook)
		moved, elsewhere bool // what is found on a board whose changes were not known one by one, and on another
	}{
		"that it went to the trash is missed": {func(w *history.Webhook) { w.Requests = w.Requests[3:] }, false, true},
		"that comes late": {func(w *history.Webhook) {
			w.Requests = append(w.Requests[3:], history.Request{ID: "1", Job: a, Tells: "job.trashed", Signed: true, From: 9, To: 10})
		}, false, true},
		"that it ended is missed": {func(w *history.Webhook) { w.Requests = append(w.Requests[:3:3], w.Requests[4]) }, true, true},
		"that it ended is told by two requests": {func(w *history.Webhook) {
			w.Requests = append(w.Requests, history.Request{ID: "4", Job: a, Tells: "job.ended CONSUMED", Signed: true, From: 9, To: 10})
		}, true, true},
		"that it went to the trash is missed, where it stays": {func(w *history.Webhook) {
			w.Jobs[0].Tells, w.Jobs[0].Left, w.Requests = w.Jobs[0].Tells[:1], false, w.Requests[4:]
		}, true, true},
	} {
		driver := []history.Fault{{Name: "driver killed", Begin: 1, End: 2}}
		for what, gap := range map[string]struct {
			history history.History
			is      bool
		}{
			"nothing else":                   {history.History{Store: "redis"}, false},
			"the board moved":                {history.History{Store: "moving", Moves: []history.Move{{Board: "told", To: "there", Begin: 1, End: 2, State: "MOVED"}}}, true},
			"a driver ended on ZooKeeper":    {history.History{Store: "zookeeper", Faults: driver}, true},
			"one ended there a minute later": {history.History{Store: "zookeeper", Faults: []history.Fault{{Name: "driver killed", Begin: time.Minute, End: time.Minute}}}, false},
			"a driver ended on Redis":        {history.History{Store: "redis", Faults: driver}, false},
		} {
			h, w := good(), told()
			w.Board, w.Jobs[0].Left = "told", true
			c.change(&w)
			h.Store, h.Moves, h.Faults, h.Webhooks = gap.history.Store, gap.history.Moves, gap.history.Faults, []history.Webhook{w}
			if want := gap.is && c.moved || !gap.is && c.elsewhere; finds(h, "webhooks") != want {
				t.Errorf("%s, and %s: found %v, want %v", name, what, !want, want)
			}
		}
	}
}

// TestWebhooks changes what a receiver was told, and has the checker complain.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want   string // empty: nothing
		change func(*history.Webhook)
	}{
		{"", func(*history.Webhook) {}},
		{"request 2, \"job.ended CONSUMED\", is not signed", func(w *history.Webhook) { w.Requests[3].Signed = false }},
		{"it was told [\"job.trashed\"], and [\"job.trashed\" \"job.ended CONSUMED\"] happened", func(w *history.Webhook) { w.Requests = w.Requests[:3] }},
		{"it was told [], and", func(w *history.Webhook) { w.Requests = nil }},
		{"it refused \"job.ended CONSUMED\", and was not told again", func(w *history.Webhook) { w.Requests[3].To = 0 }},
		{"\"job.ended CONSUMED\" was told before \"job.trashed\" had been taken", func(w *history.Webhook) { w.Requests[1].To, w.Requests[2].To = 7, 0 }},
		{"was told before", func(w *history.Webhook) { w.Requests[1].To, w.Requests[2].To = 0, 0 }},
		{"\"job.ended CONSUMED\" \"job.trashed\"], and", func(w *history.Webhook) {
			w.Requests = append(w.Requests, history.Request{ID: "4", Job: a, Tells: "job.trashed", Signed: true, From: 9, To: 10})
		}},
		{"it was told [\"job.exhausted\"], and [] happened", func(w *history.Webhook) {
			w.Requests = append(w.Requests, history.Request{ID: "4", Job: b, Tells: "job.exhausted", Signed: true, From: 9, To: 10})
		}},
		{"request 1 told \"job.trashed\", and told \"job.ended CONSUMED\" later", func(w *history.Webhook) { w.Requests[1].Tells = "job.ended CONSUMED" }},
		{"was told \"job.ended CONSUMED\" of a job that nobody posted", func(w *history.Webhook) { w.Jobs = w.Jobs[:2] }},
	} {
		h, w := good(), told()
		tt.change(&w)
		h.Webhooks = []history.Webhook{w}
		problems := check.Run(h)
		switch {
		case tt.want == "" && len(problems) > 0:
			t.Errorf("nothing is wrong, and the checkers say %v", problems)
		case tt.want != "" && (len(problems) != 1 || problems[0].Checker != "webhooks" || !strings.Contains(problems[0].Text, tt.want)):
			t.Errorf("the checkers say %v, want that %s", problems, tt.want)
		}
	}
}
