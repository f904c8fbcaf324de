package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The log is a folder of sequential nodes, one for each change of a job that a
// host of boardd made but for extensions, in the same transaction. It tells the
// other hosts which job to look at, and what its change was.

// How many entries of the log are kept, at least and at most.
const (
	keepLog    = 2000
	trimLog    = keepLog + keepLog/2
	trimAtOnce = 128
	gapAtOnce  = 256 // entries that are read without a list of the folder

	defaultLogNumbers = 1 << 30
)

// logFormat begins each entry.
const logFormat = 1

// An entry is one line of the log.
type entry struct {
	id     job.ID
	event  job.EventType
	reason string
	owner  string

	// children is how many nodes came to TaskFlow's folder, and went, with the change;
	// unknownChildren in an entry of a program that did not say so.
	children int32

	// status is that of a job that went to the trash, of which nothing may be left when another
	// host looks; nil if it is long, or the program did not say so.
	status []byte
}

const (
	unknownChildren = -1

	mostLogStatus = 16 << 10
)

func (e *entry) encode() []byte {
	w := writer{append(make([]byte, 0, 64), logFormat, byte(e.event))}
	w.raw(e.id[:])
	w.bytes([]byte(e.reason))
	w.bytes([]byte(e.owner))
	w.uint(uint64(e.children)) //nolint:gosec // it is not negative
	if e.status != nil {
		w.bytes(e.status)
	}
	return w.out
}

func decodeEntry(data []byte) (entry, error) {
	var e entry
	if len(data) < 2 || data[0] != logFormat {
		return e, errShort
	}
	d := reader{in: data[2:]}
	e.event = job.EventType(data[1])
	d.raw(e.id[:])
	e.reason, e.owner = string(d.bytes()), string(d.bytes())
	if e.children = unknownChildren; d.err == nil && len(d.in) > 0 {
		e.children = int32(min(d.uint(), math.MaxInt32)) //nolint:gosec // it is cut
	}
	if d.err == nil && len(d.in) > 0 {
		e.status = d.bytes()
	}
	return e, d.err
}

// A logFollower is how far the log is known.
type logFollower struct {
	follower
	of     root             // the board's when the log was read first
	number int32            // the number of the first entry that is not known
	within uint64           // see session.Client.Reached: since then ZooKeeper was not put back
	ahead  map[int32]uint64 // entries after it that are known, with their positions
}

// has reports whether an entry is known. b.mu is held.
func (f *logFollower) has(number int32) bool {
	_, ahead := f.ahead[number]
	return ahead || number-f.number < 0
}

// missing returns the numbers of entries that are not known, and are older than one
// that is. b.mu is held.
func (f *logFollower) missing() []int32 {
	var list []int32
	for n, left := f.number, len(f.ahead); left > 0 && len(list) < gapAtOnce; n++ {
		if _, known := f.ahead[n]; known {
			left--
		} else {
			list = append(list, n)
		}
	}
	return list
}

// know takes note of an entry. b.mu is held.
func (f *logFollower) know(number int32, zxid uint64) {
	if number-f.number < 0 {
		return // the counter wraps: what is older is less than half of it away
	}
	f.ahead[number] = zxid
	for {
		zxid, ok := f.ahead[f.number]
		if !ok {
			return
		}
		delete(f.ahead, f.number)
		f.number++
		f.upTo = max(f.upTo, zxid)
	}
}

// series returns which of the board's logs is written now.
func (b *board) series() uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root.log
}

// beginLog finds the log's end. What is in it is in the jobs' records as well.
func (b *board) beginLog(ctx context.Context) error {
	within := b.client().Reached()
	folder, err := b.client().List(ctx, b.at.log(b.series()))
	if err != nil && !session.NoNode(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.log.of, b.log.number, b.log.within = b.root, created(folder.Stat), within
		b.log.upTo = uint64(folder.Stat.Pzxid)
		b.reached(b.log.upTo)
	}
	return nil
}

// created returns how many nodes were ever created in a folder, which is the
// number that the next sequential one gets. ZooKeeper tells the sum of creations
// and deletions.
func created(stat *session.Stat) int32 {
	return int32((int64(uint32(stat.Cversion)) + int64(stat.NumChildren)) / 2) //nolint:gosec // it wraps as the counter does
}

// listLog reads the entries that are new.
func (b *board) listLog(ctx context.Context) (failed error) {
	horizon := b.begin(&b.log.follower)
	defer func() { b.finished(&b.log.follower, failed) }()
	begun := time.Now()
	b.mu.Lock()
	series, known := b.root.log, b.log.number
	b.mu.Unlock()
	folder, err := b.client().ListWatched(ctx, b.at.log(series))
	if session.NoNode(err) {
		if err := b.sameRoot(ctx); err != nil {
			return err // the log has begun anew in another folder
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log.dirty, b.log.follower.next, b.log.upTo = true, begun.Add(nobodyHome), max(b.log.upTo, horizon)
		return nil
	}
	if err != nil {
		return err
	}
	if created(folder.Stat)-known < 0 {
		return errAgain // ZooKeeper was put back, and the session with it
	}
	b.mu.Lock()
	b.log.event = folder.Event
	numbers, gap := b.log.unknown(folder.Names)
	b.log.listed(begun, len(folder.Names))
	b.mu.Unlock()
	if gap {
		return errAgain
	}
	if err := b.readLog(ctx, numbers); err != nil {
		return err
	}
	b.mu.Lock()
	b.reached(uint64(folder.Stat.Pzxid))
	if len(b.log.ahead) == 0 {
		b.log.upTo = max(b.log.upTo, horizon)
	}
	b.mu.Unlock()
	return b.trimLog(ctx, folder.Names)
}

// unknown returns the numbers of the entries that are not known yet, in order;
// gap says that some are gone already.
func (f *logFollower) unknown(names []string) (numbers []int32, gap bool) {
	for _, name := range names {
		n, ok := logNumber(name)
		if _, known := f.ahead[n]; ok && !known && n-f.number >= 0 {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int { return int(a - b) })
	if len(numbers) == 0 {
		return nil, false
	}
	for n := f.number; n != numbers[0]; n++ {
		if _, known := f.ahead[n]; !known {
			return nil, true
		}
	}
	return numbers, false
}

// readLog reads entries of other hosts, and the jobs that they are about.
func (b *board) readLog(ctx context.Context, numbers []int32) error {
	series, within := b.series(), b.client().Reached()
	lines := make([]logLine, len(numbers))
	var work []func(context.Context) error
	for i, n := range numbers {
		work = append(work, func(ctx context.Context) (err error) {
			lines[i], err = b.readLine(ctx, b.at.logEntry(series, n))
			return err
		})
	}
	if err := together(ctx, work); err != nil {
		return err
	}
	if err := b.sameLog(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.instant()
	for i, l := range lines {
		if _, known := b.log.ahead[numbers[i]]; known || numbers[i]-b.log.number < 0 {
			continue // our own, whose answer came meanwhile
		}
		if l.found {
			v := b.jobs[l.id]
			if v == nil {
				v = &view{id: l.id}
			}
			b.emit(l.event, l.show(v, at), l.position, l.at, l.reason, l.owner)
		}
		b.reached(l.position)
		b.log.know(numbers[i], l.position)
		b.endsAt(numbers[i], l.position, within)
		b.folder.moved(l.position, l.children)
	}
	b.advance()
	return nil
}

// logLine is an entry of the log, if it could be read, and where it stands.
type logLine struct {
	entry

	position uint64
	at       int64
	found    bool
}

// show returns the job after the change, or as it is now. Of one that went to the trash that
// would not do: whoever is told of it has to learn why, also if it has left the trash again.
func (l *logLine) show(v *view, at instant) *driver.Record {
	rec := v.show(at, 0)
	if l.event != job.TrashedEvent || l.status == nil || rec.State == job.Trashed {
		return rec
	}
	return &driver.Record{
		Posting: rec.Posting, State: job.Trashed, Version: l.position, Position: driver.Position(l.position), Status: l.status,
		EndedAt: atMillis(l.at), ModifiedAt: atMillis(l.at),
	}
}

// readLine reads an entry, and the job that it is about if it is news.
func (b *board) readLine(ctx context.Context, path string) (logLine, error) {
	node, err := b.client().Get(ctx, path)
	if session.NoNode(err) {
		return logLine{}, errAgain // it was trimmed away: this host is too far behind
	}
	if err != nil {
		return logLine{}, err
	}
	e, err := decodeEntry(node.Data)
	if err != nil {
		b.store.log.Warn("an entry of the log cannot be read", "path", path, "error", err)
		return logLine{entry: entry{children: unknownChildren}, position: uint64(node.Stat.Czxid)}, nil // it is passed over
	}
	l := logLine{e, uint64(node.Stat.Czxid), node.Stat.Ctime, true}
	b.mu.Lock()
	v := b.jobs[e.id]
	known := v != nil && v.recZxid >= l.position
	b.mu.Unlock()
	if !known {
		_, err = b.refresh(ctx, e.id, anywhere)
	}
	return l, err
}

// trimLog takes the oldest entries away. One host does it; a second one that
// thinks that it is its turn finds them gone.
func (b *board) trimLog(ctx context.Context, names []string) error {
	b.mu.Lock()
	mine := !b.spec.Observe && b.hosts.first(b.name)
	end, acl, series := b.log.number, b.acl, b.root.log
	b.mu.Unlock()
	switch {
	case mine && end >= b.store.options.LogNumbers:
		return b.renewLog(ctx, acl)
	case !mine || len(names) <= trimLog:
		return nil
	}
	var numbers []int32
	for _, name := range names {
		if n, ok := logNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int { return int((a - end) - (b - end)) })
	numbers = numbers[:len(numbers)-keepLog]
	for part := range slices.Chunk(numbers, trimAtOnce) {
		m := b.client().Multi(nil)
		for _, n := range part {
			m.Delete(b.at.logEntry(series, n), -1)
		}
		if _, err := m.Do(ctx); err != nil && !session.Conflict(err) {
			return err
		}
	}
	return nil
}

// renewLog begins another folder for the log, before ZooKeeper gives no more
// numbers in this one. Each transaction checks the root, which names the folder,
// so that no host goes on with the old one unaware; and each reads the board anew.
func (b *board) renewLog(ctx context.Context, acl []session.ACL) error {
	r, err := b.readRoot(ctx)
	if err != nil {
		return err
	}
	next := r
	next.log++
	m := b.client().Multi(acl)
	m.Set(b.at.own, next.encode(), r.version)
	m.Create(b.at.log(next.log), nil, session.Persistent)
	if _, err := m.Do(ctx); err != nil {
		if session.Conflict(err) {
			return errAgain // another host has done it
		}
		return err
	}
	for old := r.log; old+2 > r.log; old-- { // and what was left of the one before
		if err := b.store.dropTree(ctx, b.at.log(old)); err != nil {
			return err
		}
		if old == 0 {
			break
		}
	}
	return errAgain
}
