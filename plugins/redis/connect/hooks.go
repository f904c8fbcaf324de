package connect

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/redis/go-redis/v9"
)

// searching makes the errors of asking the Sentinels errors of connecting: no
// command was sent to Redis.
type searching struct{}

func (searching) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		return conn, dialing(err)
	}
}

func (searching) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (searching) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// once keeps a cluster's client from sending a command again when its answer was
// lost: go-redis does that within MaxRedirects, which it needs to follow a slot
// that moved. An error that hides its cause is none of those that it knows.
type once struct{}

func (once) DialHook(next redis.DialHook) redis.DialHook { return next }

func (once) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if lost := hide(err); lost != nil {
			cmd.SetErr(lost)
			return lost
		}
		return err
	}
}

func (once) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// lostAnswer is an error after which nobody knows whether a command took effect.
type lostAnswer struct{ cause string }

func (l *lostAnswer) Error() string {
	return "the connection was lost before the answer came: " + l.cause
}

// hide returns what stands for an error of a connection that was there, or nil
// for any other.
func hide(err error) error {
	if err == nil {
		return nil
	}
	_, isNet := errors.AsType[net.Error](err)
	dialed, isDial := errors.AsType[*net.OpError](err)
	switch {
	case isDial && dialed.Op == "dial", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &lostAnswer{cause: err.Error()}
	}
	return nil
}

// replica is the error of a connection to a node that is no master. go-redis takes it for one
// of Redis, asks which node is the master now, and tries again: nothing was sent.
type replica struct{}

func (replica) Error() string { return "READONLY the node is a replica" }

// RedisError makes it an error of Redis to go-redis.
func (replica) RedisError() {}

// apart asks a node for the cluster's nodes over a connection of its own, which nothing else uses
// later: any node may be asked, and a replica is no more refused for that.
type apart struct{ options *redis.Options }

func (apart) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a apart) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "cluster" {
			return next(ctx, cmd)
		}
		client := redis.NewClient(a.options)
		defer func() { _ = client.Close() }()
		return client.Process(ctx, cmd)
	}
}

func (apart) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
