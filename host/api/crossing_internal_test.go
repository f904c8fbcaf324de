package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// crossing is callers of two servers of a fleet, who post to boards of the other one.
type crossing struct {
	t       *testing.T
	servers []*member
	details string

	calling sync.WaitGroup
	posted  map[*member]map[string][]string // by server, tenant: the uuids of what its callers post
}

// startCrossing shuts the store of two servers.
func startCrossing(t *testing.T) *crossing {
	t.Helper()
	c := &crossing{t: t, servers: startFleet(t), details: "{}", posted: map[*member]map[string][]string{}}
	for _, m := range c.servers {
		m.door.close()
		c.posted[m] = map[string][]string{}
	}
	t.Cleanup(func() {
		for _, m := range c.servers {
			m.door.open()
		}
		c.calling.Wait() // of a test that has failed
	})
	return c
}

// more has so many more callers of a tenant call each server, and waits until all posts have
// come to the store.
func (c *crossing) more(of string, callers int) {
	c.t.Helper()
	for _, m := range c.servers {
		board := m.other.has(c.t, of)
		for range callers {
			id := newUUID()
			c.posted[m][of] = append(c.posted[m][of], id)
			body := c.body(board, id)
			c.calling.Go(func() {
				if a, err := m.call(c.t.Context(), of, "PostJobs", body); err != nil || !a.posted() || a.from != m.other.advertised() {
					c.t.Errorf("a post of %s at %s: %d %.300s, from %q, %v", of, m.advertised(), a.status, a.text, a.from, err)
				}
			})
		}
	}
	for _, m := range c.servers {
		testserver.Eventually(c.t, "every post has come to the store", func() bool {
			return c.t.Failed() || m.door.waiting() == c.under(m.other)
		})
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *crossing) body(board, id string) string {
	return fmt.Sprintf(`{"board":%q,"jobs":[{"uuid":%q,"name":"crosses","details":%s}]}`, board, id, c.details)
}

// under is how many posts the callers of a server have made.
func (c *crossing) under(m *member) (n int) {
	for _, ids := range c.posted[m] {
		n += len(ids)
	}
	return n
}

// end has the store do what it was asked for, and looks whether each post was made, once, and
// a post that comes again is known, and whether nothing is held by calls that are over.
func (c *crossing) end() {
	c.t.Helper()
	for _, m := range c.servers {
		m.door.open()
	}
	c.calling.Wait()
	for _, m := range c.servers {
		for of, ids := range c.posted[m] {
			board := m.other.has(c.t, of)
			if a, err := m.call(c.t.Context(), of, "PostJobs", c.body(board, ids[0])); err != nil || !a.posted() {
				c.t.Errorf("a post that comes again: %d %.300s, %v", a.status, a.text, err)
			}
			a, err := m.call(c.t.Context(), of, "ListJobs", fmt.Sprintf(`{"board":%q,"pageSize":1000,"fields":["uuid"]}`, board))
			var listed []string
			for _, j := range a.Jobs {
				listed = append(listed, j.UUID)
			}
			slices.Sort(listed)
			if want := slices.Sorted(slices.Values(ids)); err != nil || !slices.Equal(listed, want) {
				c.t.Errorf("%s has %d jobs on %s, want the %d that were posted, each once: %d %.300s, %v", of, len(listed), board, len(want), a.status, a.text, err)
			}
		}
		testserver.Eventually(c.t, "nothing is held any more", func() bool {
			l := m.gate.seats.load()
			bytes, _ := m.gate.bytes.held()
			passed, _ := m.gate.passed.held()
			return l.working+l.waiting+l.queued+bytes+passed == 0
		})
	}
}

// TestCrossingSeats has the callers of each of two servers post to boards of the other one,
// until the calls that were passed on have every seat of both, while their store does nothing.
// Further calls come through all the same, passed on or not.
func TestCrossingSeats(t *testing.T) {
	t.Parallel()
	c := startCrossing(t)
	const wave = MaxCalls / 16 // more at once would keep a small machine from answering
	for _, of := range fleetTenants {
		c.more(of, wave)
	}
	for _, m := range c.servers {
		if l := m.gate.seats.load(); l.working != 2*wave || l.waiting != 2*wave {
			t.Errorf("%s has %+v, want %d calls that were passed on to it, with a seat each, and as many without that it has passed on", m.advertised(), l, 2*wave)
		}
	}
	for range MaxCalls/(2*wave) - 1 {
		for _, of := range fleetTenants {
			c.more(of, wave)
		}
	}
	for _, m := range c.servers {
		if l := m.gate.seats.load(); l.working+l.waiting != 2*MaxCalls || l.working > MaxCalls || l.queued != 0 {
			t.Errorf("%s has %+v, want %d calls that were passed on to it, and as many that it has passed on", m.advertised(), l, MaxCalls)
		}
	}
	c.more("acme", 8)
	for _, m := range c.servers {
		for _, server := range c.servers {
			a, err := m.call(t.Context(), "default", "GetBoard", fmt.Sprintf(`{"board":%q}`, server.has(t, "default")))
			if err != nil || a.status != http.StatusOK || a.Board.Server != server.advertised() {
				t.Errorf("a call that asks no store: %d %s, %v", a.status, a.text, err)
			}
		}
	}
	c.end()
}

// TestCrossingBytes has the bodies of what the callers of each of two servers post to boards of
// the other one take all the room that either has for bodies. What was passed on has room of its
// own.
func TestCrossingBytes(t *testing.T) {
	t.Parallel()
	const callers = 4
	c := startCrossing(t)
	c.details = fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 2*MaxUncounted))
	room := callers * len(c.body("b00", newUUID()))
	for _, m := range c.servers {
		for _, b := range []*budget{&m.gate.bytes, &m.gate.passed} {
			b.most, b.mostOfTenant = room, room
		}
	}
	c.more("default", callers)
	for _, m := range c.servers {
		for _, b := range []*budget{&m.gate.bytes, &m.gate.passed} {
			if used, _ := b.held(); used < room/2 {
				t.Errorf("%d bytes are held, want those of %d requests", used, callers)
			}
		}
	}
	c.end()
}

// TestPostOfALostServer has the server of a board be lost while it makes a post that another
// one has passed on to it. The other one opens the board itself then, and its store is away: it
// does not say that nothing was done, since the first one does it in the end.
func TestPostOfALostServer(t *testing.T) {
	t.Parallel()
	servers := startFleet(t)
	asked, owner := servers[0], servers[1]
	board, id := owner.has(t, "default"), newUUID()
	body := fmt.Sprintf(`{"board":%q,"jobs":[{"uuid":%q,"name":"in-doubt"}]}`, board, id)
	owner.door.close()
	asked.door.setAway(true)
	type said struct {
		fleetAnswer
		err error
	}
	answer := make(chan said, 1)
	go func() {
		a, err := asked.call(context.WithoutCancel(t.Context()), "default", "PostJobs", body)
		answer <- said{a, err}
	}()
	testserver.Eventually(t, "the post has come to the board's server", func() bool { return owner.door.waiting() == 1 })
	owner.way.Sever(true)
	a := <-answer
	if a.err != nil || a.status != http.StatusOK || len(a.Results) != 1 || a.Results[0].Error == nil || a.Results[0].Error.Code != "OUTCOME_UNKNOWN" || a.from != "" {
		t.Errorf("the post in doubt: %d %s, %v", a.status, a.text, a.err)
	}
	owner.door.open()
	testserver.Eventually(t, "the first server has done it", func() bool {
		a, err := owner.call(t.Context(), "default", "GetJobs", fmt.Sprintf(`{"board":%q,"uuids":[%q]}`, board, id))
		return err == nil && a.posted()
	})
	asked.door.setAway(false)
	if a, err := asked.call(t.Context(), "default", "PostJobs", body); err != nil || !a.posted() {
		t.Errorf("the post again: %d %s, %v", a.status, a.text, err)
	}
	for _, m := range servers {
		if a, err := m.call(t.Context(), "default", "ListJobs", fmt.Sprintf(`{"board":%q}`, board)); err != nil || len(a.Jobs) != 1 || a.Jobs[0].UUID != id {
			t.Errorf("%s lists %d %s, %v; want the one job", m.advertised(), a.status, a.text, err)
		}
	}
}
