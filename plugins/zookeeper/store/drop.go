package store

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// dropAtOnce is how many nodes one transaction deletes.
const dropAtOnce = 64

// DropBoard takes away what boardd has put there for a board: its own folder,
// documents, the postings that it made and the locks that it holds. What
// TaskFlow has put on a shared board stays.
func (s *Store) DropBoard(ctx context.Context, name string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	b := s.boards[name]
	s.mu.Unlock()
	if b == nil {
		at, err := layoutOf(defaultPath(s.settings.root, name))
		if err != nil {
			return err
		}
		b = newBoard(s, name, at)
		b.hosts.list.Store(&[]string{})
		stat, err := s.client.Exists(ctx, at.own)
		if err != nil {
			return err
		}
		if stat != nil {
			// Its jobs have to be known.
			if _, err := s.OpenBoard(ctx, driver.BoardSpec{Name: name}); err != nil {
				return err
			}
			return s.DropBoard(ctx, name)
		}
	} else {
		if err := b.ready(ctx); err != nil {
			return err // its jobs have to be known
		}
		s.mu.Lock()
		delete(s.boards, name)
		s.mu.Unlock()
		b.end()
	}
	if err := b.dropNodes(ctx); err != nil {
		return err
	}
	documents := boardDocuments(s.settings.root, name)
	s.documents.shelves.Delete(documents)
	s.documents.made.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), documents+"/") { //nolint:forcetypeassert // all keys are
			s.documents.made.Delete(key)
		}
		return true
	})
	return s.dropTree(ctx, documents)
}

// dropNodes takes a board's nodes away.
func (b *board) dropNodes(ctx context.Context) error {
	b.mu.Lock()
	var paths []string
	for _, v := range b.jobs {
		switch {
		case v.node != "" && v.rec != nil && v.rec.posted:
			if v.lock != nil {
				paths = append(paths, b.at.Lock(v.node))
			}
			paths = append(paths, b.at.Job(v.node))
		case v.node != "" && v.ours():
			paths = append(paths, b.at.Lock(v.node))
		case v.rec != nil && v.rec.place == inTrash && v.rec.posted:
			paths = append(paths, v.rec.trash)
		}
	}
	b.mu.Unlock()
	if err := b.store.deleteAll(ctx, paths); err != nil {
		return err
	}
	failpoint.Hit("zookeeper/drop/jobs-deleted")
	if err := b.store.dropTree(ctx, b.at.own); err != nil {
		return err
	}
	if b.at.Board != defaultPath(b.store.settings.root, b.name) {
		return nil
	}
	// The folders are the driver's own: nobody else named that path.
	if err := b.store.dropTree(ctx, b.at.Entities); err != nil {
		return err
	}
	top := b.at.Board[:lastSlash(b.at.Board)]
	for _, path := range []string{b.at.Board, b.at.Trash, top + "/.boardd", top} {
		if err := b.store.deleteIfEmpty(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteIfEmpty(ctx context.Context, path string) error {
	if err := s.deleteThese(ctx, []string{path}); err != nil && !session.Conflict(err) {
		return err
	}
	return nil
}

// deleteThese deletes nodes together. It does so again where nobody knows
// whether it was done: then some are gone, which is a conflict.
func (s *Store) deleteThese(ctx context.Context, paths []string) error {
	for {
		m := s.client.Multi(nil)
		for _, path := range paths {
			m.Delete(path, -1)
		}
		_, err := m.Do(ctx)
		if job.KindOf(err) != job.OutcomeUnknown || ctx.Err() != nil {
			return err
		}
		if err := s.client.Ready(ctx); err != nil {
			return err
		}
	}
}

// dropTree deletes a folder with everything below it.
func (s *Store) dropTree(ctx context.Context, path string) error {
	for range maxTries {
		paths, err := s.below(ctx, path)
		if err != nil || len(paths) == 0 {
			return err
		}
		slices.Reverse(paths)
		if err := s.deleteAll(ctx, paths); err != nil {
			return err
		}
	}
	return job.Errorf(job.Unavailable, "%s is written to all the time: it could not be deleted", path)
}

// below returns a folder and everything below it, a folder before what it holds.
func (s *Store) below(ctx context.Context, path string) ([]string, error) {
	folder, err := s.client.List(ctx, path)
	if session.NoNode(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lists := make([][]string, len(folder.Names))
	for part := range slices.Chunk(indexes(len(folder.Names)), atOnce) {
		var work []func(context.Context) error
		for _, i := range part {
			work = append(work, func(ctx context.Context) error {
				var err error
				lists[i], err = s.below(ctx, path+"/"+folder.Names[i])
				return err
			})
		}
		if err := together(ctx, work); err != nil {
			return nil, err
		}
	}
	return append([]string{path}, slices.Concat(lists...)...), nil
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// deleteAll deletes nodes in order, as many at a time as go together. One that
// is gone already makes its company go one by one.
func (s *Store) deleteAll(ctx context.Context, paths []string) error {
	for part := range slices.Chunk(paths, dropAtOnce) {
		err := s.deleteThese(ctx, part)
		if err == nil {
			continue
		}
		if !session.Conflict(err) {
			return err
		}
		for _, path := range part {
			if err := s.deleteIfEmpty(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}
