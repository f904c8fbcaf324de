package workload

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/sleep"
)

// WebhookSecret is what requests to receivers are signed with.
const WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// WebhookTimeout is for how long a receiver is waited for. One that is slow takes up to twice
// as long.
const WebhookTimeout = time.Second

// A mood is how a receiver takes requests.
type mood int

const (
	well    mood = iota
	slow         // it takes them after a while, if somebody still waits
	failing      // it answers 500
	away         // it cuts the connection
	mute         // it takes them, and cuts the connection
	moods
)

// Receiver is a program that webhooks tell, and that is not always well. The last part of a
// request's path is the name of its webhook.
type Receiver struct {
	URL string

	recorder *history.Recorder
	server   http.Server
	ended    chan error

	mu       sync.Mutex
	mood     mood
	delay    time.Duration // of one that is slow
	requests map[string][]history.Request
}

// NewReceiver starts a receiver, which is well. What wraps it, if anything does, is what stands
// between servers and it.
func NewReceiver(recorder *history.Recorder, wrap func(http.Handler) http.Handler) (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return nil, err
	}
	r := &Receiver{URL: "http://" + listener.Addr().String() + "/", recorder: recorder, ended: make(chan error, 1), requests: map[string][]history.Request{}}
	r.server.Handler, r.server.ReadHeaderTimeout = r, 10*time.Second
	if wrap != nil {
		r.server.Handler = wrap(r)
	}
	go func() { r.ended <- r.server.Serve(listener) }()
	return r, nil
}

// Close ends the receiver.
func (r *Receiver) Close() error {
	err := r.server.Close()
	if ended := <-r.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// change has the receiver be in another mood.
func (r *Receiver) change(to mood, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mood, r.delay = to, delay
}

// sway changes the mood again and again until ctx ends, and then has the receiver be well.
func (r *Receiver) sway(ctx context.Context, random *rand.Rand) {
	defer r.change(well, 0)
	for sleep.For(ctx, time.Duration(200+random.IntN(500))*time.Millisecond) == nil {
		to := well
		if random.IntN(3) > 0 {
			to = mood(random.IntN(int(moods)))
		}
		r.change(to, time.Duration(random.Int64N(int64(2*WebhookTimeout))))
	}
}

// ServeHTTP writes a request down, and takes it or does not.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	if err != nil {
		return // its sender has gone
	}
	r.mu.Lock()
	mood, delay := r.mood, r.delay
	r.mu.Unlock()
	if mood == away {
		panic(http.ErrAbortHandler)
	}
	took := r.note(path.Base(q.URL.Path), read(q.Header, body))
	switch {
	case mood == failing, mood == slow && sleep.For(q.Context(), delay) != nil:
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	took()
	if mood == mute {
		panic(http.ErrAbortHandler)
	}
}

// note writes down that a request has come, and took that the receiver has it.
func (r *Receiver) note(hook string, q history.Request) (took func()) {
	q.From = r.recorder.Now().Order
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[hook] = append(r.requests[hook], q)
	n := len(r.requests[hook]) - 1
	return func() {
		now := r.recorder.Now().Order
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests[hook][n].To = now
	}
}

// got returns the requests to a webhook so far.
func (r *Receiver) got(hook string) []history.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]history.Request(nil), r.requests[hook]...)
}

// read returns what a request says.
func read(head http.Header, body []byte) history.Request {
	q := history.Request{ID: head.Get("Webhook-Id"), Signed: signed(head, body)}
	var m struct {
		Type string `json:"type"`
		Data struct {
			UUID    string `json:"uuid"`
			Outcome string `json:"outcome"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &m) == nil {
		q.Job, q.Tells = m.Data.UUID, strings.TrimSpace(m.Type+" "+m.Data.Outcome)
	}
	return q
}

// signed reports whether a request is signed with the secret, and not long ago.
func signed(head http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(WebhookSecret, "whsec_"))
	if err != nil {
		return false
	}
	at, err := strconv.ParseInt(head.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(head.Get("Webhook-Id") + "." + head.Get("Webhook-Timestamp") + "."))
	mac.Write(body)
	return head.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
