package clienttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// door is a line to a server of a fleet, as far as a worker sees one: its answers say where the
// board is to be called.
type door struct {
	*line

	mu     sync.Mutex
	seen   seen
	sick   bool          // /healthz says so
	gone   string        // where the board is now, if it is not here
	leaves chan struct{} // closed when the board goes
}

// seen is what came to pass at a door.
type seen struct {
	says  []string // in Boardd-Public, by turns; none: nothing
	told  int      // answers that said so
	asked int      // how often it was asked at /healthz
	calls int      // of boards
	wrong error    // the first thing that must not have been
}

// newDoor opens a door, which for one that the worker was told of is open at once; at another
// one it has to knock.
func newDoor(server string, known bool) (*door, error) {
	d := &door{leaves: make(chan struct{})}
	l, err := newLineFor(server, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, next, known) })
	})
	d.line = l
	return d, err
}

// url is where the door is.
func (d *door) url() string { return "http://" + d.addr }

// tell has answers say where the board is to be called: each something else, by turns.
func (d *door) tell(says ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.says, d.seen.told = says, 0
}

// sicken has /healthz say that the server is not well.
func (d *door) sicken() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sick = true
}

// move has the board be at another address: what waits here ends with that, and all calls.
func (d *door) move(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = to
	close(d.leaves)
}

// state returns what came to pass.
func (d *door) state() seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *door) serve(w http.ResponseWriter, r *http.Request, next http.Handler, known bool) {
	if r.URL.Path == "/healthz" {
		d.health(w, r, next, known)
		return
	}
	gone := d.enter(w, r, known)
	if gone == "" && strings.HasSuffix(r.URL.Path, "/WatchBoard") {
		d.streams(w, r, next)
		return
	}
	if gone == "" && d.answered(w, r, next) {
		return
	}
	d.mu.Lock()
	gone = d.gone
	d.mu.Unlock()
	w.Header().Set("Boardd-Moved", gone)
	w.Header().Set("Boardd-Moved-Public", gone)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"code":"unavailable","message":"the board has moved to another server"}`) // a caller that is gone misses nothing
}

// health answers whether the server is well.
func (d *door) health(w http.ResponseWriter, r *http.Request, next http.Handler, known bool) {
	d.mu.Lock()
	d.seen.asked++
	d.blame(!known && r.Header.Get("Authorization") != "", "it sent its token to /healthz of an address that it was not given")
	sick := d.sick
	d.mu.Unlock()
	if sick {
		http.NotFound(w, r)
		return
	}
	next.ServeHTTP(w, r)
}

// enter takes note of a call, and returns where the board is if it is not here.
func (d *door) enter(w http.ResponseWriter, r *http.Request, known bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.calls++
	d.blame(!known && d.sick, "it called %s at an address where /healthz does not answer with 200", r.URL.Path)
	d.blame(!known && d.seen.asked == 0, "it called %s at an address that it was not given, and had not asked for /healthz there", r.URL.Path)
	if n := len(d.seen.says); n > 0 {
		w.Header().Set("Boardd-Server", "http://inside.example")
		w.Header().Set("Boardd-Public", d.seen.says[d.seen.told%n])
		d.seen.told++
	}
	return d.gone
}

// blame takes note of something wrong. d.mu is held.
func (d *door) blame(so bool, format string, args ...any) {
	if so && d.seen.wrong == nil {
		d.seen.wrong = fmt.Errorf(format, args...)
	}
}

// streams passes a stream on, whose connection breaks when the board leaves.
func (d *door) streams(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-d.leaves:
			cancel()
		case <-ctx.Done():
		}
	}()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// answered passes a call on, and reports whether it was answered before the board left.
func (d *door) answered(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	answer := &kept{header: http.Header{}}
	done := make(chan bool, 1)
	go func() {
		defer func() { done <- recover() == nil }() // a server that is gone panics
		next.ServeHTTP(answer, r.WithContext(ctx))
	}()
	select {
	case <-d.leaves:
		cancel()
		<-done
		return false
	case well := <-done:
		if !well {
			panic(http.ErrAbortHandler)
		}
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(cmp.Or(answer.status, http.StatusOK))
	_, _ = w.Write(answer.body.Bytes()) // a caller that is gone misses nothing
	return true
}

// kept is an answer that is not sent yet.
type kept struct {
	header http.Header
	status int // 0: none yet
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *kept) WriteHeader(status int)      { k.status = status }
