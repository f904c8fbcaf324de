package store

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

var (
	//go:embed lua/reads.lua
	readsLua string

	readsScript = newScript(readsLua)
)

// atOnce sends reads that are to see one moment, as a transaction. A full Redis takes
// nothing into a transaction, not even reads, so that there a script sends them. On an
// observed board, where no script may run, they are sent one after the other: a job that
// changes meanwhile is looked at again, since its keys changed.
func (b *board) atOnce(ctx context.Context, st *opening, reads func(redis.Pipeliner) error) error {
	client := b.store.client
	_, err := client.TxPipelined(ctx, reads)
	if reply, ok := errors.AsType[redis.Error](err); !ok || !isFull(err) && !strings.HasPrefix(reply.Error(), "EXECABORT") {
		return err
	}
	if st.spec.Observe {
		_, err = client.Pipelined(ctx, reads)
		return err
	}
	pipe := client.Pipeline()
	if err := reads(pipe); err != nil {
		return err
	}
	return runReads(ctx, client, pipe.Cmds())
}

// runReads has a script send commands, and gives each its answer.
func runReads(ctx context.Context, client redis.Scripter, commands []redis.Cmder) error {
	var keys []string
	var args []any
	for _, c := range commands {
		words := c.Args()
		named := words[1:min(2, len(words))]
		if c.Name() == "mget" {
			named = words[1:]
		}
		for _, key := range named {
			if text, ok := key.(string); ok {
				keys = append(keys, text)
			}
		}
		args = append(append(args, len(words)), words...)
	}
	replies, err := readsScript.run(ctx, client, keys, args...).Slice()
	if err != nil {
		return err
	}
	if len(replies) != len(commands) {
		return job.Errorf(job.Unavailable, "the script's answer cannot be read")
	}
	for i, c := range commands {
		answerRead(c, replies[i])
	}
	return nil
}

// answerRead sets what a script read as the answer of the command.
func answerRead(c redis.Cmder, reply any) {
	list, _ := reply.([]any)
	switch c := c.(type) {
	case *redis.SliceCmd:
		c.SetVal(list)
	case *redis.IntCmd:
		n, _ := reply.(int64)
		c.SetVal(n)
	case *redis.StringCmd:
		if text, ok := reply.(string); ok {
			c.SetVal(text)
		} else {
			c.SetErr(redis.Nil)
		}
	case *redis.MapStringStringCmd:
		all := make(map[string]string, len(list)/2)
		for i := 0; i+1 < len(list); i += 2 {
			name, _ := list[i].(string)
			all[name], _ = list[i+1].(string)
		}
		c.SetVal(all)
	case *redis.TimeCmd:
		var parts [2]int64
		for i := range min(len(list), 2) {
			text, _ := list[i].(string)
			parts[i], _ = strconv.ParseInt(text, 10, 64) // Redis wrote a number
		}
		c.SetVal(time.Unix(parts[0], parts[1]*int64(time.Microsecond)))
	default:
		c.SetErr(job.Errorf(job.Internal, "the answer of %s is of a sort that is not known here", c.Name()))
	}
}
