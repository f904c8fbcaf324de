package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// A store is the driver in memory, whose changes go to files. A board's lock is
// held from before a change until it is on the disk, and whoever reads waits for
// it, so nobody ever learns of a change that a crash could take back.
type store struct {
	driver.Driver
	files  folder
	mine   io.Closer // ends the right to the folder
	logger *slog.Logger
	locks  sync.Map // of *sync.RWMutex, by board
}

// Open loads every file of the folder.
func Open(ctx context.Context, c driver.Config) (driver.Driver, error) {
	var settings struct {
		Path string `json:"path"`
	}
	if len(c.Settings) > 0 {
		if err := json.Unmarshal(c.Settings, &settings); err != nil {
			return nil, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
		}
	}
	if settings.Path == "" {
		settings.Path = c.DataDir
	}
	if settings.Path == "" {
		return nil, job.Errorf(job.Invalid, "the setting path is needed here, since boardd has no data_dir")
	}
	memory, err := memdriver.Open(ctx, driver.Config{})
	if err != nil {
		return nil, err
	}
	s := &store{Driver: memory, files: folder(settings.Path), logger: c.Logger}
	if s.mine, err = s.files.load(memory); err != nil {
		return nil, &job.Error{Kind: job.Unavailable, Err: err}
	}
	s.save("") // says which store this is, before there is a board
	return s, nil
}

func (s *store) Close() error { return errors.Join(s.Driver.Close(), s.mine.Close()) }

func (s *store) lock(board string) *sync.RWMutex {
	lock, _ := s.locks.LoadOrStore(board, new(sync.RWMutex))
	return lock.(*sync.RWMutex)
}

// settled returns when every change that can be seen now is on the disk.
func (s *store) settled(board string) {
	lock := s.lock(board)
	lock.RLock()
	lock.RUnlock() //nolint:staticcheck // waiting is all that is wanted
}

// save writes a board's file. If that fails, memory and disk differ, and which
// of them will count nobody knows: only a new start, from the disk, is safe.
func (s *store) save(board string) {
	if err := s.files.save(s.Driver, board); err != nil {
		s.logger.Error("a file cannot be written; the driver ends", "board", board, "error", err)
		os.Exit(1)
	}
}

func (s *store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	lock := s.lock(spec.Name)
	lock.Lock()
	defer lock.Unlock()
	status, err := s.Driver.OpenBoard(ctx, spec)
	if err == nil && status.Loss != "" {
		s.save(spec.Name) // its generation is a new one
	}
	status.Durability = driver.Durable
	return status, err
}

func (s *store) DropBoard(ctx context.Context, board string) error {
	lock := s.lock(board)
	lock.Lock()
	defer lock.Unlock()
	err := s.Driver.DropBoard(ctx, board)
	if err == nil {
		err = s.files.remove(board)
	}
	return err
}

// Apply writes the file once for all ops of a batch: the host gathers them.
func (s *store) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	lock := s.lock(board)
	lock.Lock()
	defer lock.Unlock()
	results := s.Driver.Apply(ctx, board, ops)
	changed := func(r driver.Result) bool { return r.Kind == job.NoKind && !r.Repeated }
	if slices.ContainsFunc(results, changed) {
		s.save(board)
	}
	return results
}

func (s *store) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	lock := s.lock(board)
	lock.RLock()
	defer lock.RUnlock()
	return s.Driver.Read(ctx, board, ids, parts)
}

func (s *store) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return held(s.Driver.Scan(ctx, board, req), func() { s.settled(board) })
}

func (s *store) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return held(s.Driver.Watch(ctx, board, after), func() { s.settled(board) })
}

// held calls wait before each step of a stream.
func held[V any](stream iter.Seq2[V, error], wait func()) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range stream {
			wait()
			if !yield(v, err) {
				return
			}
		}
	}
}

func (s *store) Documents() driver.Documents { return documents{s.Driver.Documents(), s} }

type documents struct {
	driver.Documents
	store *store
}

func (d documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	defer d.store.settled(space.Board)
	return d.Documents.Get(ctx, space, name)
}

func (d documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	defer d.store.settled(space.Board)
	return d.Documents.List(ctx, space, after, limit)
}

func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return held(d.Documents.Watch(ctx, space), func() { d.store.settled(space.Board) })
}

func (d documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	lock := d.store.lock(space.Board)
	lock.Lock()
	defer lock.Unlock()
	version, err := d.Documents.Put(ctx, space, doc, ifVersion)
	if err == nil {
		d.store.save(space.Board)
	}
	return version, err
}

func (d documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	lock := d.store.lock(space.Board)
	lock.Lock()
	defer lock.Unlock()
	err := d.Documents.Delete(ctx, space, name, ifVersion)
	if err == nil {
		d.store.save(space.Board)
	}
	return err
}
