package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/job"
)

// Grant is a claim that was given a job.
type Grant struct {
	At  time.Time
	By  string // the worker's labels, and the names and filter of the claim
	Job job.ID
}

// Grants returns what claims are given by some policies.
func Grants(ctx context.Context, lines iter.Seq2[recording.Line, error], rules board.Rules) (list []Grant, err error) {
	t, err := read(lines, time.Time{})
	if err != nil {
		return nil, err
	}
	s := newSim(t, rules)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	for i := range t.events {
		e := &t.events[i]
		if e.kind != claims {
			continue
		}
		g := Grant{At: time.Unix(0, e.at).UTC()}
		if e.taker >= 0 {
			w := t.takers[e.taker]
			g.By = fmt.Sprint(w.worker, w.names, w.filter)
		}
		if n := s.served[e.slot].job; n >= 0 {
			g.Job = s.as[s.jobs[n].as].order.ID
		}
		list = append(list, g)
	}
	return list, nil
}
