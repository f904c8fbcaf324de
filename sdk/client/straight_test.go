package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// door is a server of a fleet: it says whose the board is, as far as that is another one.
type door struct {
	next   connect.HTTPClient
	tells  []string // names and values of headers of each answer about a board
	status int      // of each answer about a board; 0: that of the board
	sick   bool     // /healthz says so
}

func (d door) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/healthz" {
		w := httptest.NewRecorder()
		if d.sick {
			w.WriteHeader(http.StatusNotFound)
		}
		if r.Header.Get("Authorization") != "" {
			panic("a server that is not known to be one was sent the token")
		}
		return w.Result(), nil
	}
	if d.status != 0 {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(d.tells); i += 2 {
			w.Header().Set(d.tells[i], d.tells[i+1])
		}
		w.WriteHeader(d.status)
		fmt.Fprint(w, `{"code":"unavailable","message":"ask again"}`)
		return w.Result(), nil
	}
	answer, err := d.next.Do(r)
	if err == nil {
		for i := 0; i < len(d.tells); i += 2 {
			answer.Header.Set(d.tells[i], d.tells[i+1])
		}
	}
	return answer, err
}

// atDoors plays a client that was given some addresses of a fleet.
type atDoors struct {
	*testing.T
	*hosts

	next   connect.HTTPClient
	client *client.Client
	over   atomic.Pointer[chan struct{}] // closed when the call that is made has ended; nil: none is awaited
}

// Do has what is asked beside a call be answered after it, so that the call goes the same way
// however quick those answers are.
func (d *atDoors) Do(r *http.Request) (*http.Response, error) {
	if over := d.over.Load(); over != nil && r.URL.Path == health {
		<-*over
	}
	return d.hosts.Do(r)
}

func newDoors(t *testing.T, addrs string, c client.Config) *atDoors {
	t.Helper()
	next := transportOf(newFake())
	d := &atDoors{T: t, hosts: &hosts{up: map[string]connect.HTTPClient{}}, next: next}
	c.Addr, c.HTTPClient, c.Token = addrs, d, "secret"
	var err error
	if d.client, err = client.New(c); err != nil {
		t.Fatal(err)
	}
	return d
}

// opens has a server be there.
func (d *atDoors) opens(host string, o door) { o.next = d.next; d.stop(host, o) }

// counts makes a call, and says whom it must have asked.
func (d *atDoors) counts(what string, want ...string) {
	d.Helper()
	d.asks(what, job.NoKind, want...)
}

func (d *atDoors) asks(what string, kind job.Kind, want ...string) {
	d.Helper()
	synctest.Wait() // what was asked beside calls is over
	d.asked = nil
	over := make(chan struct{})
	d.over.Store(&over)
	_, err := d.client.Board("default").Count(d.Context())
	close(over)
	synctest.Wait()
	if job.KindOf(err) != kind {
		d.Errorf("%s: %v", what, err)
	}
	slices.SortStableFunc(d.asked, func(a, b string) int { // what is asked beside a call has no order among them
		return strings.Count(a, health) - strings.Count(b, health)
	})
	if !slices.Equal(d.asked, want) {
		d.Errorf("%s: it asked %v, want %v", what, d.asked, want)
	}
}

const health = "/healthz"

// passes is a server that passes calls on to another one.
func passes(to string) door {
	return door{tells: []string{"Boardd-Server", "http://inside-" + to, "Boardd-Public", "http://" + to}}
}

// TestStraight follows a board through a fleet: calls go to the server that has it, as soon
// as that is known and it answers, and to the given addresses as soon as it does not.
func TestStraight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front", client.Config{})
		d.opens("front", passes("one"))
		d.opens("one", door{})
		begun := time.Now()
		d.counts("the first call", "front", "one"+health)
		d.counts("the second", "one")
		d.opens("one", passes("two"))
		d.opens("two", door{})
		d.counts("the board has moved", "one", "two"+health)
		d.counts("and then", "two")
		d.stop("two", nil)
		d.opens("front", door{})
		d.counts("its server is gone", "two", "front")
		d.counts("the board is that of the given address", "front")
		d.opens("front", passes("two"))
		d.counts("it is to go to the one that is gone", "front")
		d.counts("and is not asked all the time", "front")
		d.opens("two", door{})
		time.Sleep(5 * time.Second)
		d.counts("it is back", "front", "two"+health)
		d.counts("and then", "two")
		d.opens("two", door{tells: []string{"Boardd-Server", "http://inside-three"}})
		d.counts("the next one is not to be reached straight", "two")
		d.counts("and then", "front")
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("%v have passed, though another server was there", waited)
		}
	})
}

// TestAroundTheGiven has no address that was given be reachable, and the server of the board not
// say whose it is now: the call goes to any server that is known, which passes it on.
func TestAroundTheGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front,http://other", client.Config{})
		d.opens("front", passes("one"))
		d.opens("one", door{})
		d.counts("the first call", "front", "one"+health)
		d.stop("front", nil)
		d.opens("one", door{status: 503})
		go func() {
			time.Sleep(time.Millisecond)
			d.opens("one", door{})
		}()
		d.counts("no other server is reachable", "one", "front", "other", "one")
		d.counts("and then", "one")
		d.opens("one", passes("two"))
		d.opens("two", door{})
		d.counts("the board has moved", "one", "two"+health)
		d.stop("two", nil)
		d.opens("one", door{})
		d.counts("its server is gone", "two", "front", "other", "one")
		d.stop("one", nil)
		d.opens("other", door{})
		d.counts("a given one is back", "one", "front", "other")
	})
}

// TestStraightMoved ends calls with the address of the server that has the board now.
func TestStraightMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front,http://other", client.Config{})
		d.opens("front", passes("one"))
		d.opens("one", door{})
		d.opens("two", door{})
		begun := time.Now()
		d.counts("the first call", "front", "one"+health)
		d.opens("one", door{status: 503, tells: []string{"Boardd-Moved", "http://inside-two", "Boardd-Moved-Public", "http://two"}})
		d.opens("front", passes("two"))
		d.counts("the board moves", "one", "front", "two"+health)
		d.counts("and then", "two")
		d.opens("one", door{})
		d.opens("two", door{status: 503, tells: []string{"Boardd-Moved", "http://inside-one", "Boardd-Moved-Public", "http://one"}})
		d.counts("it moves to one that is known", "two", "one")
		d.opens("one", door{status: 503})
		d.opens("front", door{})
		d.counts("nothing is said but that it cannot be served there", "one", "front")
		d.opens("front", door{status: 503, tells: []string{"Boardd-Moved", "http://inside-two"}})
		d.opens("other", door{})
		d.counts("it has moved, and goes on at another one", "front", "other")
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("%v have passed, though another server was there", waited)
		}
	})
}

// TestStraightStrange has what answers at the address be another server than the one that
// was meant.
func TestStraightStrange(t *testing.T) {
	t.Parallel()
	for name, strange := range map[string]door{
		"it knows no token":    {status: 401},
		"it has another name":  {status: 421},
		"a proxy":              {status: 502},
		"a page":               {status: 302},
		"a page that is there": {status: 200, tells: []string{"Content-Type", "text/html; charset=utf-8"}},
		"a page that is not":   {status: 404, tells: []string{"Content-Type", "text/plain"}},
		"it is sick":           {sick: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDoors(t, "http://front", client.Config{})
				d.opens("front", passes("one"))
				d.opens("one", strange)
				d.counts("the first call", "front", "one"+health)
				if strange.sick {
					d.counts("the second", "front")
					return
				}
				d.counts("the second", "one", "front")
				d.counts("the third", "front")
				for pause := 5 * time.Second; pause < 20*time.Minute; pause *= 2 {
					time.Sleep(min(pause, 5*time.Minute) - time.Second)
					d.counts("it is left alone", "front")
					time.Sleep(time.Second)
					d.counts("it is looked at again", "front", "one"+health)
					d.counts("and is as before", "one", "front")
				}
			})
		})
	}
}

// TestStraightTrust tells of addresses to which the token must not be sent.
func TestStraightTrust(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given, named string
		trusted      bool
	}{
		{"http://front", "http://one", true},
		{"http://front", "https://one", true},
		{"https://front", "https://one", true},
		{"https://front", "http://one", false},
		{"http://front,https://other", "http://one", false},
		{"https://front", "https://one:444", true},
		{"http://front", "http://localhost:1", false},
		{"http://front", "http://127.0.0.2", false},
		{"http://front", "http://a.localhost", false},
		{"http://front", "http://[::1]:80", false},
		{"http://front", "http://[::ffff:127.0.0.1]:80", false},
		{"http://front", "http://0.0.0.0", false},
		{"http://localhost", "http://127.0.0.1:1", true},
		{"http://front", "http://u:p@one", false},
		{"http://front", "http://one?x=1", false},
		{"http://front", "http://one?", false},
		{"http://front", "http://one#x", false},
		{"http://front", "http://one/x", false},
		{"http://front", "http://one/", false},
		{"http://front", "http://10.0.0.1", true},
		{"http://front", "http://[2001:db8::1]:7422", true},
		{"http://front", "http://127.1", false},
		{"http://front", "http://2130706433", false},
		{"http://front", "http://0x7f.1", false},
		{"http://front", "http://0x7f000001.", false},
		{"http://front", "http://one.0xab.example", true},
		{"http://localhost", "http://127.1", false},
		{"http://front", "ftp://one", false},
		{"http://front", "one", false},
		{"http://front", "http://", false},
		{"http://front", "http://one:x", false},
		{"http://front", " http://one", false},
	} {
		t.Run(c.given+" "+c.named, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDoors(t, c.given, client.Config{})
				for _, host := range []string{"front", "localhost"} {
					d.opens(host, door{tells: []string{"Boardd-Server", "http://inside", "Boardd-Public", c.named}})
				}
				for range 2 {
					if _, err := d.client.Board("default").Count(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if asked := len(d.asked) > 2; asked != c.trusted {
					t.Errorf("it asked %v", d.asked)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front", client.Config{StayAtAddr: true})
		d.opens("front", passes("one"))
		d.opens("one", door{})
		d.counts("a client that stays", "front")
		d.counts("and then", "front")
	})
}

// TestStraightOnce tries a call once: the shortcut is no try.
func TestStraightOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front", client.Config{RetryFor: -1})
		d.opens("front", passes("one"))
		d.opens("one", door{})
		d.counts("the first call", "front", "one"+health)
		d.stop("one", nil)
		d.opens("front", door{})
		d.counts("it is gone", "one", "front")
		d.stop("front", nil)
		d.asks("all are gone", job.Unavailable, "front")
	})
}

// TestStraightMany bounds what is kept.
func TestStraightMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t, "http://front", client.Config{})
		for i := range 300 {
			host := fmt.Sprint("s", i)
			d.opens("front", passes(host))
			d.opens(host, door{})
			if _, err := d.client.Board(host).Count(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		n := 0
		for _, asked := range d.asked {
			if asked != "front" {
				n++
			}
		}
		if n != 256 {
			t.Errorf("%d servers are known, want 256", n)
		}
	})
}
