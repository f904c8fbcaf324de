package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// A root is boardd's folder for a board: what it is, and its generation. Each
// transaction checks its version, so that none is made by a host that has not
// heard of a new generation, or that the board moves.
type root struct {
	id         [16]byte // random; tells this board from one that was lost
	generation uint64
	log        uint32 // how often the log has begun anew
	offset     uint64 // see instant.shown; 0: the board never came from another store
	passage    transition.Passage
	entering   bool // the board receives, and whether somebody holds a job of it is yet to be looked at

	version int32
	zxid    uint64 // of the node's last change
	there   bool
}

const (
	rootFormat  = 1
	rootSize    = 1 + 16 + 8 + 4
	movedFormat = 2                // of a board that moves, or came from another store; programs of before read no such root
	movedSize   = rootSize + 8 + 1 // and then what Passage.Bytes gives
)

// moved reports whether there is more to say of the board than of one that stayed.
func (r root) moved() bool { return r.offset > 0 || r.passage != transition.Passage{} }

func (r root) encode() []byte {
	format := byte(rootFormat)
	if r.moved() {
		format = movedFormat
	}
	out := append(make([]byte, 0, movedSize+len(r.passage.Move)+1), format)
	out = append(out, r.id[:]...)
	out = binary.BigEndian.AppendUint64(out, r.generation)
	out = binary.BigEndian.AppendUint32(out, r.log)
	if format == rootFormat {
		return out
	}
	out = binary.BigEndian.AppendUint64(out, r.offset)
	entering := byte(0)
	if r.entering {
		entering = 1
	}
	return append(append(out, entering), r.passage.Bytes()...)
}

func decodeRoot(data []byte) (root, error) {
	moved := len(data) >= movedSize && data[0] == movedFormat
	if !moved && (len(data) != rootSize || data[0] != rootFormat) {
		return root{}, fmt.Errorf("it has %d bytes of another format: this program reads %d of format %d, or at least %d of format %d",
			len(data), rootSize, rootFormat, movedSize, movedFormat)
	}
	r := root{id: [16]byte(data[1:]), generation: binary.BigEndian.Uint64(data[17:]), log: binary.BigEndian.Uint32(data[25:]), there: true}
	if r.generation == 0 {
		return root{}, errors.New("its generation is 0")
	}
	if !moved {
		return r, nil
	}
	var err error
	r.offset, r.entering = binary.BigEndian.Uint64(data[rootSize:]), data[movedSize-1] == 1
	if r.passage, err = transition.ReadPassage(data[movedSize:]); err != nil {
		return root{}, err
	}
	if !r.moved() || data[movedSize-1] > 1 || r.entering && !r.passage.Receiving {
		return root{}, fmt.Errorf("it is of format %d, and says nothing that format %d could not", movedFormat, rootFormat)
	}
	return r, nil
}

// readRoot reads the root, or says that there is none.
func (b *board) readRoot(ctx context.Context) (root, error) {
	node, err := b.client().Get(ctx, b.at.own)
	return b.rootIn(node, err)
}

// watchRoot does so, and watches it.
func (b *board) watchRoot(ctx context.Context) (root, <-chan session.Event, error) {
	node, event, err := b.client().GetWatched(ctx, b.at.own)
	r, err := b.rootIn(node, err)
	return r, event, err
}

// rootIn reads what Get has given.
func (b *board) rootIn(node session.Node, err error) (root, error) {
	if session.NoNode(err) {
		return root{generation: 1}, nil
	}
	if err != nil {
		return root{}, err
	}
	r, err := decodeRoot(node.Data)
	if err != nil {
		return root{}, job.Errorf(job.Corrupt, "%s cannot be read: %v", b.at.own, err)
	}
	r.version, r.zxid = node.Stat.Version, uint64(node.Stat.Mzxid)
	return r, nil
}

// makeRoot makes the folders of a new board.
func (b *board) makeRoot(ctx context.Context, generation uint64) error {
	acl := b.acl
	for _, path := range []string{b.at.Board, b.at.Trash, b.at.own[:len(b.at.own)-len(b.at.own[lastSlash(b.at.own):])]} {
		if err := b.client().EnsurePath(ctx, path, acl); err != nil {
			return err
		}
	}
	r := root{generation: generation}
	_, _ = rand.Read(r.id[:]) // never fails
	m := b.client().Multi(acl)
	m.Create(b.at.own, r.encode(), session.Persistent)
	for _, path := range []string{b.at.records(), b.at.log(0), b.at.answers(), b.at.hosts(), b.at.limits()} {
		m.Create(path, nil, session.Persistent)
	}
	for n := range shards {
		m.Create(b.at.shard(n), nil, session.Persistent)
	}
	failpoint.Hit("zookeeper/board/before-multi")
	if _, err := m.Do(ctx); err != nil && !session.Conflict(err) {
		return err
	}
	failpoint.Hit("zookeeper/board/after-multi")
	return nil
}

func lastSlash(path string) int {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return i
		}
	}
	return 0
}

// raise begins a new generation, unless another host has done so since r was
// read.
func (b *board) raise(ctx context.Context, r root, atLeast uint64) error {
	next := r
	next.generation = max(r.generation+1, atLeast)
	m := b.client().Multi(nil)
	m.Set(b.at.own, next.encode(), r.version)
	if _, err := m.Do(ctx); err != nil && !session.Conflict(err) {
		return err
	}
	return nil
}

// open waits until the board is loaded and says how it stands. What the host
// remembers of it tells whether changes were lost; then a new generation begins.
func (b *board) open(ctx context.Context, memory []byte, seen uint64) (driver.BoardStatus, error) {
	loss := ""
	for range 10 {
		if err := b.ready(ctx); err != nil {
			return driver.BoardStatus{}, err
		}
		epoch, _ := b.client().Epoch()
		if same, err := b.latestRoot(ctx); err != nil || !same {
			if err != nil {
				return driver.BoardStatus{}, err
			}
			continue
		}
		if err := b.catchUp(ctx); err != nil {
			return driver.BoardStatus{}, err
		}
		log, earlier, known, err := b.countLog(ctx)
		if err != nil {
			return driver.BoardStatus{}, err
		}
		now, _ := b.client().Epoch()
		b.mu.Lock()
		if now != epoch || !b.loaded || known && log.series != b.root.log { // another session may see less of the store
			b.mu.Unlock()
			continue
		}
		r, observe := b.root, b.spec.Observe
		position := uint64(b.instant().shown(b.horizon))
		if r.passage.Receiving { // who watched the board in the other store begins anew here
			b.events.floor = max(b.events.floor, b.events.told)
		}
		status := b.status()
		missing := !r.there && !observe
		b.mu.Unlock()
		lost, before := r.recall(memory, seen, position)
		if known && lost == "" {
			lost, before = earlier.lost(&r, log), max(before, earlier.generation)
		}
		switch {
		case missing:
			b.reload(job.Errorf(job.Unavailable, "the board's folders are being made"))
			continue
		case lost != "" && loss == "" && !observe && before >= r.generation:
			if err := b.raise(ctx, r, before+1); err != nil {
				return driver.BoardStatus{}, err
			}
			loss = lost
			b.forgetLog()
			b.reload(job.Errorf(job.Unavailable, "the board begins a new generation"))
			continue
		case lost != "" && loss == "":
			loss = lost // another host has begun the generation already
		}
		b.recalled(&earlier)
		status.Loss = loss
		if observe && lost != "" {
			status.Generation = max(before, r.generation) + 1
		}
		return status, nil
	}
	return driver.BoardStatus{}, job.Errorf(job.Unavailable, "the board is changed by others all the time")
}

// status says how the board stands. b.mu is held.
func (b *board) status() driver.BoardStatus {
	durability := driver.Replicated
	if len(b.store.settings.session.Servers) == 1 {
		durability = driver.Durable // for all that is known; one name may stand for many servers
	}
	return driver.BoardStatus{
		Generation: b.root.generation, Position: b.instant().shown(b.sofar(b.events.told)), Durability: durability,
		Capabilities: b.capabilities(), Window: b.spec.Window, MaxFinals: b.spec.MaxFinals,
		Witness: b.root.memory(uint64(b.instant().shown(b.horizon))),
	}
}

// checkRoot has the board read anew if it has another generation than is known,
// or is gone.
func (b *board) checkRoot(ctx context.Context) error {
	now, err := b.readRoot(ctx)
	if err == nil {
		b.noteRoot(now, nil)
	}
	return err
}

// latestRoot does so with the root as it stands now for everybody, and reports whether the
// board need not be read anew.
func (b *board) latestRoot(ctx context.Context) (same bool, err error) {
	if err := b.client().Sync(ctx, b.at.own); err != nil {
		return false, err
	}
	now, err := b.readRoot(ctx)
	if err != nil {
		return false, err
	}
	return b.noteRoot(now, nil), nil
}

// rootFired reports whether the root was changed and is not read yet. b.mu is held.
func (b *board) rootFired() bool {
	select {
	case <-b.rootEvent:
		b.rootEvent, b.rootDue = nil, true
		b.wake()
	default:
	}
	return b.rootDue
}

// heedRoot does so if the watch of the root has fired. ZooKeeper tells of that before it tells
// of anything later: after a Sync, the root is known as it stood then.
func (b *board) heedRoot(ctx context.Context) error {
	b.mu.Lock()
	select {
	case <-b.rootEvent:
		b.rootEvent = nil
	default:
	}
	fired := b.rootEvent == nil
	b.mu.Unlock()
	if !fired {
		return nil
	}
	now, event, err := b.watchRoot(ctx)
	if err == nil {
		b.noteRoot(now, event)
	}
	if err == nil || job.KindOf(err) == job.Corrupt {
		b.mu.Lock()
		b.rootDue = false
		b.mu.Unlock()
	}
	return err
}

// noteRoot takes note of how the root was read, with its watch if there is one, and reports
// whether the board need not be read anew for it: how it moves says nothing of its jobs.
func (b *board) noteRoot(now root, event <-chan session.Event) (same bool) {
	b.mu.Lock()
	known, observe := b.root, b.spec.Observe
	later := now.there && known.there && now.zxid > known.zxid
	same = now.alike(known) || now.there && known.there && now.zxid < known.zxid // read before
	if same && event != nil {
		b.rootEvent = event
	}
	if same && later {
		b.root, b.frozen = now, now.freezes(b.frozen)
		b.reached(now.zxid)
		b.wake()
	}
	b.mu.Unlock()
	if same || observe && (!now.there || !known.there) { // who observes makes no root
		return true
	}
	b.reload(job.Errorf(job.Unavailable, "the board has a new generation, or came from another store"))
	return false
}

// freezes returns the change that froze the board: what was known of it, or the root's last one; 0:
// it is not frozen.
func (r root) freezes(known uint64) uint64 {
	switch {
	case r.passage.Closed() == nil || r.passage.Receiving:
		return 0
	case known > 0:
		return known
	}
	return r.zxid
}

// sofar is how far the board is said to have come that has come to a change. ZooKeeper goes on
// counting what is done elsewhere: of a board that a move froze, nobody may be told that it went on,
// since the new store numbers its changes from there. b.mu is held.
func (b *board) sofar(upTo uint64) uint64 {
	if b.frozen > 0 {
		return min(upTo, b.frozen)
	}
	return upTo
}

// alike reports whether a board that is known by one root is known by the other one, too.
func (r root) alike(o root) bool {
	return r.there == o.there && r.id == o.id && r.generation == o.generation && r.log == o.log && r.offset == o.offset
}

// sameRoot returns errAgain if the board's root is another than is known.
func (b *board) sameRoot(ctx context.Context) error {
	b.mu.Lock()
	known := b.root
	b.mu.Unlock()
	now, err := b.readRoot(ctx)
	if err == nil && !now.alike(known) {
		err = errAgain
	}
	return err
}
