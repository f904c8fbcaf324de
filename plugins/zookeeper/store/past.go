package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// past is what is remembered of what is over, beside the records themselves.
type past struct {
	adrift   []job.ID           // where their postings are has to be found out
	broken   []job.ID           // claims of theirs have ended that are still counted
	vanished []job.ID           // their postings are gone, and their records do not say so
	answers  map[[16]byte]int64 // answers to claims, by when they were given
	given    []given            // the same, the oldest first; some are no longer true
	next     time.Time          // when to look what is too old
	counters time.Time          // when to look for counters that nobody needs
	terms    time.Time          // when to look for entities whose time is over

	retention
}

// A given is an answer to a claim.
type given struct {
	request [16]byte
	at      int64
}

// answered notes an answer to a claim.
func (p *past) answered(request [16]byte, at int64) {
	p.answers[request] = at
	p.given = append(p.given, given{request, at})
}

func newPast() past {
	return past{answers: map[[16]byte]int64{}, counters: time.Now().Add(counterPause), retention: newRetention()}
}

// How often the past is gone through: by the host that forgets, and by the others.
const (
	trimPause = time.Second
	missPause = 10 * time.Second
)

// bury writes down that jobs have ended whose postings another program took
// away: in TaskFlow's trash if they lie there, else for good.
func (b *board) bury(ctx context.Context) error {
	b.mu.Lock()
	adrift := b.past.adrift
	b.past.adrift = nil
	b.mu.Unlock()
	for _, id := range adrift {
		if _, err := b.refresh(ctx, id, recorded); err != nil {
			return err
		}
	}
	b.mu.Lock()
	ids := b.past.vanished
	b.past.vanished = nil
	observe := b.spec.Observe
	b.mu.Unlock()
	if observe {
		return nil
	}
	aside := sync.OnceValues(func() (map[job.ID]string, error) { return b.strays(ctx) })
	for i, id := range ids {
		v := b.known(id)
		if v == nil || !v.gone() {
			continue
		}
		if err := b.buryOne(ctx, v, aside); err != nil {
			b.mu.Lock()
			b.past.vanished = append(b.past.vanished, ids[i:]...)
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// buryOne buries a job; aside gives what lies in the trash and no record says so.
func (b *board) buryOne(ctx context.Context, v *view, aside func() (map[job.ID]string, error)) error {
	if v.last == "" && v.rec.node == "" { // nobody wrote down the number that ZooKeeper gave its posting
		found, err := aside()
		if err != nil {
			return err
		}
		named := *v
		named.last = found[v.id]
		v = &named
	}
	ch := &change{rec: v.rec.clone(), event: job.ForeignChange, changed: true}
	ch.rec.claim, ch.rec.lock = nil, 0
	where, p, err := b.inTrash(ctx, v)
	if err != nil {
		return err
	}
	gone := *v
	if where != "" && v.post.ID != v.id { // the posting was never read where it was
		stat, err := b.client().Exists(ctx, b.at.record(v.id))
		if err != nil {
			return err
		}
		if stat != nil {
			gone.post, gone.czxid, gone.posted = p, v.rec.placed, stat.Ctime
		}
	}
	if gone.post.ID == v.id {
		gone.node = "known once"
		gone.carry(ch.rec)
	}
	if where != "" {
		ch.rec.place, ch.rec.trash = inTrash, where
	} else {
		ch.rec.place, ch.rec.end = ended, &ending{outcome: job.Consumed, stamped: true}
		ch.rec.limits, ch.rec.group = nil, ""
		ch.rec.status, ch.rec.holdAlways, ch.rec.holdUntil = nil, false, 0
	}
	if _, _, err := b.commit(ctx, v, ch); err != nil && !session.Conflict(err) {
		return err
	}
	_, err = b.refresh(ctx, v.id, recorded)
	return err
}

// adoptTrash gives a record to a job that only TaskFlow has had its hands on, and
// that TaskFlow has set aside now: nothing else says that it is in the trash. It
// reports whether the job has to be read again.
func (b *board) adoptTrash(ctx context.Context, old, v *view) (bool, error) {
	b.mu.Lock()
	observe := b.spec.Observe || b.root.rests()
	b.mu.Unlock()
	if observe || old == nil || old.node == "" || v.rec != nil || v.node != "" {
		return false, nil
	}
	where, _, err := b.inTrash(ctx, v)
	if err != nil || where == "" {
		return false, err
	}
	ch := &change{rec: &record{place: inTrash, trash: where}, event: job.ForeignChange, changed: true}
	old.carry(ch.rec)
	if _, _, err = b.commit(ctx, v, ch); session.Conflict(err) {
		err = nil // another host was faster
	}
	return err == nil, err
}

// inTrash returns where TaskFlow has put a job that it set aside, and its posting
// without details; "" if it has not.
func (b *board) inTrash(ctx context.Context, v *view) (string, taskflow.Posting, error) {
	none := taskflow.Posting{}
	name := v.last
	if name == "" {
		name = v.rec.node
	}
	if name == "" {
		return "", none, nil
	}
	path := b.at.Trashed(name)
	node, err := b.client().Get(ctx, path)
	if session.NoNode(err) {
		return "", none, nil
	}
	if err != nil {
		return "", none, err
	}
	p, err := taskflow.DecodeZooKeeper(node.Data)
	if err != nil || p.ID != v.id {
		return "", none, nil //nolint:nilerr // it is another board's
	}
	p.Details = nil
	return path, p, nil
}

// strays returns the postings' names of the jobs in the trash of which no record that is known
// says that they are there. Some are those of boards beside this one.
func (b *board) strays(ctx context.Context) (map[job.ID]string, error) {
	folder, err := b.client().List(ctx, b.at.Trash)
	if err != nil && !session.NoNode(err) {
		return nil, err
	}
	b.mu.Lock()
	known := map[string]bool{}
	for _, v := range b.jobs {
		if v.rec != nil && v.rec.place == inTrash {
			known[base(v.rec.trash)] = true
		}
	}
	b.mu.Unlock()
	ids := make([]job.ID, len(folder.Names))
	var work []func(context.Context) error
	for i, name := range folder.Names {
		if known[name] {
			continue
		}
		work = append(work, func(ctx context.Context) error {
			node, err := b.client().Get(ctx, b.at.Trashed(name))
			if err != nil && !session.NoNode(err) {
				return err
			}
			if p, err := taskflow.DecodeZooKeeper(node.Data); err == nil {
				ids[i] = p.ID
			}
			return nil
		})
	}
	if err := together(ctx, work); err != nil {
		return nil, err
	}
	found := map[job.ID]string{}
	for i, id := range ids {
		if id != (job.ID{}) {
			found[id] = folder.Names[i]
		}
	}
	return found, nil
}

// trim forgets what is older than the board remembers, or more than it may. Of
// several hosts one deletes the records, and the others find them gone.
func (b *board) trim(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	idle := b.tally.ended+b.tally.gone == 0 && len(b.past.answers) == 0
	if now.Before(b.past.next) || idle || b.spec.Observe {
		b.mu.Unlock()
		return nil
	}
	first := b.hosts.first(b.name)
	pause := missPause
	if first {
		pause = trimPause
	}
	b.past.next = now.Add(pause)
	forget, strip := b.tooMuch(b.instant())
	answers := b.oldAnswers(b.instant())
	b.mu.Unlock()
	var work []func(context.Context) error
	switch {
	case first:
		work = b.trimRecords(forget, strip)
	case len(forget) > 0:
		work = append(work, b.missRecords)
	}
	for _, request := range answers {
		work = append(work, func(ctx context.Context) error { return b.forgetAnswer(ctx, request) })
	}
	return together(ctx, work)
}

// trimRecords returns the work of forgetting jobs, and of what has to make room.
func (b *board) trimRecords(forget []*view, strip []stripping) (work []func(context.Context) error) {
	for part := range slices.Chunk(forget, forgetAtOnce) {
		work = append(work, func(ctx context.Context) error { return b.forget(ctx, part) })
	}
	for _, v := range strip {
		work = append(work, func(ctx context.Context) error { return b.strip(ctx, v) })
	}
	return work
}

// missRecords finds out which jobs that are over another host has forgotten, which tells
// nobody, and forgets them here.
func (b *board) missRecords(ctx context.Context) error {
	b.mu.Lock()
	missed := map[job.ID]*view{}
	for id := range b.past.retention.jobs {
		missed[id] = b.jobs[id]
	}
	b.mu.Unlock()
	there, err := b.listRecords(ctx)
	if err != nil {
		return err
	}
	for _, id := range there {
		delete(missed, id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, v := range missed {
		if b.jobs[id] == v {
			b.put(&view{id: id})
		}
	}
	return nil
}

// forgetAtOnce is how many records go in one transaction.
const forgetAtOnce = 32

// A stripping takes parts of an ended job's record away.
type stripping struct {
	view        *view
	final, mark bool // the final record; the tombstone
}

func byEnd(a, b *view) int {
	switch x, y := a.position(), b.position(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// forget deletes records with all that belongs to them. If one was changed
// meanwhile, none is, and each is looked at again.
func (b *board) forget(ctx context.Context, list []*view) error {
	b.mu.Lock()
	root := b.root
	b.mu.Unlock()
	if root.rests() {
		return nil
	}
	m := b.client().Multi(nil)
	m.Check(b.at.own, root.version)
	for _, v := range list {
		for _, name := range v.rec.attached {
			m.Delete(b.at.attached(v.id, name), -1)
		}
		m.Delete(b.at.record(v.id), v.recVersion)
	}
	if half := len(list) / 2; m.Size() > session.MaxRequest && half > 0 {
		if err := b.forget(ctx, list[:half]); err != nil {
			return err
		}
		return b.forget(ctx, list[half:])
	}
	_, err := m.Do(ctx)
	if session.Conflict(err) {
		for _, v := range list {
			if _, err := b.refresh(ctx, v.id, recorded); err != nil {
				return err
			}
		}
		return b.checkRoot(ctx)
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range list {
		if b.jobs[v.id] == v {
			b.put(&view{id: v.id})
		}
	}
	return nil
}

// strip takes a part of an ended job's record away, which is no change of the
// job.
func (b *board) strip(ctx context.Context, s stripping) error {
	v, err := b.refresh(ctx, s.view.id, recorded) // whole
	if err != nil || v.slim || v.recVersion != s.view.recVersion || v.rec == nil || v.rec.end == nil {
		return err
	}
	ch := &change{rec: v.rec.clone(), quiet: true, silent: true}
	if s.mark {
		ch.rec.end.stamped = false
	}
	if s.final {
		e := ch.rec.end
		e.until, e.data, e.details, e.kept = 0, nil, nil, false
		ch.rec.status, ch.rec.extra = nil, nil
		ch.drop, ch.rec.attached = ch.rec.attached, nil
	}
	_, _, err = b.commit(ctx, v, ch)
	if session.Conflict(err) {
		_, err = b.refresh(ctx, v.id, recorded)
	}
	return err
}
