package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/stay"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// hostSpace is where the hosts of a store register that they run.
const hostSpace = "hosts"

// A host says every renewEvery that it lives, and counts as gone presentFor after
// its last word, by the clock of the store: longer where that is ahead.
const (
	renewEvery = 15 * time.Second
	presentFor = 45 * time.Second
)

// wordsForm is the form of what a host says that has a document for each place that it
// serves. Hosts before it say all of it in their own document.
const wordsForm = 2

// Host is what a host says of itself.
type Host struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Form    int       `json:"form,omitempty"`
	Run     string    `json:"run,omitempty"` // which of its words count; one that has lapsed never comes back

	// What it says of boards, by the keys of their locations, in the form before
	// wordsForm. A host of this form says it as well while one of that form lives.
	Boards map[string]map[string]string `json:"boards,omitempty"`
	Names  map[string][]string          `json:"names,omitempty"` // which boards these are; more than one while their place is at issue
}

// old reports whether the host knows no words but those in hosts' own documents.
func (h *Host) old() bool { return h.Form < wordsForm }

// served returns how a host of the old form serves a board, if it does. One before names
// were said may mean any board.
func (h *Host) served(key, board string) (map[string]string, bool) {
	settings, ok := h.Boards[key]
	return settings, ok && h.old() && (len(h.Names[key]) == 0 || slices.Contains(h.Names[key], board))
}

// Presence says in one store that this host lives and which boards it serves, and knows
// who else does. That it lives is in a document of its own, which it renews. What it says
// of boards is in the documents of their places, see words, and counts as long as that
// one lives.
type Presence struct {
	docs   driver.Documents
	logger *slog.Logger
	rounds *rounds[*word]

	saying sync.Mutex // is held while the host's own document is written

	mu    sync.Mutex // guards what follows
	self  Host
	known uint64             // the version of the host's document as it was written last; 0: never
	at    time.Time          // when that was
	lost  bool               // a try to write it may have gone through
	stale bool               // it has to be written before anything else
	older bool               // a host of the old form lives
	stays stay.Stay          // the host's document
	said  map[string][]*word // of the boards that are served, by their locations' keys, the first one first
	owed  map[string]bool    // places whose documents may not say so
	fresh map[string]bool    // places whose documents were written since the host's own was
	sweep sweeping
}

// NewPresence returns a presence that Run keeps up.
func NewPresence(docs driver.Documents, self Host, logger *slog.Logger) *Presence {
	self.Since, self.Form, self.Run = now(), wordsForm, newID()
	p := &Presence{
		docs: docs, logger: logger, self: self, stays: stay.For(presentFor),
		said: map[string][]*word{}, owed: map[string]bool{}, fresh: map[string]bool{},
		sweep: sweeping{due: time.Now().Add(sweepAfter)},
	}
	p.rounds = newRounds(p.round)
	return p
}

// Run keeps saying that the host lives, until ctx ends, and then that it is gone.
func (p *Presence) Run(ctx context.Context) {
	var chores sync.WaitGroup
	due := make(chan struct{}, 1)
	chores.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-due:
				p.chores(ctx)
			case <-ctx.Done():
			}
		}
	})
	for {
		saying, cancel := context.WithTimeout(ctx, presentFor)
		err := p.renew(saying)
		if cancel(); err != nil && ctx.Err() == nil {
			p.logger.Warn("other hosts cannot be told that this one lives", "error", err)
		}
		select {
		case due <- struct{}{}:
		default: // they are at it
		}
		if sleep.For(ctx, renewEvery) != nil {
			break
		}
	}
	chores.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	p.saying.Lock()
	defer p.saying.Unlock()
	var present Host
	if doc, err := p.docs.Get(ctx, driver.Space{Name: hostSpace}, p.self.ID); err == nil && json.Unmarshal(doc.Data, &present) == nil && present.Run == p.self.Run {
		_ = p.docs.Delete(ctx, driver.Space{Name: hostSpace}, p.self.ID, doc.Version) // else it expires
	} // or another presence of the host goes on in its place
}

// renew says that the host lives, and looks who else does.
func (p *Presence) renew(ctx context.Context) error {
	if err := p.say(ctx); err != nil {
		return err
	}
	hosts, err := p.Hosts(ctx)
	if err == nil && p.look(hosts) {
		err = p.say(ctx)
	}
	return err
}

// chores brings those words into the store that are not there as they should be, and
// takes out those of hosts that are gone.
func (p *Presence) chores(ctx context.Context) {
	for left := -1; ctx.Err() == nil; {
		asking, cancel := context.WithTimeout(ctx, presentFor)
		err := p.rounds.join(asking, &word{})
		cancel()
		owed := p.owes()
		if err != nil || owed == 0 || left >= 0 && owed >= left {
			break // the next time
		}
		left = owed
	}
	if seen, due := p.sweepDue(); due {
		sweeping, cancel := context.WithTimeout(ctx, sweepWithin)
		defer cancel()
		if err := sweepWords(sweeping, p.docs); err == nil {
			p.swept(seen)
		}
	}
}

// say writes the host's own document.
func (p *Presence) say(ctx context.Context) error {
	p.saying.Lock()
	defer p.saying.Unlock()
	return p.put(ctx)
}

// current says the host's own document, if others could not count on it. While somebody
// else does, it waits.
func (p *Presence) current(ctx context.Context) error {
	p.saying.Lock()
	defer p.saying.Unlock()
	p.mu.Lock()
	fine := p.known != 0 && !p.stale && time.Since(p.at) < 2*renewEvery
	p.mu.Unlock()
	if fine {
		return nil
	}
	return p.put(ctx)
}

// put writes the host's own document. It is called with saying held.
func (p *Presence) put(ctx context.Context) error {
	var err error
	for range tries {
		var doc driver.Document
		doc, err = p.docs.Get(ctx, driver.Space{Name: hostSpace}, p.self.ID)
		if err = ignore(err, job.NotFound); err != nil {
			return err
		}
		var data []byte
		if data, err = p.content(&doc); err != nil {
			return err
		}
		next := driver.Document{Name: p.self.ID, Data: data, Expires: p.until()}
		began := time.Now()
		next.Version, err = p.docs.Put(ctx, driver.Space{Name: hostSpace}, next, doc.Version)
		if p.heard(next.Version, began, err); job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

// content returns what the host says of itself, over what is there. Where that is not what
// it said last, the document had lapsed, so that others may have taken the words of that
// run out, or the store lost something: then another run begins, and says all again.
func (p *Presence) content(doc *driver.Document) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var present Host
	same := json.Unmarshal(doc.Data, &present) == nil && present.Run == p.self.Run &&
		(doc.Version == p.known || p.lost && doc.Version > p.known)
	if p.known != 0 && !same {
		if doc.Version == 0 && time.Since(p.at) < presentFor {
			if stays, longer := p.stays.Gone(); longer {
				p.logger.Warn("what this server says of itself in the catalog's store was gone before its time: is the clock of this machine behind the store's?", "said_for", stays)
			}
		}
		p.self.Run, p.known = newID(), 0
		for key := range p.said {
			p.owed[key] = true
		}
	}
	self := p.self
	if p.older {
		self.Boards, self.Names = map[string]map[string]string{}, map[string][]string{}
		for key, list := range p.said {
			self.Boards[key] = list[0].settings
			for _, w := range list {
				self.Names[key] = append(self.Names[key], w.board)
			}
		}
	}
	p.stale = false // what is said from here on is said once more
	return json.Marshal(self)
}

// until is when the host's document expires if it is written now.
func (p *Presence) until() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stays.From(time.Now())
}

// heard notes what came of a try to write the host's document.
func (p *Presence) heard(version uint64, began time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.lost, p.stale = p.lost || job.KindOf(err) != job.Aborted, true
		return
	case p.known != 0: // had the store lost an older change than those, it would have lost this document, too
		maps.Copy(p.owed, p.fresh)
	}
	p.fresh = map[string]bool{}
	p.known, p.at, p.lost = version, began, false
}

// look takes over who lives. It reports whether the host has to say something else for
// that.
func (p *Presence) look(hosts []Host) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	older := slices.ContainsFunc(hosts, func(h Host) bool { return h.old() && h.ID != p.self.ID })
	again = older != p.older
	p.older, p.stale = older, p.stale || again
	p.sweep.look(hosts, p.self.ID)
	return again
}

// Hosts returns the hosts that live, by ID.
func (p *Presence) Hosts(ctx context.Context) ([]Host, error) { return Hosts(ctx, p.docs) }

// Hosts returns the hosts of a store that live, by ID.
func Hosts(ctx context.Context, in driver.Documents) ([]Host, error) {
	docs, err := in.List(ctx, driver.Space{Name: hostSpace}, "", 0)
	if err != nil {
		return nil, err
	}
	hosts := map[string]Host{}
	for _, doc := range docs {
		var h Host
		if json.Unmarshal(doc.Data, &h) == nil && h.ID == doc.Name {
			hosts[h.ID] = h
		}
	}
	return slices.SortedFunc(maps.Values(hosts), func(a, b Host) int { return cmp.Compare(a.ID, b.ID) }), nil
}
