package catalog

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// locationSpace is where each backend says which board lies where on it. It is in
// the backend's own store, so that hosts with other catalogs and configurations
// see it too.
const locationSpace = "locations"

// chosenSpace is where each of those places is named that people chose, before it is taken, so
// that who takes a place of boardd's own choice need not look at all others. A name whose place
// is not there means nothing.
const chosenSpace = "locations-chosen"

// Use says which board lies at a location, and how it is served there.
type Use struct {
	Location string            `json:"location"`
	Tenant   string            `json:"tenant"`
	Board    string            `json:"board"`
	Settings map[string]string `json:"settings"` // those that every host must have alike, for people
}

// name is the board with its tenant.
func (u *Use) name() string { return u.Tenant + "/" + u.Board }

func (u *Use) same(o *Use) bool { return u.Tenant == o.Tenant && u.Board == o.Board }

// Places is which board lies where on one store. Its methods may be called from many
// goroutines at once; what they ask for at the same time is asked of the store
// together.
type Places struct {
	docs    driver.Documents
	backend string // the store's name for people
	rounds  *rounds[*claimed]

	// Only the round that goes on uses these.
	chosen *ground   // the places that people have chosen, as they were when all were read
	readAt time.Time // when that was
	known  int       // how many places there are: those that were read when all were, and new ones since
}

// NewPlaces returns the places on the store that operators know as a backend.
func NewPlaces(docs driver.Documents, backend string) *Places {
	p := &Places{docs: docs, backend: backend}
	p.rounds = newRounds(p.occupy)
	return p
}

// claimed is a location that a call of Occupy asks for.
type claimed struct {
	location Location
	use      Use
	fresh    bool // written now
	err      error
}

// Occupy makes a location a board's, or refuses, as Precondition, where it is
// another one's or overlaps with one. The board's own settings there may differ
// if no other host serves the board as they were: others says how the other
// hosts that live serve it, by host.
func (p *Places) Occupy(ctx context.Context, l Location, use Use, others map[string]map[string]string) error {
	use.Location = l.text
	for host, settings := range others {
		if difference := differ(use.Settings, settings); difference != "" {
			return job.Errorf(job.Precondition, "the host %s serves this board with other settings: %s; make the two configurations the same", host, difference)
		}
	}
	c := &claimed{location: l, use: use}
	if err := p.rounds.join(ctx, c); err != nil {
		return err
	}
	return c.err
}

// Bounds on what a round asks of the store.
const (
	fewPlaces     = 8  // are read one by one and not with all others
	listedPerRead = 16 // places are listed in the time in which one is read by itself
	atOnce        = 16 // documents that are read or written at the same time
)

// readAll is how old what was read of all places may be. It is for places that servers of an older
// version took, which name none in chosenSpace.
const readAll = 10 * time.Minute

// occupy is one round. It reads the places that may overlap twice at most, however many it is
// for: before and after the new ones were written, so that of two hosts which take places that
// overlap at the same moment at most one keeps its own.
func (p *Places) occupy(ctx context.Context, list []*claimed) {
	for range tries {
		if list = p.attempt(ctx, list); len(list) == 0 {
			return
		}
	}
	fail(list, job.Errorf(job.Aborted, "the place of the board is changed all the time"))
}

// attempt is one try of a round. It returns those items whose documents another host
// changed meanwhile, to be tried again.
func (p *Places) attempt(ctx context.Context, list []*claimed) (again []*claimed) {
	present, err := p.read(ctx, list)
	if err != nil {
		fail(list, err)
		return nil
	}
	var missing []*claimed
	for _, c := range list {
		if present[c.location.key()].Version == 0 {
			missing = append(missing, c)
		}
	}
	p.refuse(ctx, missing)
	p.write(ctx, list, present)
	var fresh []*claimed
	for _, c := range list {
		if job.KindOf(c.err) == job.Aborted {
			again = append(again, c)
		} else if c.fresh && c.err == nil {
			fresh = append(fresh, c)
		}
	}
	p.known += len(fresh)
	p.refuse(ctx, fresh)
	for _, c := range fresh {
		if c.fresh = false; c.err == nil {
			continue
		}
		if err := p.Vacate(ctx, c.location, c.use.Tenant, c.use.Board); err != nil {
			c.err = err
		}
	}
	for _, c := range again {
		c.err, c.fresh = nil, false
	}
	return again
}

func fail(list []*claimed, err error) {
	for _, c := range list {
		c.err = err
	}
}

// read returns the documents of the locations, by name. It lists all places only where that is less
// work than to read these: not where a few boards are made beside a hundred thousand.
func (p *Places) read(ctx context.Context, list []*claimed) (map[string]driver.Document, error) {
	present := map[string]driver.Document{}
	if len(list) > fewPlaces && p.known <= len(list)*listedPerRead {
		docs, err := p.docs.List(ctx, driver.Space{Name: locationSpace}, "", 0)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			present[doc.Name] = doc
		}
		p.known = len(docs)
		return present, nil
	}
	var mu sync.Mutex
	var failure error
	each(list, func(c *claimed) {
		doc, err := p.docs.Get(ctx, driver.Space{Name: locationSpace}, c.location.key())
		mu.Lock()
		defer mu.Unlock()
		if err = ignore(err, job.NotFound); err != nil {
			failure = err
		}
		present[c.location.key()] = doc
	})
	return present, failure
}

// refuse fails the items whose location overlaps with a place of another board. Of two
// items that overlap with each other, the first one passes.
func (p *Places) refuse(ctx context.Context, list []*claimed) {
	all, err := p.suspect(ctx, list)
	if err == nil && len(all) > 0 {
		err = p.refuseAmongAll(ctx, all)
	}
	if err != nil {
		fail(list, err)
	}
}

// suspect returns those items that have to be held against all places: those that people chose,
// and those that seem to overlap with one that they did.
func (p *Places) suspect(ctx context.Context, list []*claimed) (all []*claimed, err error) {
	var chosen *ground
	for _, c := range list {
		switch c.location.reach(&c.use) {
		case onlyItself:
			continue
		case onlyChosen:
			if chosen == nil {
				if chosen, err = p.whatPeopleChose(ctx); err != nil {
					return nil, err
				}
			}
			if chosen.other(c.location, &c.use) == nil {
				continue
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// whatPeopleChose returns the places that people chose, of which some may not be taken any more.
func (p *Places) whatPeopleChose(ctx context.Context) (*ground, error) {
	if p.chosen == nil || time.Since(p.readAt) > readAll {
		at, list, n := time.Now(), newGround(), 0
		err := p.each(ctx, locationSpace, func(l Location, use Use) {
			n++
			if l.reach(&use) == anybody {
				list.add(l, use)
			}
		})
		if err != nil {
			return nil, err
		}
		p.chosen, p.readAt, p.known = list, at, n
	}
	err := p.each(ctx, chosenSpace, func(l Location, use Use) { p.chosen.add(l, use) })
	return p.chosen, err
}

// each goes through the places of a space.
func (p *Places) each(ctx context.Context, space string, do func(l Location, use Use)) error {
	docs, err := p.docs.List(ctx, driver.Space{Name: space}, "", 0)
	if err != nil {
		return err
	}
	uses, err := usesOf(docs)
	for _, use := range uses {
		do(LocationNamed(use.Location), use)
	}
	return err
}

// usesOf reads documents of places.
func usesOf(docs []driver.Document) ([]Use, error) {
	uses := make([]Use, len(docs))
	for i := range docs {
		if err := decode(docs[i], &uses[i]); err != nil {
			return nil, err
		}
	}
	return uses, nil
}

func (p *Places) refuseAmongAll(ctx context.Context, list []*claimed) error {
	g := newGround()
	if err := p.each(ctx, locationSpace, g.add); err != nil {
		return err
	}
	for _, c := range list {
		if other := g.other(c.location, &c.use); other != nil {
			c.err = p.occupied(c.location, *other)
			continue
		}
		g.add(c.location, c.use)
	}
	return nil
}

// write writes what is new or was changed.
func (p *Places) write(ctx context.Context, list []*claimed, present map[string]driver.Document) {
	var due []*claimed
	for _, c := range list {
		doc := present[c.location.key()]
		if c.err == nil && doc.Version != 0 {
			var before Use
			switch c.err = decode(doc, &before); {
			case c.err != nil:
			case !before.same(&c.use):
				c.err = p.occupied(c.location, before)
			case maps.Equal(before.Settings, c.use.Settings):
				continue
			}
		}
		if c.err != nil {
			continue
		}
		c.fresh = doc.Version == 0
		due = append(due, c)
	}
	each(due, func(c *claimed) { c.err = p.put(ctx, c, present[c.location.key()].Version) })
}

// each does something for each item, for atOnce at the same time.
func each[T any](list []T, do func(item T)) {
	working := bounded.New(atOnce)
	defer working.Wait()
	for _, item := range list {
		working.Go(func() { do(item) })
	}
}

func (p *Places) put(ctx context.Context, c *claimed, version uint64) error {
	data, err := encode(c.use)
	if err != nil {
		return err
	}
	doc := driver.Document{Name: c.location.key(), Data: data}
	if version == 0 && c.location.reach(&c.use) == anybody {
		if err := p.nameChosen(ctx, doc); err != nil {
			return err
		}
	}
	_, err = p.docs.Put(ctx, driver.Space{Name: locationSpace}, doc, version)
	return err
}

// nameChosen names a place that is about to be taken.
func (p *Places) nameChosen(ctx context.Context, doc driver.Document) error {
	for range tries {
		present, err := p.docs.Get(ctx, driver.Space{Name: chosenSpace}, doc.Name)
		if err = ignore(err, job.NotFound); err != nil {
			return err
		}
		if _, err = p.docs.Put(ctx, driver.Space{Name: chosenSpace}, doc, present.Version); job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return job.Errorf(job.Aborted, "the name of the place is changed all the time")
}

// Taken is a place that is taken.
type Taken struct {
	Use

	Key string // of its document, which says where it stands in List
}

// List returns the places that are taken whose keys come after one, at most so many, by their
// keys; 0: all.
func (p *Places) List(ctx context.Context, after string, most int) ([]Taken, error) {
	docs, err := p.docs.List(ctx, driver.Space{Name: locationSpace}, after, most)
	if err != nil {
		return nil, err
	}
	uses, err := usesOf(docs)
	if err != nil {
		return nil, err
	}
	list := make([]Taken, len(docs))
	for i := range docs {
		list[i] = Taken{Use: uses[i], Key: docs[i].Name}
	}
	return list, nil
}

// Find returns the place of a location as people read it, or NotFound where it is not taken.
func (p *Places) Find(ctx context.Context, location string) (Taken, error) {
	doc, err := p.docs.Get(ctx, driver.Space{Name: locationSpace}, LocationNamed(location).key())
	if err != nil {
		return Taken{}, err
	}
	taken := Taken{Key: doc.Name}
	if err := decode(doc, &taken.Use); err != nil {
		return Taken{}, err
	}
	return taken, nil
}

// IsKey reports whether a text may be the key of a place.
func IsKey(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == keySize && text == strings.ToLower(text)
}

// Vacate frees a location that is the board's.
func (p *Places) Vacate(ctx context.Context, l Location, tenant, board string) error {
	doc, err := p.docs.Get(ctx, driver.Space{Name: locationSpace}, l.key())
	if err != nil {
		return ignore(err, job.NotFound)
	}
	var present Use
	if err := decode(doc, &present); err != nil || !present.same(&Use{Tenant: tenant, Board: board}) {
		return err
	}
	return ignore(p.docs.Delete(ctx, driver.Space{Name: locationSpace}, l.key(), doc.Version), job.NotFound)
}

// occupied is the error that says which board has a place, and how to free it. It is for
// operators; a tenant must not see it.
func (p *Places) occupied(l Location, by Use) error {
	return job.Errorf(job.Precondition, "the place %s in the store overlaps with %s of the board %s/%s: one place belongs to one board; "+
		"boardd backend places %s lists them, and once nobody serves that board, boardd backend release %s '%s' frees its place",
		l, by.Location, by.Tenant, by.Board, p.backend, p.backend, by.Location)
}

// differ names the settings in which two hosts differ, with both values.
func differ(mine, theirs map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if other, ok := theirs[name]; ok && other != mine[name] {
			list = append(list, fmt.Sprintf("%s is %s here and %s there", name, mine[name], other))
		}
	}
	return strings.Join(list, ", ")
}
