package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// request is what a receiver was sent.
type request struct {
	ID, Type string
	Data     struct {
		Board, UUID, Name, State, Outcome, Reason string
		Labels                                    map[string]string
	}
}

// receiver is somebody who is told. answer decides what becomes of a request; those that
// got a good answer are in told.
type receiver struct {
	*testing.T
	server *httptest.Server

	mu     sync.Mutex
	answer func(*request) int
	asked  int
	told   []request
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{T: t, answer: func(*request) int { return http.StatusOK }}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP takes a request whose signature is good.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender has gone
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	id, at := q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp")
	mac.Write([]byte(id + "." + at + "." + string(body)))
	if got, want := q.Header.Get("Webhook-Signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
		r.Errorf("signed with %s, want %s", got, want)
	}
	if sent, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		r.Errorf("sent at %s", at)
	}
	m := request{ID: id}
	if err := json.Unmarshal(body, &m); err != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
		r.Errorf("%s %s: %v", q.Method, body, err)
	}
	r.mu.Lock()
	r.asked++
	answer := r.answer
	r.mu.Unlock()
	code := answer(&m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if code < 300 && q.Context().Err() == nil {
		r.told = append(r.told, m)
	}
	w.WriteHeader(code)
}

func (r *receiver) answering(answer func(*request) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// about returns the types of what was told about a job, in order, each event once.
func (r *receiver) about(id job.ID) (types []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range r.told {
		if m.Data.UUID == id.String() && !seen[m.ID] {
			seen[m.ID] = true
			types = append(types, m.Type)
		}
	}
	return types
}

func (r *receiver) times() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *receiver) until(what string, so func() bool) {
	r.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); {
		if time.Now().After(end) {
			r.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *receiver) hook() webhook.Hook {
	secrets, err := webhook.ParseSecrets(secret)
	if err != nil {
		r.Fatal(err)
	}
	return webhook.Hook{
		Board: "jobs", Name: "tell", URL: r.server.URL, Secrets: secrets, Deliveries: "hooks", Timeout: time.Second,
		Events: []webhook.Kind{webhook.Ended, webhook.Trashed, webhook.Exhausted}, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
}

// store is a driver in memory, on which hosts come and go.
type store struct {
	*testing.T
	driver driver.Driver
	came   string // the move that brought the boards there
}

func newStore(t *testing.T) *store {
	t.Helper()
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &store{T: t, driver: d}
}

// host is one server's part: the two boards, and what carries.
type host struct {
	*store
	jobs, hooks *board.Board
	tally       *webhook.Tally
	tells       *webhook.Courier
	sends       *webhook.Courier
	stop        func()
}

func (s *store) host(name string, hook webhook.Hook) *host {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	log := slog.New(slog.DiscardHandler)
	open := func(name string) *board.Board {
		b := board.New(s.driver, board.Spec{Name: name, Logger: log, Retry: board.Retry{MaxAttempts: 50, Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond}})
		group.Go(func() {
			if err := b.Run(ctx); err != nil {
				s.Error(err)
			}
		})
		if err := b.Ready(s.Context()); err != nil {
			s.Fatal(err)
		}
		return b
	}
	h := &host{store: s, jobs: open("jobs"), hooks: open("hooks"), tally: webhook.NewTally()}
	carrying, stop := context.WithCancel(ctx)
	var carried sync.WaitGroup
	for i, b := range []*board.Board{h.jobs, h.hooks} {
		c := webhook.New(webhook.Options{Board: b, Came: s.came, Owner: "webhooks@" + name, Logger: log, Tally: h.tally, Deliveries: func(_ context.Context, of string) (*board.Board, error) {
			if of != "hooks" {
				return nil, errors.New("asked for the board " + of)
			}
			return h.hooks, nil
		}})
		if i == 0 {
			h.tells = c
			c.Set([]webhook.Hook{hook}, nil)
		} else {
			h.sends = c
			c.Set(nil, []webhook.Hook{hook})
		}
		carried.Go(func() { c.Run(carrying) })
	}
	h.stop = sync.OnceFunc(func() { stop(); carried.Wait(); cancel(); group.Wait() })
	s.Cleanup(h.stop)
	return h
}

func (h *host) post(name string) job.ID {
	h.Helper()
	results, err := h.jobs.Post(h.Context(), []job.Posting{{Name: name, Labels: []job.Label{{Key: "of", Value: name}}, MaxAttempts: 1}})
	if err != nil || results[0].Err != nil {
		h.Fatal(results, err)
	}
	return results[0].Job.ID
}

func (h *host) claim(id job.ID) []board.Ref {
	h.Helper()
	r, err := h.jobs.Claim(h.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{id}})
	if err != nil || len(r.Claims) != 1 {
		h.Fatal(r, err)
	}
	return []board.Ref{{ID: id, Owner: "w", Token: h.jobs.FormatToken(id, r.Claims[0].Token)}}
}

func (h *host) done(errs []error, err error) {
	h.Helper()
	if err = errors.Join(append(errs, err)...); err != nil {
		h.Fatal(err)
	}
}

func (h *host) consume(id job.ID) {
	h.Helper()
	h.done(h.jobs.Consume(h.Context(), h.claim(id)))
}

// life has a job that goes to the trash, comes back and ends.
func (h *host) life(name string) job.ID {
	h.Helper()
	id := h.post(name)
	h.done(h.jobs.Trash(h.Context(), nil, []job.ID{id}, "looks odd"))
	h.done(h.jobs.Restore(h.Context(), []job.ID{id}))
	h.consume(id)
	return id
}

// ready waits until the hook is told of what happens from now on.
func (h *host) ready(r *receiver) {
	h.Helper()
	r.until("the hook has its bookmark", func() bool {
		_, version, err := h.hooks.Bookmark(h.Context(), "webhook/jobs/tell")
		return err == nil && version > 0
	})
}

// TestTold: of jobs that ended, were set aside, and ran out of attempts, once each.
func TestTold(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newStore(t).host("one", r.hook())
	h.ready(r)
	consumed, canceled, trashed, exhausted := h.post("consumed"), h.post("canceled"), h.post("trashed"), h.post("exhausted")
	h.consume(consumed)
	if _, err := h.jobs.Cancel(t.Context(), []job.ID{canceled}, false); err != nil {
		t.Fatal(err)
	}
	h.done(h.jobs.Trash(t.Context(), h.claim(trashed), nil, "looks odd"))
	h.done(h.jobs.Abandon(t.Context(), h.claim(exhausted), board.AbandonOptions{Reason: "it broke"}))
	r.until("all is told", func() bool { return r.times() >= 4 })
	for id, want := range map[job.ID]request{
		consumed:  {Type: "job.ended"},
		canceled:  {Type: "job.ended"},
		trashed:   {Type: "job.trashed"},
		exhausted: {Type: "job.exhausted"},
	} {
		if got := r.about(id); !slices.Equal(got, []string{want.Type}) {
			t.Errorf("%s: told %v", want.Type, got)
		}
	}
	for _, m := range r.told {
		switch d := m.Data; d.Name {
		case "consumed":
			if d.Outcome != "CONSUMED" || d.State != "COMPLETE" || d.Board != "jobs" || d.Labels["of"] != "consumed" {
				t.Errorf("%+v", m)
			}
		case "canceled":
			if d.Outcome != "CANCELED" {
				t.Errorf("%+v", m)
			}
		case "trashed":
			if d.State != "TRASHED" || d.Reason != "looks odd" {
				t.Errorf("%+v", m)
			}
		case "exhausted":
			if d.State != "TRASHED" || d.Reason != "it broke" {
				t.Errorf("%+v", m)
			}
		}
	}
}

// TestOrder: what is told of a job comes in order, though the receiver fails, is slow and
// redirects, and another job's deliveries do not wait for it.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	well := make(chan struct{})
	failures := 0
	var mu sync.Mutex
	r.answering(func(m *request) int {
		if m.Data.Name != "bad" || m.Type != "job.trashed" {
			return http.StatusNoContent
		}
		select {
		case <-well:
			return http.StatusOK
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		failures++
		return []int{http.StatusInternalServerError, http.StatusFound, http.StatusTooManyRequests}[failures%3]
	})
	h := newStore(t).host("one", r.hook())
	h.ready(r)
	bad := h.life("bad")
	good := h.life("good")
	r.until("the other job's are told", func() bool { return len(r.about(good)) == 2 })
	r.until("the first was tried again and again", func() bool { mu.Lock(); defer mu.Unlock(); return failures > 4 })
	if got := r.about(bad); len(got) > 0 {
		t.Errorf("told %v before what goes before", got)
	}
	close(well)
	r.until("both are told", func() bool { return len(r.about(bad)) == 2 })
	for _, id := range []job.ID{bad, good} {
		if got := r.about(id); !slices.Equal(got, []string{"job.trashed", "job.ended"}) {
			t.Errorf("told %v", got)
		}
	}
}

// TestGone: a receiver that wants no more is not asked again; the delivery is in the trash,
// from which it can be sent anew.
func TestGone(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.answering(func(*request) int { return http.StatusGone })
	h := newStore(t).host("one", r.hook())
	h.ready(r)
	id := h.post("gone")
	h.consume(id)
	var set []*job.Job
	r.until("the delivery is set aside", func() bool {
		page, err := h.hooks.List(t.Context(), board.ListRequest{States: []job.State{job.Trashed}})
		set = page.Jobs
		return err == nil && len(set) == 1
	})
	if n := r.times(); n != 1 || !strings.Contains(set[0].LastReason, "410 Gone") {
		t.Errorf("asked %d times; %+v", n, set[0])
	}
	r.answering(func(*request) int { return http.StatusOK })
	h.done(h.hooks.Restore(t.Context(), []job.ID{set[0].ID}))
	r.until("it is told", func() bool { return len(r.about(id)) == 1 })
}

// TestSlow: a receiver that does not answer in time is asked again, and so is one that went
// away and came back.
func TestSlow(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Timeout = 200 * time.Millisecond
	slow := make(chan struct{})
	r.answering(func(*request) int {
		<-slow
		return http.StatusOK
	})
	h := newStore(t).host("one", hook)
	h.ready(r)
	id := h.post("slow")
	h.consume(id)
	r.until("it is tried again", func() bool { return r.times() >= 2 })
	close(slow)
	r.until("it is told", func() bool { return len(r.about(id)) == 1 })

	r.server.CloseClientConnections()
	_ = r.server.Listener.Close()
	lost := h.post("lost")
	h.consume(lost)
	r.until("it is tried", func() bool {
		page, err := h.hooks.List(t.Context(), board.ListRequest{})
		return err == nil && len(page.Jobs) == 1 && page.Jobs[0].Attempt >= 2
	})
	again := newReceiver(t)
	hook.URL = again.server.URL
	h.stop()
	h.store.host("two", hook)
	again.until("it is told by the next host", func() bool { return len(again.about(lost)) == 1 })
}

// TestStopped: a delivery that is under way when a server ends is given back, and its try does
// not count.
func TestStopped(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	asked, ended := make(chan struct{}, 1), make(chan struct{})
	defer close(ended)
	r.answering(func(*request) int {
		asked <- struct{}{}
		<-ended
		return http.StatusOK
	})
	hook := r.hook()
	hook.Timeout = webhook.MaxTimeout
	s := newStore(t)
	h := s.host("one", hook)
	h.ready(r)
	h.consume(h.post("long"))
	<-asked
	h.stop()
	alone := s.host("two", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	page, err := alone.hooks.List(t.Context(), board.ListRequest{Filter: `name = "jobs/tell"`})
	if err != nil || len(page.Jobs) != 1 {
		t.Fatal(page, err)
	}
	if j := page.Jobs[0]; j.State != job.Unclaimed || j.Attempt != 0 || j.LastReason != "the server was stopped" {
		t.Errorf("%+v", j)
	}
}

// TestAtOnce: a server has so many requests under way, and no more.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Timeout = webhook.MaxTimeout
	var mu sync.Mutex
	under, most := 0, 0
	full, free := make(chan struct{}), make(chan struct{})
	r.answering(func(*request) int {
		mu.Lock()
		under++
		if most = max(most, under); under == webhook.AtOnce {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-free
		mu.Lock()
		defer mu.Unlock()
		under--
		return http.StatusOK
	})
	h := newStore(t).host("one", hook)
	h.ready(r)
	var ids []job.ID
	for range 3 * webhook.AtOnce {
		id := h.post("many")
		h.consume(id)
		ids = append(ids, id)
	}
	<-full
	close(free)
	for _, id := range ids {
		r.until("each is told", func() bool { return len(r.about(id)) == 1 })
	}
	if most != webhook.AtOnce {
		t.Errorf("%d requests at once", most)
	}
}

// TestHosts: whatever one of several hosts does, and though all go away and come back, each
// event is told, in the order of each job.
func TestHosts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	var mu sync.Mutex
	n := 0
	r.answering(func(*request) int {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%3 == 0 {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	s := newStore(t)
	one, two := s.host("one", r.hook()), s.host("two", r.hook())
	one.ready(r)
	var ids []job.ID
	for i := range 40 {
		ids = append(ids, []*host{one, two}[i%2].life("both"))
	}
	one.stop()
	for range 10 {
		ids = append(ids, two.life("two"))
	}
	two.stop()
	// Nobody follows, and the jobs go on.
	alone := s.host("three", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	for range 10 {
		ids = append(ids, alone.life("alone"))
	}
	alone.stop()
	last := s.host("four", r.hook())
	ids = append(ids, last.life("last"))
	for _, id := range ids {
		r.until("a job's end is told", func() bool { return slices.Contains(r.about(id), "job.ended") })
		if got := r.about(id); !slices.Equal(got, []string{"job.trashed", "job.ended"}) {
			t.Errorf("%s: told %v", id, got)
		}
	}
}

// TestUnheardDelivery: a server that begins to tell, and has not heard yet of what another one has
// posted, has what comes next about the same job wait for that.
func TestUnheardDelivery(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Paused = true // what is posted waits
	s := newStore(t)
	one := s.host("one", hook)
	one.ready(r)
	late := &lateNews{Driver: s.driver, board: "hooks"}
	other := webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second}
	two := (&store{T: t, driver: late}).host("two", other)
	late.held.Lock()
	t.Cleanup(late.held.Unlock)
	before, id := one.bookmark(), one.post("late")
	one.done(one.jobs.Trash(t.Context(), nil, []job.ID{id}, "looks odd"))
	r.until("the other server has kept that it told of it", func() bool { return one.bookmark() != before })
	one.stop()
	two.tells.Set([]webhook.Hook{hook}, nil)
	two.done(two.jobs.Restore(t.Context(), []job.ID{id}))
	two.consume(id)
	if after := s.afterOfEnd(r); after == "" {
		t.Fatal("what is told of its end does not wait")
	}
}

// bookmark returns what is kept of how far the webhook is.
func (h *host) bookmark() string {
	h.Helper()
	data, _, err := h.hooks.Bookmark(h.Context(), "webhook/jobs/tell")
	if err != nil {
		h.Fatal(err)
	}
	return string(data)
}

// afterOfEnd waits until the end of a job is to be told, and returns the delivery that goes before.
func (s *store) afterOfEnd(r *receiver) (after string) {
	s.Helper()
	looks := s.host("looks", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	r.until("the end of the job is to be told", func() bool {
		page, err := looks.hooks.List(s.Context(), board.ListRequest{Filter: `labels.event = "job.ended"`, Details: true})
		if err != nil || len(page.Jobs) == 0 {
			return false
		}
		var d struct{ After string }
		if err := json.Unmarshal(page.Jobs[0].Details, &d); err != nil {
			s.Fatalf("%s: %v", page.Jobs[0].Details, err)
		}
		after = d.After
		return true
	})
	return after
}

// TestTellsBehind: a server that goes on from what the board still knows has the end of a job wait for
// what another one, which still knew the changes one by one, has posted about it since.
func TestTellsBehind(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Paused = true // what is posted waits
	s := newStore(t)
	one := s.host("one", hook)
	one.ready(r)
	one.stop()
	other := s.host("two", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	before, id := other.bookmark(), other.post("late")
	other.done(other.jobs.Trash(t.Context(), nil, []job.ID{id}, "looks odd"))
	other.done(other.jobs.Restore(t.Context(), []job.ID{id}))
	(&store{T: t, driver: forgetful{s.driver}}).host("three", hook)
	r.until("the server has missed that the job was in the trash", func() bool { return other.bookmark() != before })
	late := job.Posting{ID: job.ID{15: 7}, Name: hook.Key(), Details: []byte(`{}`), Labels: job.LabelsOf(map[string]string{
		"webhook": hook.Key(), "event": "job.trashed", "job": id.String(),
	})}
	if results, err := other.hooks.Post(t.Context(), []job.Posting{late}); err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	other.consume(id)
	if after := s.afterOfEnd(r); after != late.ID.String() {
		t.Errorf("what is told of its end waits for %q, want %s", after, late.ID)
	}
}

// lateNews is a store that says nothing of what changes on a board while that is held.
type lateNews struct {
	driver.Driver
	board string
	held  sync.Mutex
}

func (l *lateNews) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for changes, err := range l.Driver.Watch(ctx, name, after) {
			if name == l.board {
				l.held.Lock()
				l.held.Unlock() //nolint:staticcheck // it was waited for
			}
			if !yield(changes, err) {
				return
			}
		}
	}
}

// TestMissed: of what happened while nobody followed, and of which the store does not know the
// changes any more, it is told how it ended.
func TestMissed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newStore(t)
	h := s.host("one", r.hook())
	h.ready(r)
	before := h.life("before")
	r.until("it is told", func() bool { return len(r.about(before)) == 2 })
	h.stop()
	forgetful := &store{T: t, driver: forgetful{s.driver}}
	alone := s.host("two", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	ended, trashed, exhausted := alone.post("ended"), alone.post("trashed"), alone.post("exhausted")
	alone.consume(ended)
	alone.done(alone.jobs.Trash(t.Context(), nil, []job.ID{trashed}, ""))
	alone.done(alone.jobs.Abandon(t.Context(), alone.claim(exhausted), board.AbandonOptions{}))
	alone.stop()
	forgetful.host("three", r.hook())
	for id, want := range map[job.ID]string{ended: "job.ended", trashed: "job.trashed", exhausted: "job.exhausted"} {
		r.until(want, func() bool { return slices.Equal(r.about(id), []string{want}) })
	}
	if got := r.about(before); len(got) != 2 {
		t.Errorf("told again: %v", got)
	}
}

// TestMissedBeforeAMove: what ended in the old store has a place in the new one that says nothing:
// it is told of by when that was, and once.
func TestMissedBeforeAMove(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newStore(t)
	h := s.host("one", r.hook())
	h.ready(r)
	before := h.life("before")
	r.until("it is told", func() bool { return len(r.about(before)) == 2 })
	h.stop()
	alone := s.host("two", webhook.Hook{Board: "other", Name: "tell", URL: "http://127.0.0.1:1", Deliveries: "hooks", Timeout: time.Second})
	_, later, err := alone.jobs.Events(t.Context(), "", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := alone.post("ended")
	alone.consume(ended)
	r.until("the board says that the job has ended", func() bool {
		events, next, err := alone.jobs.Events(t.Context(), later, 10, time.Second)
		later = next
		return err == nil && slices.ContainsFunc(events, func(e job.Event) bool { return e.Type == job.ConsumedEvent && e.Job.ID == ended })
	})
	data, version, err := alone.hooks.Bookmark(t.Context(), "webhook/jobs/tell")
	var mark map[string]any
	if err != nil || json.Unmarshal(data, &mark) != nil {
		t.Fatalf("%s, %v", data, err)
	}
	mark["cursor"] = later // as if the old store had come so far before the job ended
	if data, err = json.Marshal(mark); err == nil {
		_, err = alone.hooks.PutBookmark(t.Context(), "webhook/jobs/tell", data, version)
	}
	if err != nil {
		t.Fatal(err)
	}
	alone.post("more")
	alone.stop()
	moved := &store{T: t, driver: s.driver, came: "a move"}
	for _, name := range []string{"three", "four"} { // the second one goes on from the first one's bookmark
		h := moved.host(name, r.hook())
		r.until("it is told", func() bool { return slices.Equal(r.about(ended), []string{"job.ended"}) })
		after := h.life("after")
		r.until("it is told", func() bool { return len(r.about(after)) == 2 })
		if got := r.about(before); len(got) != 2 {
			t.Errorf("told again: %v", got)
		}
		h.stop()
	}
}

// forgetful is a store that knows no change of the past.
type forgetful struct{ driver.Driver }

func (f forgetful) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		status, err := f.OpenBoard(ctx, driver.BoardSpec{Name: name})
		if err != nil {
			yield(driver.Changes{}, err)
			return
		}
		if after < status.Position && !yield(driver.Changes{Resync: true, Position: status.Position}, nil) {
			return
		}
		for changes, err := range f.Driver.Watch(ctx, name, max(after, status.Position)) {
			if !yield(changes, err) {
				return
			}
		}
	}
}

// TestWaitsSince: a job waits since it may be claimed: not while it is delayed, and anew each time
// that it is given back.
func TestWaitsSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{T: t, server: &httptest.Server{URL: "http://127.0.0.1:1"}}
		hook := r.hook()
		hook.Waiting = time.Minute
		hook.Events, hook.Networks = nil, nil
		h := newStore(t).host("one", hook)
		defer h.stop()
		want := func(n int, when string) {
			t.Helper()
			page, err := h.hooks.List(t.Context(), board.ListRequest{States: []job.State{job.Unclaimed, job.Claimed, job.Trashed}, Filter: `labels.event = "board.waiting"`})
			if err != nil || len(page.Jobs) != n {
				t.Errorf("%s: %d alarms, %v, want %d", when, len(page.Jobs), err, n)
			}
		}
		results, err := h.jobs.Post(t.Context(), []job.Posting{{Name: "later", NotBefore: time.Now().Add(10 * time.Minute)}})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		id := results[0].Job.ID
		time.Sleep(10*time.Minute + 30*time.Second)
		want(0, "half a minute after its time")
		time.Sleep(time.Minute)
		want(1, "after it has waited for long")
		refs := h.claim(id)
		time.Sleep(20 * time.Second) // no longer than its lease
		h.done(h.jobs.Abandon(t.Context(), refs, board.AbandonOptions{}))
		time.Sleep(30 * time.Second)
		want(1, "half a minute after it was given back")
		time.Sleep(time.Minute)
		want(2, "after it has waited for long again")
	})
}

// TestWaiting: that the oldest job waits is told once, until none waits for long any more.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{T: t, server: &httptest.Server{URL: "http://127.0.0.1:1"}}
		hook := r.hook()
		hook.Waiting = time.Minute
		hook.Events, hook.Networks = nil, nil
		s := newStore(t)
		h, other := s.host("one", hook), s.host("two", hook)
		defer other.stop()
		defer h.stop()
		alarms := func() (list []*job.Job) {
			page, err := h.hooks.List(t.Context(), board.ListRequest{States: []job.State{job.Unclaimed, job.Claimed, job.Trashed}, Filter: `labels.event = "board.waiting"`})
			if err != nil {
				t.Fatal(err)
			}
			return page.Jobs
		}
		first := h.post("waits")
		time.Sleep(10 * time.Second)
		second := h.post("waits as well")
		time.Sleep(40 * time.Second)
		if n := len(alarms()); n != 0 {
			t.Fatalf("%d alarms before it is time", n)
		}
		time.Sleep(20 * time.Second)
		if n := len(alarms()); n != 1 {
			t.Fatalf("%d alarms", n)
		}
		h.consume(first)
		time.Sleep(3 * time.Minute)
		if n := len(alarms()); n != 1 {
			t.Fatalf("%d alarms, and it was late all the time", n)
		}
		h.consume(second)
		time.Sleep(time.Minute)
		h.post("is late again")
		time.Sleep(2 * time.Minute)
		if n := len(alarms()); n != 2 {
			t.Fatalf("%d alarms after it was well and is not again", n)
		}
	})
}
