package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// The headers between servers of a fleet, and the one in which a caller is told who
// answered.
const (
	peerHeader   = "Boardd-Peer"         // of a call that is passed on: see fleet.Passed
	proofHeader  = "Boardd-Peer-Proof"   // of its answer: that its sender knows the key
	answerHeader = "Boardd-Peer-Answer"  // likewise: one of the following
	serverHeader = "Boardd-Server"       // of an answer that was passed on: who gave it, as it advertises itself
	publicHeader = "Boardd-Public"       // beside it: where clients may go straight to that server
	movedHeader  = "Boardd-Moved"        // of the error of a call that ended since its board is another server's now: whose
	thereHeader  = "Boardd-Moved-Public" // beside it: where clients may go straight to that server
	ownHeader    = "Boardd-Peer-Public"  // of an answer between servers: where clients may go straight to its sender, sealed

	answerTaken   = "taken"    // a stream begins
	answerNotMine = "not-mine" // nothing was done: somebody else is to be asked
	answerMoved   = "moved"    // the call was ended since the board moves to another server
)

// Bounds on what one server asks of another one.
const (
	MaxPassed   = 10_000      // calls at once that are passed on to one server
	dialWithin  = time.Second // for a connection to another server
	pingAfter   = time.Second // of silence on a connection
	pingWithin  = time.Second // for the answer to that; a server that is silent so long is taken for stopped
	probeEvery  = time.Second // a server that could not be reached is looked at
	handOverMax = 10 * time.Second
)

// Where servers ask each other whether boards are open, how they stand, and what a search
// finds on them, and where they tell each other what they remember of them.
const (
	hasOpenPath  = "/boardd.fleet/HasOpen"
	standPath    = "/boardd.fleet/Stand"
	findPath     = "/boardd.fleet/Find"
	rememberPath = "/boardd.fleet/Remember"
)

// peers are the other servers of a fleet, with one connection for each thousand calls
// that go on at once. It is host.Peers.
type peers struct {
	host      *host.Host
	transport *http.Transport
	number    atomic.Uint64 // of the last message, to whomever
	forwarded *counted
	still     still

	mu sync.Mutex
	by map[string]*peer // by their runs
}

// peer is one run of another server.
type peer struct {
	peers *peers
	seen  fleet.Seen
	calls map[string]passer // by procedure
	away  atomic.Bool       // it could not be reached lately
	where atomic.Value      // a string: where clients may go straight to it, as it said itself; empty: nowhere
	under atomic.Int64      // calls that are passed on to it now
}

func newPeers(h *host.Host, forwarded *counted) (*peers, error) {
	c := h.Settings()
	t, err := peerTransport(c)
	if err != nil {
		return nil, err
	}
	p := &peers{host: h, transport: t, forwarded: forwarded, still: still{after: stillAfter}, by: map[string]*peer{}}
	h.SetPeers(p)
	return p, nil
}

// peerTransport makes the connections: HTTP/2 only. Both ends of a fleet check
// certificates as they would for anybody; who the other one is, the key says.
func peerTransport(c *config.Config) (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Fleet.CAFile != "" {
		roots, err := config.Roots(c.Fleet.CAFile)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "fleet: ca_file: %v", err)
		}
		settings.RootCAs = roots
	}
	if c.TLS != nil { // for servers that demand a certificate of everybody
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
			return &pair, err
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     settings,
		TLSHandshakeTimeout: 2 * dialWithin,
		Protocols:           protocols,
		IdleConnTimeout:     idleWithin / 2,
		DisableCompression:  true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin},
	}, nil
}

// run looks at servers that could not be reached, until ctx ends.
func (p *peers) run(ctx context.Context) {
	defer p.transport.CloseIdleConnections()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		p.forget()
		var probing sync.WaitGroup
		for _, o := range p.all() {
			if o.away.Load() {
				probing.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, probeEvery)
					defer cancel()
					if _, err := p.HasOpen(ctx, o.seen, nil, false); err == nil {
						o.away.Store(false)
					}
				})
			}
		}
		probing.Wait()
	}
}

func (p *peers) all() []*peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*peer, 0, len(p.by))
	for _, o := range p.by {
		list = append(list, o)
	}
	return list
}

// forget drops runs that nobody hears of any more.
func (p *peers) forget() {
	servers, err := p.host.Fleet()
	if err != nil {
		return
	}
	known := map[string]bool{}
	for _, s := range servers {
		known[s.Boot] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for boot := range p.by {
		if !known[boot] {
			delete(p.by, boot)
		}
	}
}

// of returns a server of the fleet.
func (p *peers) of(s fleet.Seen) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.by[s.Boot]
	if o == nil {
		o = &peer{peers: p, seen: s, calls: map[string]passer{}}
		options := []connect.ClientOption{connect.WithCodec(boarddv1.Binary{}), connect.WithAcceptCompression("gzip", nil, nil)}
		for procedure, passerTo := range passable {
			o.calls[procedure] = passerTo(&http.Client{Transport: o}, s.Advertise+procedure, options...)
		}
		p.by[s.Boot] = o
	}
	return o
}

// unsent is the error of a message that the other server has not taken in.
type unsent struct{ error }

// Unwrap returns why it was not sent.
func (u *unsent) Unwrap() error { return u.error }

type passKey struct{}

// RoundTrip seals a request, sends it, and looks whether the answer is from a server of
// the fleet. The body is read first, since its digest is sealed, too.
func (o *peer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, &unsent{err}
		}
	}
	m := o.peers.host.Member()
	passed, _ := r.Context().Value(passKey{}).(fleet.Passed)
	passed.From, passed.To, passed.Number = m.Boot(), o.seen.Boot, o.peers.number.Add(1)
	passed.Call, passed.Body = r.URL.Path, fleet.DigestOf(body)
	header, proof, err := m.Key().Seal(passed)
	if err != nil {
		return nil, &unsent{err}
	}
	r = r.Clone(r.Context())
	r.Header.Set(peerHeader, header)
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	answer, err := o.peers.transport.RoundTrip(r)
	if err != nil {
		var network *net.OpError
		if errors.As(err, &network) && network.Op == "dial" {
			err = &unsent{err}
		}
		return nil, err
	}
	if answer.Header.Get(proofHeader) != proof {
		_ = answer.Body.Close()
		return nil, &unsent{job.Errorf(job.Unavailable, "what answers at %s does not prove that it has the key of the fleet", o.seen.Advertise)}
	}
	if public := m.Key().OpenPublic(proof, answer.Header.Get(ownHeader)); public != o.public() {
		o.where.Store(public)
	}
	return answer, nil
}

// public is where clients may go straight to the server, or "".
func (o *peer) public() string {
	text, _ := o.where.Load().(string)
	return text
}

// answers says in the header of an answer that it is this server's, and where clients may go
// straight to it.
func (o *peer) answers(header http.Header) { o.tell(header, serverHeader, publicHeader) }

// has says in the header of an error that the board is this server's now, likewise.
func (o *peer) has(header http.Header) { o.tell(header, movedHeader, thereHeader) }

func (o *peer) tell(header http.Header, as, at string) {
	header.Set(as, o.seen.Advertise)
	if public := o.public(); public != "" {
		header.Set(at, public)
	}
}

// hasOpen is what servers ask each other.
type hasOpen struct {
	Boards []catalog.At `json:"boards"`
	Warm   bool         `json:"warm,omitempty"`
	Open   []bool       `json:"open,omitempty"` // of the answer
}

// Bounds of what is asked and told.
const (
	maxHasOpen = 5000 // boards
	maxTold    = 64 << 20
)

// HasOpen asks a server to open boards, and returns which of them it has open.
func (p *peers) HasOpen(ctx context.Context, of fleet.Seen, boards []catalog.At, warm bool) ([]bool, error) {
	o := p.of(of)
	if o.away.Load() && len(boards) > 0 {
		return nil, job.Errorf(job.Unavailable, "the server %s could not be reached lately", of.Advertise)
	}
	var told hasOpen
	err := p.ask(ctx, o, hasOpenPath, hasOpen{Boards: boards[:min(len(boards), maxHasOpen)], Warm: warm}, &told)
	return told.Open, err
}

// Remember tells a server what this one remembers of boards.
func (p *peers) Remember(ctx context.Context, to fleet.Seen, boards []host.Remembered) error {
	return p.askSoon(ctx, to, rememberPath, boards, &struct{}{})
}

// Stand asks a server how boards stand that it has.
func (p *peers) Stand(ctx context.Context, of fleet.Seen, look host.Look) (list []*host.Standing, err error) {
	return list, p.askSoon(ctx, of, standPath, look, &list)
}

// Find has a server search its boards.
func (p *peers) Find(ctx context.Context, of fleet.Seen, f host.Find) (found []host.Found, err error) {
	return found, p.askSoon(ctx, of, findPath, f, &found)
}

// askSoon is ask for somebody who waits for it: one that could not be reached lately is not
// asked.
func (p *peers) askSoon(ctx context.Context, of fleet.Seen, path string, question, answer any) error {
	o := p.of(of)
	if m := p.host.Member(); o.away.Load() || m == nil || m.Key().None() {
		return job.Errorf(job.Unavailable, "the server %s could not be reached lately", of.Advertise)
	}
	return p.ask(ctx, o, path, question, answer)
}

// ask asks a server of the fleet.
func (p *peers) ask(ctx context.Context, o *peer, path string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.seen.Advertise+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	said, err := (&http.Client{Transport: o}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = said.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(said.Body, maxTold)).Decode(answer); err != nil || said.StatusCode != http.StatusOK {
		return job.Errorf(job.Unavailable, "the server %s answers with status %d", o.seen.Advertise, said.StatusCode)
	}
	return nil
}
