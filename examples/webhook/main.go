// Command webhook is told of the jobs of a board: it takes requests, checks who signed them,
// and takes each event once.
//
//	boardd serve --config examples/webhook/boardd.hcl
//	go run ./examples/webhook
package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is what a request says.
type event struct {
	Type string `json:"type"`
	Data struct {
		Name    string `json:"name"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	} `json:"data"`
}

// verified reports whether a request was signed with the secret, and not long ago.
func verified(header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

// receiver takes requests.
type receiver struct {
	told chan event

	mu   sync.Mutex
	seen map[string]bool // by webhook-id; a real one keeps these in its database
}

// ServeHTTP answers when the event is taken, so that it comes again if it is not.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
	var e event
	if err != nil || !verified(q.Header, body) || json.Unmarshal(body, &e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	again := r.seen[q.Header.Get("webhook-id")]
	r.seen[q.Header.Get("webhook-id")] = true
	r.mu.Unlock()
	if !again {
		r.told <- e
	}
}

func run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8099"))
	if err != nil {
		return err
	}
	r := &receiver{told: make(chan event, 16), seen: map[string]bool{}}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Second}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // until it is closed

	c, err := client.New(client.Config{
		Addr:  cmp.Or(os.Getenv("BOARDD_ADDR"), "http://127.0.0.1:7422"),
		Token: "a-secret-to-try-things-with",
	})
	if err != nil {
		return err
	}
	defer c.Close()
	board := c.Board("builds")
	for name, work := range map[string]func(*client.Claim) error{
		"compile": func(claim *client.Claim) error { return board.Consume(ctx, claim) },
		"deploy":  func(claim *client.Claim) error { return board.Trash(ctx, "the disk is full", claim) },
	} {
		if _, err := board.Post(ctx, &client.NewJob{Name: name}); err != nil {
			return err
		}
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "a worker", Names: []string{name}})
		if err != nil {
			return err
		}
		if err := work(claims[0]); err != nil {
			return err
		}
	}
	told := map[string]event{}
	for len(told) < 2 {
		e := <-r.told
		told[e.Data.Name] = e
	}
	for _, name := range []string{"compile", "deploy"} {
		fmt.Printf("%s: %s %s\n", name, told[name].Type, cmp.Or(told[name].Data.Outcome, told[name].Data.Reason))
	}
	return nil
}
