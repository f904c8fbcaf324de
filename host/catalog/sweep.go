package catalog

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Words that nobody has come across are taken out sweepAfter the death of their host:
// others may be about to die, too, as where a fleet is stopped. What that does not come to
// an end within sweepWithin is begun again.
const (
	sweepAfter  = time.Minute
	sweepWithin = 10 * time.Minute
)

// sweeping says when the words of hosts that are gone have to be looked for. Of the hosts
// that live only the first one does so. What was left by hosts that died while nobody
// looked is found by who comes next.
type sweeping struct {
	due   time.Time         // zero: there is nothing to look for
	first bool              // this host is the one to do it
	runs  map[string]string // of the hosts that lived the last time
}

// look takes over who lives, in the order of their names.
func (s *sweeping) look(hosts []Host, self string) {
	runs := map[string]string{}
	for _, h := range hosts {
		if !h.old() {
			runs[h.ID] = h.Run
		}
	}
	for id, run := range s.runs {
		if runs[id] != run {
			s.due = time.Now().Add(sweepAfter)
		}
	}
	n := slices.IndexFunc(hosts, func(h Host) bool { return !h.old() })
	s.runs, s.first = runs, n >= 0 && hosts[n].ID == self
}

// sweepDue reports whether this host has to sweep now, and for what time it is.
func (p *Presence) sweepDue() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sweep
	return s.due, s.first && !s.due.IsZero() && !time.Now().Before(s.due)
}

// swept notes that it was done.
func (p *Presence) swept(due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweep.due.Equal(due) { // else somebody has died meanwhile
		p.sweep.due = time.Time{}
	}
}

// sweepWords takes what hosts said that are gone out of the documents of all places.
func sweepWords(ctx context.Context, docs driver.Documents) error {
	return listWords(ctx, docs, "", "", func(list []driver.Document) error {
		hosts, err := Hosts(ctx, docs) // after the words, as bring does
		if err != nil {
			return err
		}
		pages := make([]*page, len(list))
		for i, doc := range list {
			pages[i] = &page{doc: doc}
		}
		each(pages, func(g *page) { g.sweep(ctx, docs, hosts) })
		for _, g := range pages {
			if err := ignore(g.err, job.Aborted, job.Precondition); err != nil { // who changed it has dropped them; one of a newer form is left alone
				return err
			}
		}
		return nil
	})
}

func (g *page) sweep(ctx context.Context, docs driver.Documents, hosts []Host) {
	if g.words, g.err = readWords(&g.doc); g.err != nil {
		return
	}
	g.words.Said = slices.DeleteFunc(g.words.Said, func(s said) bool { return !s.by(hosts) })
	_, g.err = writeWords(ctx, docs, &g.doc, g.words)
}
