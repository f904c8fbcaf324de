package store

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func random16() (b [16]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

//go:embed lua/raise.lua
var raiseLua string

var raiseScript = newScript(raiseLua)

// nobody is the id of a board that is not in Redis yet.
var nobody = string(make([]byte, 16))

// A head is what a board in Redis says of itself.
type head struct {
	id         string
	generation uint64
	position   uint64
}

func (b *board) readHead(ctx context.Context, k *keys) (head, error) {
	values, err := b.store.client.HMGet(ctx, k.head, "id", "generation", "position").Result()
	if err != nil {
		return head{}, readFailed(ctx, err)
	}
	h := head{generation: 1}
	h.id, _ = values[0].(string)
	for i, to := range []*uint64{&h.generation, &h.position} {
		text, ok := values[i+1].(string)
		if !ok {
			continue
		}
		if *to, err = strconv.ParseUint(text, 10, 64); err != nil {
			return head{}, job.Errorf(job.Corrupt, "the key %s says %q where a number has to be", k.head, text)
		}
	}
	return h, nil
}

// look compares how the board stands with what this host remembers of it, from
// before it was started and since.
func (b *board) look(ctx context.Context, st *standing, status *driver.BoardStatus) error {
	remembered, err := decodeMemory(st.spec.Memory)
	if err != nil {
		return err
	}
	if old := b.standing.Load(); old != nil && old.keys.prefix == st.keys.prefix {
		if last := b.lastSeen(); old.generation >= remembered.generation && last.position >= remembered.last.position {
			remembered = memory{id: old.id, generation: old.generation, last: last}
		}
	}
	h, err := b.readHead(ctx, &st.keys)
	if err != nil {
		return err
	}
	if status.Loss, err = b.loss(ctx, st, &h, &remembered); err != nil {
		return err
	}
	if status.Loss != "" && h.generation <= remembered.generation {
		if h, err = b.raise(ctx, st, h, &remembered); err != nil {
			return err
		}
	}
	st.id, st.generation = h.id, h.generation
	status.Generation, status.Position = h.generation, driver.Position(h.position)
	last := remembered.last
	if h.position > last.position {
		last = mark{position: h.position}
	}
	b.mu.Lock()
	b.known = last
	b.mu.Unlock()
	kept := memory{id: h.id, generation: h.generation, last: last}
	if kept.id == "" {
		kept.id = nobody
	}
	status.Memory = kept.encode()
	return nil
}

// loss says what was lost since this host last saw the board; "" if nothing
// was, as far as can be told.
func (b *board) loss(ctx context.Context, st *standing, h *head, m *memory) (string, error) {
	switch {
	case m.generation == 0:
		return "", nil
	case h.generation > m.generation:
		return fmt.Sprintf("another host found that Redis had lost acknowledged changes, and raised the generation from %d to %d", m.generation, h.generation), nil
	case m.last.position == 0:
		return "", nil
	case h.id == "":
		return fmt.Sprintf("Redis knows nothing of the board any more, which had come to change %d", m.last.position), nil
	case m.id != "" && m.id != nobody && h.id != m.id:
		return "the board in Redis is another one, made since", nil
	case h.position < m.last.position:
		return fmt.Sprintf("Redis is at change %d, and had acknowledged change %d", h.position, m.last.position), nil
	case m.last.at.IsZero():
		return "", nil
	}
	return b.rewritten(ctx, st, m)
}

// rewritten finds out whether the last change that this host saw is another one
// now: Redis went back, and others have made changes since.
func (b *board) rewritten(ctx context.Context, st *standing, m *memory) (string, error) {
	at := strconv.FormatUint(m.last.position, 10) + "-0"
	entries, err := b.store.client.XRange(ctx, st.keys.events, at, at).Result()
	if err != nil {
		return "", readFailed(ctx, err)
	}
	for i := range entries {
		e, err := decodeEntry(&entries[i])
		if err == nil && len(e.events) > 0 && !e.events[0].at.Equal(m.last.at) {
			return fmt.Sprintf("Redis had acknowledged a change %d at %v, and has another one from %v", m.last.position,
				m.last.at.Format(time.RFC3339Nano), e.events[0].at.Format(time.RFC3339Nano)), nil
		}
	}
	return "", nil
}

// raise begins a new generation, in which no token of before is valid, beyond
// every position that this host has seen.
func (b *board) raise(ctx context.Context, st *standing, h head, m *memory) (head, error) {
	next := max(h.generation, m.generation) + 1
	if st.spec.Observe {
		h.generation = next // for this host alone: it may write nothing
		return h, nil
	}
	id := h.id
	if id == "" {
		id = newBoardID()
	}
	reply, err := raiseScript.run(ctx, b.store.client, []string{st.keys.head}, next, m.last.position, id).Slice()
	if err != nil || len(reply) != 3 {
		return head{}, changeFailed(err)
	}
	h.id, _ = reply[2].(string)
	generation, _ := reply[0].(int64)
	position, _ := reply[1].(int64)
	h.generation, h.position = uint64(generation), uint64(position)
	return h, nil
}

// durability says what an acknowledged change survives, as Redis is configured
// now.
func (s *Store) durability(ctx context.Context) (driver.Durability, error) {
	info, err := s.client.InfoMap(ctx, "persistence").Result()
	if err != nil {
		return "", readFailed(ctx, err)
	}
	if info["Persistence"]["aof_enabled"] != "1" {
		return driver.Volatile, nil
	}
	set, err := s.client.ConfigGet(ctx, "appendfsync").Result()
	if err == nil && set["appendfsync"] == "always" {
		return driver.Durable, nil
	}
	return driver.Delayed, nil // also where Redis does not let this user ask
}

// greet looks at a new connection before it is used. A server that was not met
// before may have lost what another one had acknowledged, so that every board
// has to be opened again.
func (s *Store) greet(ctx context.Context, c *redis.Conn) error {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return unavailable("Redis does not say which server it is", err)
	}
	run := ""
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "run_id:"); ok {
			run = strings.TrimSpace(value)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if run == "" || s.runs[run] {
		return nil
	}
	first := len(s.runs) == 0
	s.runs[run] = true
	if first || len(s.boards) == 0 {
		return nil
	}
	s.logger.Warn("this is another Redis server, or it was restarted; every board is looked at again", "run_id", run)
	for _, b := range s.boards {
		if st := b.standing.Load(); st != nil {
			st.expire()
		}
	}
	return &job.Error{Kind: job.Unavailable, Message: "every board has to be opened again", Err: errRestarted}
}

// errRestarted refuses the first connection to a server that was not met before:
// the call that asked for it may have been made up before the restart.
var errRestarted = errors.New("the server was restarted, or is another one")
