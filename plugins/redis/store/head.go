package store

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

// nobody is the id of a board that is not in Redis yet.
var nobody = string(make([]byte, 16))

// A head is what a board in Redis says of itself.
type head struct {
	id         string
	generation uint64
	position   uint64
	server     string // the run id of the server on which a host last looked at it
	came       string // the id that the board had when it came from another store; empty: it never did
	stays      []stay // on the servers where it was last; none where it was on one alone
	run        string // that of the one which has just shown it; empty: not told
}

// elsewhere reports whether a board is on another server than it was.
func (h *head) elsewhere() bool { return h.server != "" && h.run != "" && h.server != h.run }

// headFields are what of a head is read here.
var headFields = []string{"id", "generation", "position", "server", "came", "stays"}

func (b *board) readHead(ctx context.Context, k *keys) (head, error) {
	values, err := b.store.client.HMGet(ctx, k.head, headFields...).Result()
	if err != nil {
		return head{}, readFailed(ctx, err)
	}
	return parseHead(k, values)
}

// lookAtHead reads a head together with the run id of the server that has it.
func (b *board) lookAtHead(ctx context.Context, k *keys) (head, error) {
	node, err := b.store.nodeOf(ctx, k.head)
	if err != nil {
		return head{}, readFailed(ctx, err)
	}
	var info *redis.StringCmd
	var values *redis.SliceCmd
	// A pipeline is sent on one connection, so to one server.
	_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
		info, values = p.Info(ctx, "server"), p.HMGet(ctx, k.head, headFields...)
		return nil
	})
	if err != nil {
		return head{}, readFailed(ctx, err)
	}
	h, err := parseHead(k, values.Val())
	h.run = runID(info.Val())
	return h, err
}

// nodeOf returns the client of the one server that has a key.
func (s *Store) nodeOf(ctx context.Context, key string) (redis.Cmdable, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.client, nil
}

func parseHead(k *keys, values []any) (head, error) {
	h := head{generation: 1}
	h.id, _ = values[0].(string)
	h.server, _ = values[3].(string)
	h.came, _ = values[4].(string)
	written, _ := values[5].(string)
	h.stays = decodeStays(written)
	for i, to := range []*uint64{&h.generation, &h.position} {
		text, ok := values[i+1].(string)
		if !ok {
			continue
		}
		var err error
		if *to, err = strconv.ParseUint(text, 10, 64); err != nil {
			return head{}, job.Errorf(job.Corrupt, "the key %s says %q where a number has to be", k.head, text)
		}
	}
	return h, nil
}
