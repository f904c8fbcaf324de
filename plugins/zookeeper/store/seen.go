package store

import (
	"context"
	"slices"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// Boards beside each other have one trash in TaskFlow's layout, and an entry of it
// does not say from which board it came. A job that boardd has touched has a record,
// which says so. Of the others the board keeps the uuids: an entry of the trash
// belongs to the board that saw its uuid. They are kept in ZooKeeper, many to a
// node, by one of the hosts that serve the board, so that it is known as well when
// none was there as the job was set aside.

// A sighting is one job that only TaskFlow has touched.
type sighting struct {
	id     job.ID
	node   string // the posting's
	czxid  uint64
	posted int64 // in Unix milliseconds
}

// sightings are what a board keeps of such jobs.
type sightings struct {
	read   bool              // this host keeps them, and has read what there was
	chunks map[string]int    // the nodes that are there: how many of their jobs are on the board and only TaskFlow's
	of     map[job.ID]seenAt // those jobs
	fresh  map[job.ID]bool   // seen and not written yet
}

type seenAt struct{ chunk, node string }

const (
	seenMost  = 2000 // jobs in one node
	seenSmall = 500  // with fewer that still count, a node is written anew together with others
	seenNodes = 16   // of which there may be so many
)

// saw takes note of what became of a job. b.mu is held.
func (s *sightings) saw(v *view) {
	if !s.read {
		return
	}
	foreign := v.node != "" && v.rec == nil
	at, kept := s.of[v.id]
	switch {
	case kept && (!foreign || at.node != v.node):
		delete(s.of, v.id)
		s.chunks[at.chunk]--
	case kept:
		return
	}
	if foreign {
		s.fresh[v.id] = true
	}
}

// keepSightings writes which jobs were seen, and takes away what is not needed any
// more. One host of a board does it.
func (b *board) keepSightings(ctx context.Context) error {
	b.mu.Lock()
	if b.spec.Observe || !b.hosts.first(b.name) {
		b.seen = sightings{}
		b.mu.Unlock()
		return nil
	}
	begin := !b.seen.read
	b.mu.Unlock()
	if begin {
		if err := b.readSightings(ctx); err != nil {
			b.mu.Lock()
			b.seen.read = false // what was not looked for in the trash is not forgotten
			b.mu.Unlock()
			return err
		}
	}
	b.mu.Lock()
	fresh := b.foreign(b.seen.fresh)
	clear(b.seen.fresh)
	b.mu.Unlock()
	for part := range slices.Chunk(fresh, seenMost) {
		if err := b.writeSightings(ctx, part, nil); err != nil {
			b.mu.Lock()
			b.seen.read = false // whether it was written is found out
			b.mu.Unlock()
			return err
		}
	}
	return b.tidySightings(ctx)
}

// foreign returns sightings of those jobs that are on the board and only TaskFlow's.
// b.mu is held.
func (b *board) foreign(ids map[job.ID]bool) []sighting {
	var list []sighting
	for id := range ids {
		if v := b.jobs[id]; v != nil && v.node != "" && v.rec == nil {
			list = append(list, sighting{id, v.node, v.czxid, v.posted})
		}
	}
	return list
}

// readSightings reads what hosts of before have seen. A job of which nothing is on
// the board may be in the trash, and is this board's then.
func (b *board) readSightings(ctx context.Context) error {
	folder, err := b.client().List(ctx, b.at.seen())
	if err != nil && !session.NoNode(err) {
		return err
	}
	trash, err := b.client().List(ctx, b.at.Trash)
	if err != nil && !session.NoNode(err) {
		return err
	}
	aside := make(map[string]bool, len(trash.Names))
	for _, name := range trash.Names {
		aside[name] = true
	}
	lists := make([][]sighting, len(folder.Names))
	work := make([]func(context.Context) error, len(folder.Names))
	for i, name := range folder.Names {
		work[i] = func(ctx context.Context) error {
			node, err := b.client().Get(ctx, b.at.seen()+"/"+name)
			if err != nil && !session.NoNode(err) {
				return err
			}
			lists[i] = decodeSightings(node.Data)
			return nil
		}
	}
	if err := together(ctx, work); err != nil {
		return err
	}
	b.mu.Lock()
	work = b.resight(folder.Names, lists, aside)
	b.mu.Unlock()
	return together(ctx, work)
}

// resight takes note of what was seen before, and returns what is to be done about
// jobs that are in the trash by now. b.mu is held.
func (b *board) resight(chunks []string, lists [][]sighting, aside map[string]bool) (work []func(context.Context) error) {
	s := sightings{read: true, chunks: map[string]int{}, of: map[job.ID]seenAt{}, fresh: map[job.ID]bool{}}
	for i, name := range chunks {
		s.chunks[name] = 0
		for _, seen := range lists[i] {
			v := b.jobs[seen.id]
			_, twice := s.of[seen.id]
			switch {
			case v == nil && aside[base(b.at.Trashed(seen.node))]:
				work = append(work, func(ctx context.Context) error { return b.adoptSeen(ctx, seen) })
			case v != nil && v.rec == nil && v.node == seen.node && !twice:
				s.of[seen.id] = seenAt{name, seen.node}
				s.chunks[name]++
			}
		}
	}
	for id, v := range b.jobs {
		if _, kept := s.of[id]; !kept && v.rec == nil && v.node != "" {
			s.fresh[id] = true
		}
	}
	b.seen = s
	return work
}

// adoptSeen gives a record to a job that was seen once and lies in TaskFlow's trash
// now.
func (b *board) adoptSeen(ctx context.Context, seen sighting) error {
	v := &view{id: seen.id, last: seen.node, lastCzxid: seen.czxid}
	where, p, err := b.inTrash(ctx, v)
	if err != nil || where == "" {
		return err // it is another board's
	}
	ch := &change{rec: &record{place: inTrash, trash: where}, event: job.ForeignChange, changed: true}
	(&view{id: seen.id, node: seen.node, post: p, czxid: seen.czxid, posted: seen.posted}).carry(ch.rec)
	if _, _, err = b.commit(ctx, v, ch); session.Conflict(err) {
		err = nil // another host was faster
	}
	return err
}

// writeSightings writes a node, in the place of others.
func (b *board) writeSightings(ctx context.Context, list []sighting, instead []string) error {
	b.mu.Lock()
	root, acl := b.root.version, b.acl
	b.mu.Unlock()
	if err := b.client().EnsurePath(ctx, b.at.seen(), acl); err != nil {
		return err
	}
	m := b.client().Multi(acl)
	m.Check(b.at.own, root)
	at := m.Create(b.at.seen()+"/s", encodeSightings(list), session.Persistent|session.Sequential)
	for _, name := range instead {
		m.Delete(b.at.seen()+"/"+name, -1)
	}
	done, err := m.Do(ctx)
	if err != nil {
		return err
	}
	name := base(done[at].Path)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, old := range instead {
		delete(b.seen.chunks, old)
	}
	b.seen.chunks[name] = 0
	for _, seen := range list {
		delete(b.seen.of, seen.id)
		if v := b.jobs[seen.id]; v != nil && v.rec == nil && v.node == seen.node {
			b.seen.of[seen.id] = seenAt{name, seen.node}
			b.seen.chunks[name]++
		}
	}
	return nil
}

// tidySightings takes nodes away that no job needs, and joins small ones.
func (b *board) tidySightings(ctx context.Context) error {
	b.mu.Lock()
	var empty, small []string
	for name, n := range b.seen.chunks {
		switch {
		case n == 0:
			empty = append(empty, b.at.seen()+"/"+name)
			delete(b.seen.chunks, name)
		case n < seenSmall:
			small = append(small, name)
		}
	}
	joined := map[job.ID]bool{}
	if len(small) > seenNodes {
		small = small[:seenMost/seenSmall]
		for id, at := range b.seen.of {
			if slices.Contains(small, at.chunk) {
				joined[id] = true
			}
		}
	}
	list := b.foreign(joined)
	b.mu.Unlock()
	if len(empty) > 0 {
		if err := b.store.deleteAll(ctx, empty); err != nil {
			return err
		}
	}
	if len(joined) == 0 {
		return nil
	}
	return b.writeSightings(ctx, list, small)
}

const seenFormat = 1

func encodeSightings(list []sighting) []byte {
	w := writer{[]byte{seenFormat}}
	w.uint(uint64(len(list)))
	for _, s := range list {
		w.raw(s.id[:])
		w.bytes([]byte(s.node))
		w.uint(s.czxid)
		w.int(s.posted)
	}
	return w.out
}

// decodeSightings reads as many as can be read.
func decodeSightings(data []byte) []sighting {
	d := reader{in: data}
	if d.byte() != seenFormat {
		return nil
	}
	var list []sighting
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		var s sighting
		d.raw(s.id[:])
		s.node, s.czxid, s.posted = string(d.bytes()), d.uint(), d.int()
		if d.err == nil {
			list = append(list, s)
		}
	}
	return list
}
