package stores

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const (
	jobs     = 4
	watchers = 2
	memory   = 8 // ops that come again
)

// A world is a store with all who use it: hosts, watchers, an operator, and the book
// that says what is right.
type world struct {
	rec   *simulation.Recorder
	store Store
	inner *Optimist // nil: the store cannot be stepped inside its ops
	disk  Crasher   // nil: the store has no disk
	doubt bool      // whether the op that was under way when the disk's store ended was done
	book  *Book

	serial  uint64
	issued  [jobs][]job.Token // that hosts were told of
	done    []driver.Op       // the last ones that hosts sent
	flights [hosts]*flight
	watch   [watchers]*watcher

	witness []byte
	opened  driver.Position // of the witness
	backup  *backup
	floor   driver.Position // no watch goes on from before: changes were lost then
}

// A backup is what the world knows of the moment when the store was backed up.
type backup struct {
	book     *Book
	position driver.Position
}

// firstSpec has bounds that are reached within a few steps.
func firstSpec() driver.BoardSpec {
	return driver.BoardSpec{
		Name: board, Settings: []byte(`{"events":12}`), Window: 30 * time.Second, MaxTombstones: 8, MaxFinals: 2, MaxFinalBytes: 40,
	}
}

// lasting has bounds that are not reached: when a store on a disk tidies up is its own
// affair.
func lasting() driver.BoardSpec {
	return driver.BoardSpec{Name: board, Settings: []byte("{}"), Window: 10_000 * time.Hour, MaxTombstones: 10_000}
}

func open(rec *simulation.Recorder, store Store) *world {
	w := &world{rec: rec, store: store}
	w.inner, _ = store.(*Optimist)
	w.disk, _ = store.(Crasher)
	spec := firstSpec()
	if w.disk != nil {
		spec = lasting()
	}
	w.book = NewBook(spec, w.wall)
	for i := range w.watch {
		w.watch[i] = &watcher{replica: map[job.ID]driver.Record{}}
	}
	status, err := store.Open(spec)
	if err != nil {
		panic(err) // a new store has no reason to refuse
	}
	w.witness = status.Witness
	return w
}

func (w *world) wall() time.Time {
	if w.inner != nil {
		return w.inner.wall()
	}
	return time.Now()
}

// Close ends the world.
func (w *world) Close() { w.store.Close() }

// Step takes a step and compares everything.
func (w *world) Step(s *simulation.Step) error {
	err := w.do(s)
	if err == nil {
		err = w.compare()
	}
	return err
}

func (w *world) do(s *simulation.Step) error {
	switch s.Do {
	case "again":
		return w.again(s)
	case "pass":
		w.pass(passes[s.Choices[cHow]])
	case "edge":
		w.edge(int(s.Choices[cJob]), s.Choices[cHow], s.Choices[cEdge])
	case "watch":
		return w.catchUp(s)
	case "scan":
		return w.scan(s)
	case "open":
		return w.open(s)
	case "commit":
		if w.flights[s.Choices[cHost]] == nil {
			return nil
		}
		w.rec.See(s.Do, s.Fault)
		return w.land(int(s.Choices[cHost]))
	case "back-up":
		w.backUp()
	case "put-back":
		return w.putBack()
	case "crash":
		return w.crash()
	default:
		return w.op(s)
	}
	w.rec.See(s.Do, s.Fault)
	return nil
}

func jobID(n int) job.ID { return job.ID{1, byte(n % jobs)} }

func (w *world) random16() (b [16]byte) {
	w.serial++
	b[0] = 7
	binary.BigEndian.PutUint64(b[8:], w.serial)
	return b
}

var passes = []time.Duration{
	1, time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 29 * time.Second, time.Minute,
}

// pass lets time go on.
func (w *world) pass(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// edges is how far from the very moment time stops.
var edges = []time.Duration{-1, 0, 1}

// edge moves time to where something ends: a lease, a hold, the window or a final
// record. It does nothing if there is none, or it is over.
func (w *world) edge(n int, what, side uint8) bool {
	e := w.book.find(jobID(n))
	var at time.Time
	switch {
	case what == 0 && e != nil && e.claim != nil:
		at = e.claim.ends
	case what == 1 && e != nil:
		at = time.Now().Add(e.notBefore.Sub(w.wall()))
	case what >= 2 && w.disk != nil: // its bounds are not reached
	case what == 2 && len(w.book.deeds) > 0:
		at = w.book.deeds[0].at.Add(w.book.spec.Window)
	case what == 3 && len(w.book.finals) > 0:
		at = w.book.finals[0].until
	}
	d := time.Until(at)
	if at.IsZero() || d <= 1 { // over, or too close to be before it
		return false
	}
	d += edges[side%3]
	w.rec.Tell("  %v pass", d)
	time.Sleep(d)
	return true
}

// compare compares everything that the store shows with the book.
func (w *world) compare() error {
	w.book.forget()
	const all = driver.Details | driver.Attached | driver.FinalData
	var ids [jobs]job.ID
	for i := range ids {
		ids[i] = jobID(i)
	}
	records, err := w.store.Read(ids[:], all)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for i := range records {
		r := &records[i]
		w.rec.Note(uint64(r.State), r.Version, uint64(r.Position), uint64(r.NotBefore.UnixNano()))
		e := w.book.find(ids[i])
		if e == nil {
			if r.State != job.Unknown {
				return fmt.Errorf("job %d is %v, and should not be known", i, r.State)
			}
			continue
		}
		if err := e.compare(r, all); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
	}
	return w.compareCounts()
}

func (w *world) compareCounts() error {
	got, err := w.store.Count()
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	want := driver.Counts{Tombstones: int64(len(w.book.deeds)), Finals: int64(len(w.book.finals)), FinalBytes: w.book.finalBytes()}
	for _, e := range w.book.jobs {
		switch {
		case e.state == job.Complete:
			want.Ended++
		case e.state == job.Trashed:
			want.Trashed++
		case e.claim != nil:
			want.Claimed++
			want.Open++
		default:
			want.Open++
		}
	}
	for _, key := range limitKeys {
		if sum := w.book.sum(key); got.Limits[key] != sum {
			return fmt.Errorf("the sum of %q is %d, and counted anew it is %d", key, got.Limits[key], sum)
		}
	}
	if got.Open != want.Open || got.Claimed != want.Claimed || got.Trashed != want.Trashed || got.Ended != want.Ended ||
		got.Tombstones != want.Tombstones || got.Finals != want.Finals || got.FinalBytes != want.FinalBytes || got.Bad != 0 {
		return fmt.Errorf("the counts are %+v, want %+v", got, want)
	}
	return nil
}
