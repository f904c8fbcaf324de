package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What an examination calls large: parts of what there is room for.
const (
	replyLimit    = 1_048_575 // bytes of a list of names that ZooKeeper's own clients take
	sequenceLimit = 1 << 31   // creations in one folder
	nearly        = 0.8
	overdue       = time.Minute // after the end of a lease
)

var errStopped = errors.New("nobody listens any more")

// Examine says what is wrong with a board in ZooKeeper. It reads only.
func (s *Store) Examine(ctx context.Context, name string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		b, err := s.ready(ctx, name)
		if err == nil {
			x := &examination{board: b, yield: func(f driver.Finding) bool { return yield(f, nil) }}
			err = x.run(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(driver.Finding{}, err)
		}
	}
}

type examination struct {
	*board
	yield func(driver.Finding) bool
}

func (x *examination) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{x.entries, x.locks, x.trash, x.unknown, x.words, x.others} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *examination) find(code string, severity driver.Severity, subject, problem, mend string) error {
	if !x.yield(driver.Finding{Code: code, Severity: severity, Subject: subject, Problem: problem, Mend: mend}) {
		return errStopped
	}
	return nil
}

// entries looks at the names in the folder: at how many there are, and at locks
// without a job.
func (x *examination) entries(ctx context.Context) error {
	folder, err := x.client().List(ctx, x.at.Board)
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	size, jobs := 0, map[string]bool{}
	var locks []string
	for _, name := range folder.Names {
		size += 4 + len(name)
		n, lock, ok, _ := taskflow.Child(name)
		switch {
		case ok && lock:
			locks = append(locks, taskflow.JobName(n))
		case ok:
			jobs[name] = true
		}
	}
	if float64(size) > nearly*replyLimit {
		if err := x.find("folder-large", driver.Warning, x.at.Board, fmt.Sprintf(
			"its list of names has %d bytes; ZooKeeper's own tools take up to %d, and boardd and TaskFlow more", size, replyLimit), ""); err != nil {
			return err
		}
	}
	if n := created(folder.Stat); n < 0 || float64(n) > nearly*sequenceLimit {
		if err := x.find("sequence-ends", driver.Warning, x.at.Board, fmt.Sprintf(
			"%d nodes were created in it; after %d ZooKeeper gives no more numbers", uint32(n), uint32(sequenceLimit)), "a board at a new path"); err != nil { //nolint:gosec // it wraps
			return err
		}
	}
	for _, name := range locks {
		if jobs[name] {
			continue
		}
		path := x.at.Lock(name)
		if err := x.find("orphan-lock", driver.Warning, path, "it is the lock of a job that is not there", "zkCli.sh delete "+path); err != nil {
			return err
		}
	}
	return nil
}

// meetOthers says once that another program changes jobs of a board that boardd alone is
// said to write. ZooKeeper tells of its changes all the same. b.mu is held.
func (b *board) meetOthers(v *view) {
	if *b.settings.Foreign || !b.loaded || b.other != (job.ID{}) {
		return
	}
	b.other = v.id
	b.store.log.Warn("other programs write to a board that boardd alone is said to write: say foreign = true in the board's config",
		"board", b.name, "job", v.id)
}

// others looks whether other programs write to the board though none is said to.
func (x *examination) others(context.Context) error {
	x.mu.Lock()
	other := x.other
	x.mu.Unlock()
	if other == (job.ID{}) {
		return nil
	}
	return x.find("foreign-writers", driver.Warning, "foreign = false", fmt.Sprintf("other programs write to the board: job %v is one that they changed", other),
		"set foreign = true in the board's config")
}

// locks looks at claims that nobody ends.
func (x *examination) locks(context.Context) error {
	x.mu.Lock()
	at := x.instant()
	var views []*view
	for _, v := range x.jobs {
		if v.held() {
			views = append(views, v)
		}
	}
	x.mu.Unlock()
	slices.SortFunc(views, byEnd)
	for _, v := range views {
		path := x.at.Lock(v.node)
		c, l := v.claim(), v.stranger()
		var err error
		switch {
		case c != nil && !v.live(at) && at.mono.Sub(v.seen) > c.lease+overdue:
			err = x.find("lapsed-claim", driver.Warning, path, fmt.Sprintf(
				"the claim of %q on job %v ran out %v ago, and no host has ended it: is one serving the board?", c.owner, v.id,
				(at.mono.Sub(v.seen)-c.lease).Round(time.Second)), "boardd job release "+v.id.String())
		case l != nil && l.owner == "":
			err = x.find("lock-without-owner", driver.Problem, path, fmt.Sprintf(
				"nobody can claim job %v: its lock names no owner, so that TaskFlow shows it unclaimed", v.id), "zkCli.sh delete "+path)
		case l != nil && l.session == 0:
			err = x.find("lasting-lock", driver.Warning, path, fmt.Sprintf(
				"job %v is claimed by %q with a lock that ends with no session, and boardd has not put it there", v.id, l.owner),
				"boardd job release "+v.id.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trash looks at jobs in the trash that lie beside their place, and at those
// whose posting is gone from it.
func (x *examination) trash(ctx context.Context) error {
	x.mu.Lock()
	var views []*view
	for _, v := range x.jobs {
		if v.rec != nil && v.rec.place == inTrash {
			views = append(views, v)
		}
	}
	x.mu.Unlock()
	slices.SortFunc(views, byEnd)
	beside := 0
	for _, v := range views {
		if strings.HasSuffix(v.rec.trash, v.id.String()) && !strings.HasSuffix(v.rec.trash, importedPrefix+v.id.String()) {
			beside++
		}
		stat, err := x.client().Exists(ctx, v.rec.trash)
		if err != nil {
			return err
		}
		if stat != nil {
			continue
		}
		if err := x.find("trash-emptied", driver.Problem, v.rec.trash, fmt.Sprintf(
			"the posting of job %v, which is in the trash, is gone from there: it cannot be restored", v.id), "boardd job purge "+v.id.String()); err != nil {
			return err
		}
	}
	if beside == 0 {
		return nil
	}
	return x.find("trash-collides", driver.Note, x.at.Trash, fmt.Sprintf(
		"another board has its trash here as well: %d jobs lie under names of their own; TaskFlow fails to trash a job where it meets one of the same number", beside), "")
}

// words looks at whether TaskFlow can connect at all.
func (x *examination) words(ctx context.Context) error {
	answer, err := x.client().Word(ctx, "envi")
	switch {
	case err != nil:
		return x.find("envi-unknown", driver.Note, "envi", "no server answers a four-letter word: "+err.Error(), "")
	case strings.Contains(answer, "zookeeper.version"):
		return nil
	}
	return x.find("envi-not-allowed", driver.Warning, "envi",
		"the servers do not answer the word envi, by which TaskFlow asks for their version: it cannot connect unless its check_compatible is false",
		"4lw.commands.whitelist=envi,srvr in zoo.cfg")
}

var _ driver.Examiner = (*Store)(nil)
