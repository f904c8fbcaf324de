package store

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

// refusals are how Redis begins an answer that says that it carried out nothing
// of a command or script.
var refusals = []string{
	"NOSCRIPT", "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "CROSSSLOT", "OOM", "MISCONF", "NOREPLICAS",
	"NOAUTH", "NOPERM", "WRONGPASS", "BUSY", "ERR max number of clients", "ERR invalid DB", "ERR unknown command", "ERR Error compiling script",
}

// refusedWrites is how Redis before 7 says in a script that no write is taken now, so that the
// script made none: it names the script first, once or twice.
var refusedWrites = regexp.MustCompile(`^(ERR Error running script \(call to f_\w+\): )?(@user_script: ?\d+: )+-(READONLY|MISCONF) `)

func refused(message string) bool {
	for _, r := range refusals {
		if strings.HasPrefix(message, r) {
			return true
		}
	}
	return refusedWrites.MatchString(message)
}

// tooMany is what a post is refused with on a board that has as many jobs as it may, and how
// many that is.
const tooMany = "the board has %.0f open jobs, and its setting max_indexed lets it take no more from %.0f on, since a server of " +
	"boardd has each job of a board on Redis in its memory: jobs that end make room"

// noMemory is what a change is refused with that a full Redis has no room for.
const noMemory = "Redis has no memory left (maxmemory) for more jobs, logs or documents: claims and endings go on and make room"

// isFull reports whether Redis refused a command because its memory is full. Versions
// before 7 name the script first.
func isFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), "OOM command not allowed")
}

// isCorrupt reports whether a script found a key that it cannot use, before it wrote
// anything.
func isCorrupt(message string) bool {
	return strings.HasPrefix(message, "CORRUPT ") || strings.Contains(message, "WRONGTYPE ")
}

// changeFailed says what became of a change whose command failed.
func changeFailed(err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	var reply redis.Error
	switch {
	case errors.Is(err, redis.ErrClosed):
		return closed()
	case isFull(err):
		return &job.Error{Kind: job.QuotaExceeded, Message: noMemory}
	case errors.As(err, &reply) && refused(reply.Error()):
		return unavailable("Redis refuses", err)
	case errors.As(err, &reply) && isCorrupt(reply.Error()):
		return &job.Error{Kind: job.Corrupt, Message: "a key of the board is not as TaskFlow and boardd write it", Err: err}
	case errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || dialing(err):
		return unavailable("Redis is not reachable", err)
	}
	return &job.Error{Kind: job.OutcomeUnknown, Message: "Redis did not say whether the change was made", Err: err}
}

// readFailed says why a command that changes nothing failed.
func readFailed(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	var reply redis.Error
	switch {
	case ctx.Err() != nil:
		return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	case errors.Is(err, redis.ErrClosed):
		return closed()
	case errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "WRONGTYPE"):
		return &job.Error{Kind: job.Corrupt, Message: "a key of the board has another type than TaskFlow and boardd give it", Err: err}
	case errors.As(err, &reply):
		return unavailable("Redis refuses", err)
	}
	return unavailable("Redis is not reachable", err)
}

// dialing reports whether a connection could not be made, so that nothing was
// sent over it.
func dialing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func unavailable(what string, err error) error {
	return &job.Error{Kind: job.Unavailable, Message: what, Err: err}
}

func closed() error { return job.Errorf(job.Unavailable, "the store is closed") }

// ended returns the end of ctx as an error of the contract.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}
