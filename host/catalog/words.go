package catalog

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// wordSpace is where hosts say which boards they serve: a document for each place that is
// served, named as the place's in locationSpace is, which is gone when nobody serves a
// board there. So a board that opens costs the same however many are open.
const wordSpace = "hosts-boards"

// said is what a host says of a board at a place. It counts as long as the host's own
// document names the same run.
type said struct {
	Host     string            `json:"host"`
	Run      string            `json:"run"`
	Board    string            `json:"board"` // with its tenant
	Settings map[string]string `json:"settings"`
}

// by reports whether one of these hosts says it, which live.
func (s *said) by(hosts []Host) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.ID == s.Host && h.Run == s.Run && !h.old() })
}

// words is the document of a place.
type words struct {
	Location string `json:"location"` // for people
	Said     []said `json:"said"`
}

// Bounds on what a round asks of the store.
const (
	owedAtOnce = 256 // places that are brought in line beside those that callers ask for
	passes     = 50  // over a document that other hosts change at the same time
)

// word is what a caller wants to be said of a board. One without a key asks for those to
// be said that are owed.
type word struct {
	location string
	key      string            // of the location
	board    string            // with its tenant
	settings map[string]string // nil: it is served no more

	others map[string]map[string]string // how the other hosts serve it that do
	err    error
}

// Serve registers how this host serves the board at a location, and returns how the
// other hosts that serve it do. Of two hosts that begin at the same moment, at least one
// sees the other. Calls for many boards at the same time are dealt with together.
func (p *Presence) Serve(ctx context.Context, l Location, use Use) (map[string]map[string]string, error) {
	w := &word{location: l.text, key: l.key(), board: use.name(), settings: use.Settings}
	if w.settings == nil {
		w.settings = map[string]string{}
	}
	if err := p.rounds.join(ctx, w); err != nil {
		return nil, err
	}
	return w.others, w.err
}

// Leave says that this host serves the board at a location no more. Where that fails, Run
// tries it again.
func (p *Presence) Leave(ctx context.Context, l Location, use Use) error {
	w := &word{location: l.text, key: l.key(), board: use.name()}
	if err := p.rounds.join(ctx, w); err != nil {
		return err
	}
	return w.err
}

// round says several words at once.
func (p *Presence) round(ctx context.Context, asked []*word) {
	pages := p.take(asked)
	hosts, err := p.bring(ctx, slices.Collect(maps.Values(pages)))
	for _, w := range asked {
		page := pages[w.key]
		if page == nil {
			continue
		}
		w.err, w.others = cmp.Or(err, page.err), map[string]map[string]string{}
		for _, o := range page.others {
			if o.Board == w.board {
				w.others[o.Host] = o.Settings
			}
		}
		for _, h := range hosts {
			if settings, ok := h.served(w.key, w.board); ok {
				w.others[h.ID] = settings
			}
		}
	}
}

// take notes what is to be said from now on, and returns the documents that it concerns.
func (p *Presence) take(asked []*word) map[string]*page {
	p.mu.Lock()
	defer p.mu.Unlock()
	pages, more := map[string]*page{}, 0
	for _, w := range asked {
		if w.key == "" {
			more = owedAtOnce
			continue
		}
		p.add(w)
		p.owed[w.key] = true
		pages[w.key] = &page{key: w.key, location: w.location}
		p.stale = p.stale || p.older // which have to find it in the host's own document
	}
	for key := range p.owed {
		if more == 0 {
			break
		}
		if pages[key] == nil {
			pages[key], more = &page{key: key}, more-1
		}
	}
	return pages
}

// add puts a word in the place of what was said of the same board. It is called with mu
// held.
func (p *Presence) add(w *word) {
	list := slices.Clone(p.said[w.key])
	switch n := slices.IndexFunc(list, func(o *word) bool { return o.board == w.board }); {
	case n >= 0 && w.settings == nil:
		list = slices.Delete(list, n, n+1)
	case n >= 0:
		list[n] = w
	case w.settings != nil:
		list = append(list, w)
	}
	if len(list) == 0 {
		delete(p.said, w.key)
		return
	}
	p.said[w.key] = list
}

// owes returns how many documents may not be as they should.
func (p *Presence) owes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.owed)
}

// page is the document of a place while a round is at it.
type page struct {
	key, location string
	doc           driver.Document
	words         words  // of it
	others        []said // of hosts that live, by what was written last
	err           error  // Aborted: it was changed meanwhile
}

// bring makes the documents of places say what this host has to say of them, and returns
// the hosts that live. A document is read before the hosts are: who says something in it
// has said before that it lives. It is written over the version that was read, so that of
// two hosts which begin at the same moment the later one has read what the first one says.
func (p *Presence) bring(ctx context.Context, pages []*page) (hosts []Host, err error) {
	for range passes {
		if len(pages) == 0 {
			return hosts, nil
		}
		if err := p.current(ctx); err != nil {
			return nil, err
		}
		each(pages, func(g *page) { g.read(ctx, p.docs) })
		if hosts, err = p.Hosts(ctx); err != nil {
			return nil, err
		}
		run, ok := p.ready(hosts)
		if !ok {
			continue
		}
		each(pages, func(g *page) {
			if g.err == nil {
				p.write(ctx, g, run, hosts)
			}
		})
		pages = slices.DeleteFunc(pages, func(g *page) bool { return job.KindOf(g.err) != job.Aborted })
	}
	for _, g := range pages {
		g.err = job.Errorf(job.Aborted, "what the hosts of the store say is changed all the time")
	}
	return hosts, nil
}

// ready returns the run whose words may be said: not before the hosts that live are told in
// the form that they know, and this one is among them.
func (p *Presence) ready(hosts []Host) (run string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	older := slices.ContainsFunc(hosts, func(h Host) bool { return h.old() && h.ID != p.self.ID })
	mine := slices.ContainsFunc(hosts, func(h Host) bool { return h.ID == p.self.ID && h.Run == p.self.Run })
	if ok = mine && (p.older || !older); !ok {
		p.older, p.stale = p.older || older, true
	}
	return p.self.Run, ok
}

// read reads the document. What cannot be read as words is nobody's.
func (g *page) read(ctx context.Context, docs driver.Documents) {
	g.doc, g.err = docs.Get(ctx, driver.Space{Name: wordSpace}, g.key)
	if job.KindOf(g.err) == job.NotFound {
		g.doc, g.err = driver.Document{Name: g.key}, nil
	}
	if g.words = (words{}); g.err == nil {
		g.words, g.err = readWords(&g.doc)
	}
}

// readWords decodes the document of a place. The error is for one of a newer form.
func readWords(doc *driver.Document) (found words, err error) {
	if doc.Version == 0 {
		return words{}, nil
	}
	if err = decode(*doc, &found); job.KindOf(err) == job.Corrupt {
		return words{}, nil
	}
	return found, err
}

// write makes the document say what this host has to say, and drops what hosts said that
// are gone.
func (p *Presence) write(ctx context.Context, g *page, run string, hosts []Host) {
	g.others = slices.DeleteFunc(g.words.Said, func(s said) bool { return s.Host == p.self.ID || !s.by(hosts) })
	next := words{Location: cmp.Or(g.words.Location, g.location), Said: slices.Clone(g.others)}
	p.mu.Lock()
	for _, w := range p.said[g.key] {
		next.Location = w.location
		next.Said = append(next.Said, said{Host: p.self.ID, Run: run, Board: w.board, Settings: w.settings})
	}
	p.mu.Unlock()
	wrote, err := writeWords(ctx, p.docs, &g.doc, next)
	g.err = err
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.self.Run != run {
		return // those words count no more
	}
	delete(p.owed, g.key)
	if wrote {
		p.fresh[g.key] = true
	}
}

// writeWords writes over the document of a place what hosts say of it now, if that is
// something else. It reports whether it did.
func writeWords(ctx context.Context, docs driver.Documents, doc *driver.Document, next words) (bool, error) {
	slices.SortFunc(next.Said, func(a, b said) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Board, b.Board)) })
	switch {
	case len(next.Said) > 0:
		data, err := encode(next)
		if err != nil || bytes.Equal(data, doc.Data) {
			return false, err
		}
		_, err = docs.Put(ctx, driver.Space{Name: wordSpace}, driver.Document{Name: doc.Name, Data: data}, doc.Version)
		return true, err
	case doc.Version != 0:
		err := docs.Delete(ctx, driver.Space{Name: wordSpace}, doc.Name, doc.Version)
		return true, ignore(err, job.NotFound)
	}
	return false, nil
}
