package board

import (
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What is what a worker is told of a claim in hand.
type What uint8

// The notices.
const (
	NoticeLost   What = iota + 1 // it has ended, and its holder did not end it
	NoticeCancel                 // its job is to be canceled
	NoticeRecall                 // it was given ahead, and another worker waits that would begin at once
)

// Notice tells a worker something of a claim.
type Notice struct {
	ID     job.ID
	Token  job.Token // zero: not known
	What   What
	Reason string
}

// hands knows which claims the workers that call Work have in hand: those that this
// host gave or extended. So it can tell a worker at once of what others did to them,
// and of that alone. The zero value is ready.
type hands struct {
	mu      sync.Mutex
	workers map[string]*hand // by owner
	claims  map[job.ID]*inHand
	ahead   []job.ID // claims given ahead, oldest first; some have ended or begun since
	swept   time.Time
}

// hand is one worker's. It is guarded by hands.mu.
type hand struct {
	claims int
	calls  int      // of Work, now
	news   []Notice // not told yet
	awaits map[*func()]struct{}
	seen   time.Time // the end of the last call
}

// inHand is one claim.
type inHand struct {
	hand     *hand
	owner    string
	token    job.Token
	position driver.Position // as of which the claim is known to stand
	ahead    bool            // it has not begun, as far as was said, and was not recalled
	canceled bool            // its holder was told
}

// Bounds of what is kept for workers that don't come for it.
const (
	maxNews    = 1024             // of one worker
	maxAhead   = 4096             // of a board; the oldest ones are not recalled
	keepHands  = time.Minute      // after a worker's last call, if it has no claims
	sweepHands = 30 * time.Second // between two looks at all workers
)

// enter begins a call of a worker; exit must be called.
func (h *hands) enter(owner string) (exit func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep()
	w := h.workers[owner]
	if w == nil {
		if h.workers == nil {
			h.workers, h.claims = make(map[string]*hand), make(map[job.ID]*inHand)
		}
		w = &hand{awaits: make(map[*func()]struct{})}
		h.workers[owner] = w
	}
	w.calls++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		w.calls--
		w.seen = time.Now()
	}
}

// sweep forgets the workers that have gone. The caller holds h.mu.
func (h *hands) sweep() {
	if time.Since(h.swept) < sweepHands {
		return
	}
	h.swept = time.Now()
	for owner, w := range h.workers {
		if w.calls == 0 && w.claims == 0 && time.Since(w.seen) > keepHands {
			delete(h.workers, owner)
		}
	}
}

// busy returns how many workers share the board's jobs: those with a claim or a call.
func (h *hands) busy() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.workers {
		if w.calls > 0 || w.claims > 0 {
			n++
		}
	}
	return n
}

// hold notes that a worker has a claim.
func (h *hands) hold(owner string, id job.ID, t job.Token, at driver.Position, ahead bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.workers[owner]
	if w == nil {
		return
	}
	if c := h.claims[id]; c != nil {
		if c.token == t {
			c.position, c.ahead = max(c.position, at), c.ahead && ahead
			return
		}
		if c.position > at {
			return
		}
		h.drop(id)
	}
	h.claims[id] = &inHand{hand: w, owner: owner, token: t, position: at, ahead: ahead}
	w.claims++
	if !ahead {
		return
	}
	if h.ahead = append(h.ahead, id); len(h.ahead) > maxAhead {
		h.ahead = slices.Delete(h.ahead, 0, maxAhead/2)
	}
}

// drop forgets a claim. The caller holds h.mu.
func (h *hands) drop(id job.ID) *inHand {
	c := h.claims[id]
	if c != nil {
		delete(h.claims, id)
		c.hand.claims--
	}
	return c
}

// parting is a claim that its holder is about to end.
type parting struct {
	item  int // of the call
	id    job.ID
	claim *inHand
}

// leave forgets claims that their holder is about to end, and returns those that were
// known.
func (h *hands) leave(proofs []proof, ids []job.ID) (left []parting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.claims) == 0 {
		return nil
	}
	for i := range proofs {
		c := h.claims[ids[i]]
		if c != nil && (proofs[i].must != driver.HeldByToken || proofs[i].token == c.token) {
			left = append(left, parting{i, ids[i], h.drop(ids[i])})
		}
	}
	return left
}

// stay takes claims back that were not ended after all.
func (h *hands) stay(left []parting, errs []error, failed error) {
	for _, p := range left {
		err := errs[p.item]
		if err == nil {
			err = failed
		}
		switch job.KindOf(err) {
		case job.NoKind, job.LeaseLost, job.NotFound, job.NotClaimed, job.NotOwner:
		default:
			h.mu.Lock()
			if h.claims[p.id] == nil {
				h.claims[p.id] = p.claim
				p.claim.hand.claims++
			}
			h.mu.Unlock()
		}
	}
}

// begun notes that claims which were given ahead have begun.
func (h *hands) begun(id job.ID, t job.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.claims[id]; c != nil && c.token == t {
		c.ahead = false
	}
}

// await has wake called as soon as there is news for a worker; it may be called more
// than once. stop must be called.
func (h *hands) await(owner string, wake func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.workers[owner]
	w.awaits[&wake] = struct{}{}
	if len(w.news) > 0 {
		wake()
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(w.awaits, &wake)
	}
}

// take returns the news for a worker.
func (h *hands) take(owner string) []Notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.workers[owner]
	news := w.news
	w.news = nil
	return news
}

// tell keeps a notice until a call of the worker takes it. The caller holds h.mu.
func (w *hand) tell(n Notice) {
	if len(w.news) >= maxNews {
		w.news = slices.Delete(w.news, 0, maxNews/2)
	}
	w.news = append(w.news, n)
	for wake := range w.awaits {
		(*wake)()
	}
}

// heard tells workers what changes mean for their claims.
func (h *hands) heard(items []item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.workers) == 0 {
		return
	}
	for i := range items {
		it := &items[i]
		c := h.claims[it.id]
		if c == nil {
			h.heardOf(it)
			continue
		}
		now, known := it.token()
		switch {
		case it.position <= c.position || !known:
		case now != c.token:
			h.drop(it.id)
			c.hand.tell(Notice{ID: it.id, Token: c.token, What: NoticeLost, Reason: it.reason})
		case it.event == job.OperationEvent && !c.canceled && it.cancelRequested():
			c.canceled = true
			c.hand.tell(Notice{ID: it.id, Token: c.token, What: NoticeCancel, Reason: it.reason})
		}
	}
}

// heardOf is heard for a claim that another host gave to a worker who asks this one. The
// end of such a claim is told only where its holder cannot have ended it. The caller
// holds h.mu.
func (h *hands) heardOf(it *item) {
	w := h.workers[it.holder()]
	if w == nil || len(w.awaits) == 0 {
		return
	}
	switch now, _ := it.token(); {
	case it.event == job.Expired:
		w.tell(Notice{ID: it.id, What: NoticeLost, Reason: it.reason})
	case it.event == job.OperationEvent && now != (job.Token{}) && it.cancelRequested():
		w.tell(Notice{ID: it.id, Token: now, What: NoticeCancel, Reason: it.reason})
	}
}

// token returns the token of the claim that stands after the event, which is zero if
// nobody holds the job, and whether that is known.
func (it *item) token() (job.Token, bool) {
	switch {
	case it.record != nil && it.record.Holder != nil:
		return it.record.Holder.Token, true
	case it.record != nil:
		return job.Token{}, true
	case it.entry != nil && it.entry.Claim != nil:
		return it.entry.Claim.Token, true
	}
	return job.Token{}, it.entry != nil
}

// recall asks workers to give back up to most claims that were given ahead, youngest
// first, of those that suit.
func (h *hands) recall(most int, suits func(ids []job.ID) []bool) {
	h.mu.Lock()
	var ids []job.ID
	for len(h.ahead) > 0 && len(ids) < most {
		id := h.ahead[len(h.ahead)-1]
		h.ahead = h.ahead[:len(h.ahead)-1]
		if c := h.claims[id]; c != nil && c.ahead {
			ids = append(ids, id)
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	fit := suits(ids)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, id := range slices.Backward(ids) {
		c := h.claims[id]
		switch {
		case c == nil || !c.ahead:
		case fit[i]:
			c.ahead = false
			c.hand.tell(Notice{ID: id, Token: c.token, What: NoticeRecall, Reason: "another worker waits"})
		default:
			h.ahead = append(h.ahead, id)
		}
	}
}

// known returns the claims in hand.
func (h *hands) known() []job.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]job.ID, 0, len(h.claims))
	for id := range h.claims {
		ids = append(ids, id)
	}
	return ids
}

// compareHands tells the workers which claims do not stand any more, after the index was made
// anew: of the changes in between nobody heard.
func (b *Board) compareHands() {
	for _, id := range b.hands.known() {
		e, open := b.index.Get(id)
		it := item{id: id, entry: e, position: ^driver.Position(0), reason: "the board was read anew"}
		if it.event = job.OperationEvent; !open {
			it.record = &driver.Record{}
		}
		b.hands.heard([]item{it})
	}
}
