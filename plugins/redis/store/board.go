package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// How many changes a board remembers for its watchers, and up to how many open jobs it takes
// more: a server has each in its memory.
const (
	DefaultEvents     = 100_000
	MaxEvents         = 10_000_000
	DefaultMaxIndexed = 2_000_000
)

var boardSchema = driver.Schema{Fields: []driver.Field{
	{Name: "namespace", Type: driver.String, Doc: "TaskFlow's namespace; absent: the board's name. On Redis Cluster with a {hash tag}"},
	{Name: "no_namespace", Type: driver.Boolean, Doc: "the keys have no namespace and no colon, as with TaskFlow's namespace None"},
	{Name: "foreign", Type: driver.Boolean, Doc: "whether other programs than boardd write to the board; absent: true where a namespace is given or there is none"},
	{Name: "events", Type: driver.Integer, Doc: "how many changes are remembered for watchers; absent: 100000"},
	{Name: "max_indexed", Type: driver.Integer, Doc: "the open jobs with which the board takes no more posts, since a server has each in its memory; absent: 2000000"},
}}

// A board is an open board. What changes when it is opened again is in its opening.
type board struct {
	store   *Store
	name    string
	dropped chan struct{} // closed when the board is no more
	others  *others

	opening atomic.Pointer[opening]
	bad     bad // postings that cannot be read, as far as known

	mu    sync.Mutex
	known mark            // the last change that this host has seen
	watch int             // how many watch it
	sweep *searching      // nil: nobody watches
	shown map[job.ID]bool // jobs that scans of an observed board have shown

	// Not guarded by mu.
	searching atomic.Pointer[sweep] // nil: nobody searches for other programs' changes

	raised  atomic.Bool   // it was found to have lost changes, and claims of before may stand
	virtual atomic.Uint64 // changes of an observed board that only this host counts
}

// An opening is how a board was opened.
type opening struct {
	spec         driver.BoardSpec
	keys         keys
	scriptKeys   []string
	capabilities driver.Capabilities
	events       uint64
	maxIndexed   uint64
	foreign      bool   // other programs are said to write to it
	id           string // of the board in this store
	server       string // the run id of the server on which it was looked at; empty: not told
	generation   uint64
	stale        chan struct{} // closed when the board has to be opened again
	once         *sync.Once
}

// A mark is one change of a board's history.
type mark struct {
	position uint64
	at       time.Time // when the script ran that made it; zero: not known
}

func capabilities() driver.Capabilities {
	c := driver.CapabilityAll()
	c.Shared, c.ByteExact, c.InFlight, c.Moves, c.Empties = true, false, 4, true, true
	return c
}

type settings struct {
	Namespace   *string `json:"namespace"`
	NoNamespace bool    `json:"no_namespace"`
	Events      uint64  `json:"events"`
	MaxIndexed  uint64  `json:"max_indexed"`
	Foreign     *bool   `json:"foreign"`
}

// foreign reports whether other programs write to the board: they may, unless the place is
// one that boardd chose.
func (set *settings) foreign() bool {
	switch {
	case set.Foreign != nil:
		return *set.Foreign
	case set.Namespace != nil:
		return !strings.HasPrefix(*set.Namespace, madeNamespace)
	default:
		return set.NoNamespace
	}
}

// readSettings returns how a board is to be kept, as its settings say.
func (s *Store) readSettings(spec *driver.BoardSpec) (*opening, error) {
	if spec.Name == "" || len(spec.Name) > driver.MaxBoardName {
		return nil, job.Errorf(job.Invalid, "the board's name has %d bytes: want 1 to %d", len(spec.Name), driver.MaxBoardName)
	}
	var set settings
	if len(spec.Settings) > 0 {
		if err := json.Unmarshal(spec.Settings, &set); err != nil {
			return nil, job.Errorf(job.Invalid, "the settings of board %q cannot be read: %v", spec.Name, err)
		}
	}
	prefix := spec.Name + ":"
	switch {
	case set.NoNamespace && set.Namespace != nil:
		return nil, job.Errorf(job.Invalid, "namespace and no_namespace are both given: want one of them")
	case set.NoNamespace:
		prefix = ""
	case set.Namespace != nil:
		prefix = *set.Namespace + ":"
	}
	if _, cluster := s.client.(*redis.ClusterClient); cluster && !hashTag(prefix) {
		return nil, job.Errorf(job.Invalid, "the namespace %q has no hash tag, and Redis Cluster would scatter the board: want one such as {%s}", prefix, spec.Name)
	}
	if set.Events > MaxEvents {
		return nil, job.Errorf(job.Invalid, "events is %d: want at most %d", set.Events, MaxEvents)
	}
	if set.Events == 0 {
		set.Events = DefaultEvents
	}
	if set.MaxIndexed == 0 {
		set.MaxIndexed = DefaultMaxIndexed
	}
	k := keysOf(prefix)
	return &opening{
		keys: k, scriptKeys: k.script(), capabilities: capabilities(), events: set.Events, maxIndexed: set.MaxIndexed, foreign: set.foreign(),
		stale: make(chan struct{}), once: &sync.Once{},
	}, nil
}

// OpenBoard looks how the board stands, and raises its generation if it has
// forgotten something that was acknowledged.
func (s *Store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := ended(ctx); err != nil {
		return driver.BoardStatus{}, err
	}
	st, err := s.readSettings(&spec)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	if spec.Window <= 0 {
		spec.Window = driver.DefaultWindow
	}
	if spec.MaxTombstones <= 0 {
		spec.MaxTombstones = driver.DefaultMaxTombstones
	}
	s.meet(ctx)
	b := s.boardNamed(spec.Name)
	st.spec = spec
	status := driver.BoardStatus{Capabilities: st.capabilities, Window: spec.Window}
	status.Capabilities.Alone = !st.foreign
	err = b.look(ctx, st, &status)
	if errors.Is(err, errRestarted) { // to look is what that asks for
		err = b.look(ctx, st, &status)
	}
	if err != nil {
		return driver.BoardStatus{}, err
	}
	if status.Durability, err = s.durability(ctx); err != nil {
		return driver.BoardStatus{}, err
	}
	if !spec.Observe {
		if err := s.register(ctx, spec.Name, st.keys.prefix); err != nil {
			return driver.BoardStatus{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return driver.BoardStatus{}, closed()
	}
	if present := s.boards[spec.Name]; present != nil && present != b {
		return driver.BoardStatus{}, job.Errorf(job.Unavailable, "board %q is being opened by another call", spec.Name)
	}
	select {
	case <-b.dropped:
		return driver.BoardStatus{}, job.Errorf(job.Unavailable, "board %q was dropped while it was opened", spec.Name)
	default:
	}
	s.boards[spec.Name] = b
	st.succeed(b.opening.Load())
	b.opening.Store(st) // only with s.mu held, as greet reads it
	return status, nil
}

// boardNamed returns the open board of that name, or a new one.
func (s *Store) boardNamed(name string) *board {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.boards[name]; b != nil {
		return b
	}
	return &board{store: s, name: name, dropped: make(chan struct{}), others: newOthers()}
}

// expire says that the board has to be opened again before it is used.
func (st *opening) expire() { st.once.Do(func() { close(st.stale) }) }

// succeed has an opening end together with the one before it, by which a watch may still go.
// One that ended already, or was of another state of the board, ends now at the latest.
func (st *opening) succeed(old *opening) {
	if old == nil || old.expired() {
		return
	}
	if old.generation != st.generation || old.keys.prefix != st.keys.prefix {
		old.expire()
		return
	}
	st.stale, st.once = old.stale, old.once
}

func (st *opening) expired() bool {
	select {
	case <-st.stale:
		return true
	default:
		return false
	}
}

func lookAgain(name string) error {
	return job.Errorf(job.Unavailable, "board %q may have lost changes, since Redis was restarted or put back: open it again", name)
}

// numbers is what the script is told of the board.
func (b *board) numbers(st *opening) []byte {
	known := b.lastSeen().position
	p := packer{make([]byte, 0, 64)}
	p.u64(st.generation)
	p.u64(known)
	p.u64(uint64(st.spec.Window / time.Microsecond))
	p.u64(uint64(st.spec.MaxTombstones))
	p.u64(uint64(max(st.spec.MaxFinals, 0)))
	p.u64(uint64(max(st.spec.MaxFinalBytes, 0)))
	p.u64(st.events)
	p.u64(st.maxIndexed)
	return p.b
}

func (b *board) lastSeen() mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

// saw remembers a change that is known to have been made, and reports whether it does: once
// the board has to be opened again, what Redis says may hide that it has lost something.
func (b *board) saw(st *opening, m mark) bool {
	if st.expired() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.position > b.known.position {
		b.known = m
	}
	return true
}

// A board's memory is a byte that says how it is written, the board's id, generation and
// last change as this host knows them, and where it was opened. One that an older boardd
// wrote ends before the server.
const (
	memoryFormat = 1
	memoryOlder  = 1 + 16 + 8 + 8 + 8
	memorySize   = memoryOlder + 8 + 8
)

type memory struct {
	id         string // 16 bytes
	generation uint64
	last       mark
	server     uint64 // on which the board was opened, see serverNumber; 0: not known
	opened     uint64 // the board's position then
}

func (m *memory) encode() []byte {
	p := packer{append(make([]byte, 0, memorySize), memoryFormat)}
	p.raw(m.id)
	p.u64(m.generation)
	p.u64(m.last.position)
	if m.last.at.IsZero() {
		p.u64(0)
	} else {
		p.u64(uint64(m.last.at.UnixMicro()))
	}
	p.u64(m.server)
	p.u64(m.opened)
	return p.b
}

func decodeMemory(raw []byte) (memory, error) {
	if len(raw) == 0 {
		return memory{}, nil
	}
	if len(raw) != memorySize && len(raw) != memoryOlder || raw[0] != memoryFormat {
		return memory{}, job.Errorf(job.Invalid, "the board's memory has %d bytes: want the %d that this driver gave", len(raw), memorySize)
	}
	u := unpacker{b: raw[1:]}
	m := memory{id: string(u.take(16)), generation: u.u64()}
	m.last = mark{position: u.u64(), at: u.time()}
	m.server, m.opened = u.u64(), u.u64() // 0 where there is nothing more
	return m, nil
}

func newBoardID() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	nonce := random16()
	return string(append(b, nonce[:8]...))
}
