package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/boardd/boardd/sdk/failpoint"
)

// registry is the hash that says which prefix each board's keys have.
const registry = "boardd:boards"

// register notes where a board is kept, for who drops it without opening it.
func (s *Store) register(ctx context.Context, name, prefix string) error {
	present, err := s.client.HGet(ctx, registry, name).Result()
	if err == nil && present == prefix {
		return nil
	}
	if err := s.client.HSet(ctx, registry, name, prefix).Err(); err != nil {
		return changeFailed(err)
	}
	failpoint.Hit("redis/board/registered")
	return nil
}

// DropBoard removes what boardd keeps of a board, and the jobs that it posted.
// What other programs posted stays.
func (s *Store) DropBoard(ctx context.Context, name string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if err := s.leave(name); err != nil {
		return err
	}
	prefix, err := s.client.HGet(ctx, registry, name).Result()
	if err == nil {
		k := keysOf(prefix)
		if err := s.clear(ctx, &k); err != nil {
			return err
		}
	}
	if err := s.documents().drop(ctx, name); err != nil {
		return err
	}
	failpoint.Hit("redis/drop/before-unregister")
	if err := s.client.HDel(ctx, registry, name).Err(); err != nil {
		return changeFailed(err)
	}
	return nil
}

// leave ends what goes on with an open board. Who is opening it at this moment is refused afterwards.
func (s *Store) leave(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[name]
	switch {
	case b == nil:
		return nil
	case b.opening.Load().spec.Observe:
		return observed(name)
	}
	delete(s.boards, name)
	close(b.dropped)
	return nil
}

// clear removes jobs step by step, and then the rest.
func (s *Store) clear(ctx context.Context, k *keys) error {
	for _, set := range []string{k.listings, k.trash} {
		for cursor := uint64(0); ; {
			fields, next, err := s.client.HScan(ctx, set, cursor, "", scanCount).Result()
			if err != nil {
				return readFailed(ctx, err)
			}
			var ids, gone []string
			for i := 0; i+1 < len(fields); i += 2 {
				if isOurs(fields[i], fields[i+1]) {
					ids = append(ids, fields[i])
					gone = append(gone, k.job(fields[i])...)
				}
			}
			if len(ids) > 0 {
				if err := s.client.HDel(ctx, set, ids...).Err(); err != nil {
					return changeFailed(err)
				}
				if err := s.client.Del(ctx, gone...).Err(); err != nil {
					return changeFailed(err)
				}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	if err := s.clearAttached(ctx, k); err != nil {
		return err
	}
	if err := s.client.Unlink(ctx, k.ours()...).Err(); err != nil {
		return changeFailed(err)
	}
	return s.clearSequence(ctx, k)
}

// madeNamespace begins the namespaces that a host makes for boards whose place nobody
// chose.
const madeNamespace = "boardd:{"

// clearSequence removes TaskFlow's counter of posts where nobody else can need it: in a
// namespace that was made for this board, and has no job of another program.
func (s *Store) clearSequence(ctx context.Context, k *keys) error {
	if !strings.HasPrefix(k.prefix, madeNamespace) {
		return nil
	}
	left, err := s.client.Exists(ctx, k.listings, k.trash).Result()
	if err != nil {
		return readFailed(ctx, err)
	}
	if left > 0 {
		return nil
	}
	if err := s.client.Unlink(ctx, k.sequence).Err(); err != nil {
		return changeFailed(err)
	}
	return nil
}

// clearAttached removes what final records kept.
func (s *Store) clearAttached(ctx context.Context, k *keys) error {
	for cursor := uint64(0); ; {
		fields, next, err := s.client.HScan(ctx, k.finals, cursor, "", scanCount).Result()
		if err != nil {
			return readFailed(ctx, err)
		}
		var gone []string
		for i := 0; i+1 < len(fields); i += 2 {
			gone = append(gone, k.attached(fields[i]))
		}
		if len(gone) > 0 {
			if err := s.client.Del(ctx, gone...).Err(); err != nil {
				return changeFailed(err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// isOurs reports whether boardd posted a job.
func isOurs(field, value string) bool {
	p, err := decodePosting(field, []byte(value), 0)
	return err == nil && p.Digest != [16]byte{}
}

func parseInt(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // a limit is a number that Redis counted
	return n
}
