package client

import (
	"context"
	"sync"
	"time"
)

// A server whose process is stopped keeps its connections, so that a call to it would be
// waited for as long as any. Among several servers it is therefore asked whether it is
// alive: listenAfter after a call began that asks for no wait, and every listenAgain while
// calls are under way. With no answer within listenFor all calls to it fail at once, and are
// made at the next server.
const (
	listenAfter = 2 * time.Second
	listenAgain = 10 * time.Second
	listenFor   = 3 * time.Second
)

// silentError is the error of a call to a server that gave no sign of life. It is a
// net.Error, as that of a connection that broke: nobody knows what came of the call.
type silentError struct{}

// Error says what was seen.
func (*silentError) Error() string { return "the server has stopped answering" }

// Timeout reports that a time was over.
func (*silentError) Timeout() bool { return true }

// Temporary reports that the call may be made again.
func (*silentError) Temporary() bool { return true }

// ear listens to one server while calls to it are under way.
type ear struct {
	probe  func(context.Context) error // an error: no sign of life
	silent func()                      // is called when there was none

	mu    sync.Mutex
	calls map[*attended]bool
	timer *time.Timer // nil: nothing is listened to
}

// attended is a call that was not answered yet.
type attended struct {
	due  time.Time // when the server is asked because of it
	fail context.CancelCauseFunc
}

// listen has a call fail, by its context, when its server is silent. answered ends that; the
// context stays as it is, since an answer's body is read with it.
func (e *ear) listen(ctx context.Context, patience time.Duration) (_ context.Context, answered func()) {
	ctx, fail := context.WithCancelCause(ctx)
	call := &attended{due: time.Now().Add(patience), fail: fail}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls == nil {
		e.calls = map[*attended]bool{}
	}
	e.calls[call] = true
	if e.timer == nil {
		e.timer = time.AfterFunc(listenAfter, e.look)
	}
	return ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.calls, call)
	}
}

// look asks the server whether it is alive if that is due, and comes again while calls are
// under way.
func (e *ear) look() {
	if !e.due() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listenFor)
	defer cancel()
	err := e.probe(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	next := time.Now().Add(listenAgain)
	for call := range e.calls {
		if err != nil {
			call.fail(&silentError{})
		}
		call.due = next
	}
	if err != nil {
		e.silent()
	}
	e.timer = time.AfterFunc(listenAfter, e.look)
}

// due reports whether the server is to be asked now. If not, look is called again later, or
// not at all while there is no call.
func (e *ear) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.calls) == 0 {
		e.timer = nil
		return false
	}
	for call := range e.calls {
		if !time.Now().Before(call.due) {
			return true
		}
	}
	e.timer = time.AfterFunc(listenAfter, e.look)
	return false
}
