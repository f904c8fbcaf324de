package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/stay"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The documents of a fleet, in a space of the catalog's store.
const (
	space        = "fleet"
	keyName      = "key"
	serverPrefix = "server/"
	drainPrefix  = "drain/"
)

// How long a look into the store may take, and how long the documents stay of a server
// that says nothing any more: a drained one renews its drain while it lives. They stay by the
// clock of the store: a server's word for longer where that is ahead.
const (
	lookWithin = 2 * time.Second
	wordsFor   = 2 * time.Minute
	drainFor   = 30 * 24 * time.Hour
)

// Options are for New.
type Options struct {
	Documents driver.Documents
	Logger    *slog.Logger

	// Self is what the server says of itself now. Boot, Beat and Since are filled in.
	Self func() Word

	// Looked is called after each look that succeeded, one call at a time.
	Looked func()

	// Now is the clock; nil: the machine's.
	Now func() time.Time

	// Key reads the secret that the configuration names; nil: the one in the store is used.
	Key func() (Key, error)
}

// Member is a server's part in a fleet: it says what the server is, and knows the others.
type Member struct {
	options Options
	boot    string
	since   time.Time
	kick    chan struct{}
	seen    Window

	mu      sync.Mutex
	view    View
	servers []Seen
	known   bool
	key     Key
	beat    uint64
	drained bool      // somebody has said so of this run
	wrong   string    // what was last wrong with the key, as it was logged
	stays   stay.Stay // its word
}

// New returns a member that Run keeps up.
func New(o Options) *Member {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Member{options: o, boot: hex.EncodeToString(b[:]), since: o.Now().UTC().Truncate(time.Second), kick: make(chan struct{}, 1), stays: stay.For(wordsFor)}
}

// Boot names this run of the server.
func (m *Member) Boot() string { return m.boot }

// Run says and looks, again and again, until ctx ends, and then that the server has left.
func (m *Member) Run(ctx context.Context) {
	ticker := time.NewTicker(SayEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		m.Tick(ctx)
		select {
		case <-ticker.C:
		case <-m.kick:
		case <-ctx.Done():
		}
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	word := m.word()
	word.State = Left
	_ = m.say(leaving, &word) // else the others find out
}

// Say has the server say at once what it is now.
func (m *Member) Say() {
	select {
	case m.kick <- struct{}{}:
	default: // it is about to
	}
}

// Tick says once what the server is, and looks at what the others say. Where its own word
// does not go through, what it would read counts for nothing. Run does so every SayEvery;
// only a simulation calls it by itself.
func (m *Member) Tick(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	m.readKey(ctx)
	word := m.word()
	if err := m.say(ctx, &word); err != nil {
		m.options.Logger.Debug("the other servers cannot be told that this one lives", "error", err)
		return
	}
	docs, err := m.options.Documents.List(ctx, driver.Space{Name: space}, "", 0)
	if err != nil {
		m.options.Logger.Debug("the other servers cannot be looked at", "error", err)
		return
	}
	m.take(m.options.Now(), docs)
	m.stayDrained(ctx, docs)
	m.options.Looked()
}

// stayDrained has what drains this run stay in the store for as long as the run lives. Who takes
// it back meanwhile is first.
func (m *Member) stayDrained(ctx context.Context, docs []driver.Document) {
	now := m.options.Now()
	for _, doc := range docs {
		if doc.Name != drainPrefix+m.boot || doc.Expires.Sub(now) > drainFor/2 {
			continue
		}
		doc.Expires = now.Add(drainFor)
		if _, err := m.options.Documents.Put(ctx, driver.Space{Name: space}, doc, doc.Version); err != nil { // the next time
			m.options.Logger.Debug("that this server is drained cannot be said for longer", "error", err)
		}
	}
}

// word is what the server says of itself now.
func (m *Member) word() Word {
	w := m.options.Self()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat++
	w.Boot, w.Beat, w.Since = m.boot, m.beat, m.since
	return w
}

func (m *Member) say(ctx context.Context, w *Word) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	m.mu.Lock()
	expires := m.stays.From(m.options.Now())
	m.mu.Unlock()
	return m.overwrite(ctx, driver.Document{Name: serverPrefix + w.ID, Data: data, Expires: expires})
}

// overwrite writes a document whatever stands in its place.
func (m *Member) overwrite(ctx context.Context, doc driver.Document) error {
	for {
		present, err := m.options.Documents.Get(ctx, driver.Space{Name: space}, doc.Name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		if _, err = m.options.Documents.Put(ctx, driver.Space{Name: space}, doc, present.Version); job.KindOf(err) != job.Aborted {
			return err
		}
	}
}

// take takes what was read.
func (m *Member) take(now time.Time, docs []driver.Document) {
	var words []Word
	drained := map[string]bool{}
	for _, doc := range docs {
		switch {
		case strings.HasPrefix(doc.Name, serverPrefix):
			var w Word
			if json.Unmarshal(doc.Data, &w) == nil && serverPrefix+w.ID == doc.Name {
				words = append(words, w)
			}
		case strings.HasPrefix(doc.Name, drainPrefix):
			drained[strings.TrimPrefix(doc.Name, drainPrefix)] = true
		}
	}
	m.mu.Lock()
	m.view.Observe(now, words, drained)
	before := m.drained
	m.servers, m.drained = m.view.Servers(), drained[m.boot]
	m.tellDrain(before, m.drained)
	self := m.selfID(words)
	if m.known = m.view.Known(self); self == "" {
		if stays, longer := m.stays.Gone(); longer {
			m.options.Logger.Warn("what this server says of itself was gone from the catalog's store before its time: is the clock of this machine behind the store's?", "said_for", stays)
		}
	}
	senders := make([]string, 0, len(words))
	for _, w := range words {
		senders = append(senders, w.Boot)
	}
	m.mu.Unlock()
	m.seen.Keep(senders)
}

// tellDrain logs that somebody has begun to drain this run, or has taken that back.
func (m *Member) tellDrain(before, now bool) {
	switch {
	case now && !before:
		m.options.Logger.Info("this server is drained: it gives its boards to the others (boardd server drain)")
	case before && !now:
		m.options.Logger.Info("this server is drained no more: it takes boards again")
	}
}

// selfID is the ID under which this run speaks.
func (m *Member) selfID(words []Word) string {
	for _, w := range words {
		if w.Boot == m.boot {
			return w.ID
		}
	}
	return ""
}

// Servers returns the servers that are known, by Advertise.
func (m *Member) Servers() []Seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.servers
}

// Known reports whether the fleet was looked at often enough to know who lives.
func (m *Member) Known() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// Drained reports whether somebody has said that this run of the server is to hand its
// boards over.
func (m *Member) Drained() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drained
}

// Drain says of a run of a server that it is to hand its boards over, or takes that back.
func (m *Member) Drain(ctx context.Context, boot string, undo bool) error {
	name := drainPrefix + boot
	if !undo {
		err := m.overwrite(ctx, driver.Document{Name: name, Data: []byte("{}"), Expires: m.options.Now().Add(drainFor)})
		m.Say()
		return err
	}
	doc, err := m.options.Documents.Get(ctx, driver.Space{Name: space}, name)
	if err == nil {
		err = m.options.Documents.Delete(ctx, driver.Space{Name: space}, name, doc.Version)
	}
	m.Say()
	if job.KindOf(err) == job.NotFound {
		return nil
	}
	return err
}

// Key returns the fleet's key, which may be none yet.
func (m *Member) Key() Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.key
}

// Fresh reports whether a message comes from a run that lives, and is not a repetition.
func (m *Member) Fresh(from string, number uint64) bool { return m.seen.Fresh(from, number) }

// readKey reads the key anew. What cannot be read leaves the present one in force.
func (m *Member) readKey(ctx context.Context) {
	key, err := m.keyNow(ctx)
	m.mu.Lock()
	before := m.wrong
	if err == nil {
		m.key, m.wrong = key, ""
	} else {
		m.wrong = err.Error()
	}
	m.mu.Unlock()
	if err != nil && before != err.Error() && ctx.Err() == nil {
		m.options.Logger.Warn("the key of the fleet cannot be read; as long as there is none, this server serves its callers by itself", "error", err)
	}
}

func (m *Member) keyNow(ctx context.Context) (Key, error) {
	if m.options.Key != nil {
		return m.options.Key()
	}
	doc, err := m.options.Documents.Get(ctx, driver.Space{Name: space}, keyName)
	if job.KindOf(err) == job.NotFound {
		made := driver.Document{Name: keyName, Data: NewKey()}
		if _, err := m.options.Documents.Put(ctx, driver.Space{Name: space}, made, 0); err != nil && job.KindOf(err) != job.Aborted {
			return Key{}, err
		}
		doc, err = m.options.Documents.Get(ctx, driver.Space{Name: space}, keyName) // another server's, where that was first
	}
	if err != nil {
		return Key{}, err
	}
	return ParseKey(doc.Data)
}
