package store

import (
	"bytes"
	"context"
	_ "embed"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

//go:embed lua/documents.lua
var documentsLua string

var documentsScript = newScript(documentsLua)

// documentsWake is the channel on which a change of any document is told: the message is the
// key with the space's data.
const documentsWake = "boardd:documents"

// documentsPrefix is how the keys of all spaces begin.
const documentsPrefix = "boardd:{doc:"

// sweptDocuments is how many others a put of a document that expires looks at, to take away
// those that have expired.
const sweptDocuments = 4

// documents is the small records of a Redis.
type documents struct{ *Store }

// Documents returns the small records.
func (s *Store) Documents() driver.Documents { return s.documents() }

func (s *Store) documents() documents { return documents{s} }

// A documentKeys is the keys of one space. They have a hash tag, so that Redis Cluster
// keeps them together.
type documentKeys struct {
	space                      driver.Space
	data, names, changed, gone string
	spaces, moved              string
}

func documentKeysOf(space driver.Space) documentKeys {
	board := spacesOf(space.Board)
	base := board + space.Name + ":"
	return documentKeys{space: space, data: base + "data", names: base + "names", changed: base + "changed", gone: base + "gone", spaces: board, moved: movedOf(space.Board)}
}

// spacesOf is the set of a board's spaces, and how all their keys begin.
func spacesOf(board string) string { return documentsPrefix + board + "}:" }

// movedOf is the key that says why a board that moves takes no changes of documents.
func movedOf(board string) string { return spacesOf(board) + "moved" }

func (f *documentKeys) keys() []string {
	return []string{f.data, f.names, f.changed, f.gone, f.spaces, f.moved}
}

// Get returns a document.
func (d documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if err := checkDocument(ctx, space, name); err != nil {
		return driver.Document{}, err
	}
	f := documentKeysOf(space)
	list, err := d.fetch(ctx, &f, []string{name})
	if err != nil {
		return driver.Document{}, err
	}
	if len(list) == 0 {
		return driver.Document{}, document.NotThere(name)
	}
	return list[0], nil
}

// fetch returns those of the named documents that are there.
func (d documents) fetch(ctx context.Context, f *documentKeys, names []string) ([]driver.Document, error) {
	var values *redis.SliceCmd
	var now *redis.TimeCmd
	_, err := d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		values, now = p.HMGet(ctx, f.data, names...), p.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, readFailed(ctx, err)
	}
	var list []driver.Document
	for i, name := range names {
		raw := value(values, i)
		if raw == nil {
			continue
		}
		u := unpacker{b: raw}
		doc := driver.Document{Name: name, Version: u.u64(), Expires: u.time()}
		u.take(16)
		if u.short {
			return nil, job.Errorf(job.Corrupt, "the document %q of space %q cannot be read", name, f.space.Name)
		}
		doc.Data = bytes.Clone(u.b)
		if !doc.Expired(now.Val()) {
			list = append(list, doc)
		} else if !d.observes(f.space.Board) {
			d.reap(ctx, f, name, doc.Version)
		}
	}
	return list, nil
}

// reap takes a document away that has expired; if that fails, somebody else
// will.
func (d documents) reap(ctx context.Context, f *documentKeys, name string, version uint64) {
	if err := d.change(ctx, f, "reap", name, version).Err(); err != nil {
		d.logger.Debug("a document that expired is still there", "document", name, "error", err)
	}
}

func (d documents) change(ctx context.Context, f *documentKeys, what, name string, version uint64, more ...any) *redis.Cmd {
	args := append([]any{documentsWake, f.space.Name, what, name, version}, more...)
	failpoint.Hit("redis/documents/before-script")
	cmd := documentsScript.run(context.WithoutCancel(ctx), d.client, f.keys(), args...)
	failpoint.Hit("redis/documents/after-script")
	return cmd
}

// Put writes a document at a version.
func (d documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if err := d.checkChange(ctx, space, doc.Name); err != nil {
		return 0, err
	}
	if err := document.Fits(&doc); err != nil {
		return 0, err
	}
	f := documentKeysOf(space)
	var expires uint64
	if !doc.Expires.IsZero() {
		expires = uint64(max(doc.Expires.UnixMicro(), 1))
	}
	nonce := random16()
	return d.answer(d.change(ctx, &f, "put", doc.Name, ifVersion, expires, nonce[:], doc.Data), doc.Name, ifVersion)
}

// Delete takes a document away at a version.
func (d documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := d.checkChange(ctx, space, name); err != nil {
		return err
	}
	f := documentKeysOf(space)
	_, err := d.answer(d.change(ctx, &f, "delete", name, ifVersion), name, ifVersion)
	return err
}

// answer reads what the script says of a change.
func (d documents) answer(cmd *redis.Cmd, name string, ifVersion uint64) (uint64, error) {
	reply, err := cmd.Int64Slice()
	if err != nil {
		return 0, changeFailed(err)
	}
	if len(reply) != 2 {
		return 0, job.Errorf(job.OutcomeUnknown, "the script's answer cannot be read")
	}
	switch version := uint64(reply[1]); reply[0] {
	case 0:
		return 0, document.OtherVersion(name, version, ifVersion)
	case 2:
		return 0, document.NotThere(name)
	case frozenDocuments:
		return 0, job.Errorf(job.Unavailable, transition.Frozen)
	default:
		return version, nil
	}
}

// listAtOnce is how many documents are fetched together.
const listAtOnce = 64

// List returns documents in the order of their names.
func (d documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := checkSpace(ctx, space); err != nil {
		return nil, err
	}
	f := documentKeysOf(space)
	var list []driver.Document
	for {
		by := &redis.ZRangeBy{Min: "-", Max: "+", Count: listAtOnce}
		if after != "" {
			by.Min = "(" + after
		}
		names, err := d.client.ZRangeByLex(ctx, f.names, by).Result()
		if err != nil {
			return nil, readFailed(ctx, err)
		}
		if len(names) == 0 {
			return list, nil
		}
		part, err := d.fetch(ctx, &f, names)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
		if limit > 0 && len(list) >= limit {
			return list[:limit], nil
		}
		if after = names[len(names)-1]; len(names) < listAtOnce {
			return list, nil
		}
	}
}

// drop takes away every document of a board.
func (d documents) drop(ctx context.Context, board string) error {
	if board == "" {
		return nil
	}
	all := spacesOf(board)
	spaces, err := d.client.SMembers(ctx, all).Result()
	if err != nil {
		return readFailed(ctx, err)
	}
	keys := []string{all, movedOf(board)}
	for _, name := range spaces {
		f := documentKeysOf(driver.Space{Board: board, Name: name})
		keys = append(keys, f.data, f.names, f.changed, f.gone)
	}
	if err := d.client.Unlink(ctx, keys...).Err(); err != nil {
		return changeFailed(err)
	}
	for _, name := range spaces {
		f := documentKeysOf(driver.Space{Board: board, Name: name})
		if err := d.client.Publish(ctx, documentsWake, f.data).Err(); err != nil {
			d.logger.Debug("nobody was told of documents that were dropped", "space", name, "error", err)
		}
	}
	return nil
}

// observes reports whether this host may write nothing for a board.
func (s *Store) observes(board string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[board]
	return b != nil && b.opening.Load().spec.Observe
}

func (d documents) checkChange(ctx context.Context, space driver.Space, name string) error {
	if err := checkDocument(ctx, space, name); err != nil {
		return err
	}
	if d.observes(space.Board) {
		return observed(space.Board)
	}
	return nil
}

func checkSpace(ctx context.Context, space driver.Space) error {
	if err := space.Check(); err != nil {
		return err
	}
	return ended(ctx)
}

func checkDocument(ctx context.Context, space driver.Space, name string) error {
	if err := driver.CheckDocument(space, name); err != nil {
		return err
	}
	return ended(ctx)
}

// spaceVersion returns the version of a space, and the one up to which
// deletions are forgotten.
func (d documents) spaceVersion(ctx context.Context, f *documentKeys) (version, floor uint64, err error) {
	raw, err := d.client.HGet(ctx, f.data, "").Bytes()
	if errors.Is(err, redis.Nil) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, readFailed(ctx, err)
	}
	u := unpacker{b: raw}
	return u.u64(), u.u64(), nil
}
