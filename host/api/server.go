// Package api carries a Host to the network: Connect, gRPC and gRPC-Web on one
// listener, with everything that stands between a stranger and a board.
//
// Locks. admission.mu, budget.mu, refusalLog.mu and certificates.mu are each held alone,
// while memory is read or written: a call gives its part of a budget back before it takes
// admission.mu, a log line is written and files are read without a lock. profiles.busy is
// held for as long as a profile is taken, and nobody waits for it: who finds it taken is
// refused.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/meter"
	"github.com/boardd/boardd/sdk/job"
)

// How long parts of a connection may take, and how long a stopping server
// waits for what runs.
const (
	headerWithin   = 10 * time.Second
	idleWithin     = 2 * time.Minute
	stopWithin     = 15 * time.Second
	maxHeaderBytes = 32 << 10
	maxStreams     = 1000 // calls at once on one HTTP/2 connection
)

// Config says how a Host is to be reached. What is empty comes from the host's
// own configuration.
type Config struct {
	Listen        string // HOST:PORT; port 0 takes a free one
	MetricsListen string
	Listeners     *Listeners   // instead of the addresses: the server closes them
	Logger        *slog.Logger // nil: slog.Default()
	Pages         Pages        // nil: one page that says where the calls are
}

// Pages are what people look at with a browser.
type Pages interface {
	http.Handler

	// Paths are the patterns of http.ServeMux that the pages answer.
	Paths() []string
}

// Server serves one Host.
type Server struct {
	logger   *slog.Logger
	gate     *gate
	delay    func() time.Duration // between saying that it ends and taking no new calls
	handler  http.Handler
	ports    *Listeners
	tls      *certificates // nil: plaintext
	stopping chan struct{} // closed when Run stops
	mux      *http.ServeMux
	registry *metrics
	peers    *peers                 // nil: the server is in no fleet
	meter    *meter.Meter           // nil: metrics are only there to be asked for
	unready  atomic.Pointer[string] // why the server was last not ready, as it was logged
}

// NewServer listens on the addresses of the configuration, if it was not given
// Listeners, but answers nobody before Run. If Run is not called, Close must be.
func NewServer(h *host.Host, c Config) (*Server, error) {
	settings := h.Settings()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Listen == "" {
		c.Listen = settings.Listen
	}
	if c.Listen == "" {
		c.Listen = config.DefaultListen
	}
	if c.MetricsListen == "" {
		c.MetricsListen = settings.MetricsListen
	}
	s := &Server{logger: c.Logger, stopping: make(chan struct{}), registry: newMetrics(h)}
	var err error
	if s.tls, err = newCertificates(settings.TLS, c.Logger); err != nil {
		return nil, err
	}
	if s.ports = c.Listeners; s.ports == nil {
		if s.ports, err = listenOn(c.Listen, c.MetricsListen); err != nil {
			return nil, err
		}
	}
	if s.meter, err = meter.New(context.Background(), settings.Metrics, s.registry.registry, h.Version(), h.ID(), c.Logger); err != nil {
		return nil, errors.Join(err, s.ports.Close())
	}
	s.gate = newGate(h, s.registry, c, settings.Hostnames)
	s.delay = func() time.Duration { return h.Settings().DrainDelay }
	if h.InFleet() {
		if s.peers, err = newPeers(h, newForwarded(s.registry)); err != nil {
			return nil, errors.Join(err, s.ports.Close())
		}
		s.gate.peers = s.peers
		for _, own := range []string{settings.Advertise, settings.Fleet.Public} {
			if u, err := url.Parse(own); err == nil && u.Hostname() != "" {
				s.gate.hostnames = append(s.gate.hostnames, strings.ToLower(u.Hostname()))
			}
		}
	}
	s.routes(h, c.Pages)
	return s, nil
}

func newGate(h *host.Host, m *metrics, c Config, hostnames []string) *gate {
	g := &gate{
		host: h, logger: c.Logger, metrics: m, readWithin: bodyWithin, refusals: &refusalLog{logger: c.Logger},
		bytes: budget{most: MaxBytes, mostOfTenant: MaxTenantBytes}, passed: budget{most: MaxBytes, mostOfTenant: MaxTenantBytes},
		work:    budget{most: MaxWork, mostOfTenant: MaxTenantWork},
		origins: http.NewCrossOriginProtection(), errors: connect.NewErrorWriter(codecs()),
	}
	for _, name := range hostnames {
		g.hostnames = append(g.hostnames, strings.ToLower(name))
	}
	if name, _, err := net.SplitHostPort(c.Listen); err == nil && name != "" {
		g.hostnames = append(g.hostnames, strings.ToLower(name))
	}
	return g
}

// loadTLS reads the certificates.
func loadTLS(c *config.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "tls: %s and %s: %v", c.CertFile, c.KeyFile, err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if c.ClientCAFile == "" {
		return t, nil
	}
	if t.ClientCAs, err = config.Roots(c.ClientCAFile); err != nil {
		return nil, job.Errorf(job.Invalid, "tls: client_ca_file: %v", err)
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	return t, nil
}

// UseTLS reads the certificates of a configuration in place of the present ones.
// New connections have them. A server without TLS stays without, and one with it
// with it.
func (s *Server) UseTLS(c *config.TLS) error {
	if s.tls == nil || c == nil {
		return nil
	}
	return s.tls.use(*c)
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return s.ports.main.Addr() }

// MetricsAddr returns where the metrics are served without a token, or nil.
func (s *Server) MetricsAddr() net.Addr {
	if s.ports.metrics == nil {
		return nil
	}
	return s.ports.metrics.Addr()
}

// Handler returns what the server answers with.
func (s *Server) Handler() http.Handler { return s.handler }

// Close stops listening. It is for a server that was never run.
func (s *Server) Close() error { return s.ports.Close() }

// Run serves until ctx ends. Then it says that it is not ready, goes on for the drain
// delay of the configuration, so that whoever sends it callers hears of it, takes no new
// calls, ends calls that only wait, lets the others finish for a while and
// returns. It does not close the Host.
func (s *Server) Run(ctx context.Context) error {
	main := s.httpServer(s.handler)
	var watching sync.WaitGroup
	defer watching.Wait()
	if s.tls != nil {
		main.TLSConfig = s.tls.config()
		looking, stop := context.WithCancel(ctx)
		defer stop()
		watching.Go(func() { s.tls.watch(looking) })
	}
	if s.peers != nil {
		reaching, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		watching.Go(func() { s.peers.run(reaching) })
		watching.Go(func() { s.peers.still.run(reaching) })
	}
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	watching.Go(func() { s.meter.Run(sending) })
	servers := []*http.Server{main}
	failed := make(chan error, 2)
	var wg sync.WaitGroup
	wg.Go(func() {
		if s.tls != nil {
			failed <- main.ServeTLS(secured{s.audible(s.ports.main)}, "", "")
			return
		}
		failed <- main.Serve(s.audible(s.ports.main))
	})
	if s.ports.metrics != nil {
		side := s.httpServer(s.registry.page())
		servers = append(servers, side)
		wg.Go(func() { failed <- side.Serve(s.audible(s.ports.metrics)) })
	}
	var err error
	select {
	case <-ctx.Done():
		err = s.drain(failed)
	case err = <-failed:
	}
	s.stop(context.WithoutCancel(ctx), servers)
	wg.Wait()
	if isGone(err) {
		return nil
	}
	return fmt.Errorf("the server cannot go on: %w", err)
}

func (s *Server) audible(l net.Listener) net.Listener { return &audible{Listener: l, logger: s.logger} }

// drain says that the server ends, and lets it serve on for the delay.
func (s *Server) drain(failed <-chan error) error {
	s.gate.host.Drain()
	delay := s.delay()
	if delay <= 0 {
		return nil
	}
	s.logger.Info("not ready any more, and stopping after the drain delay", "drain_delay", delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case err := <-failed:
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverMax)
	defer cancel()
	s.gate.host.HandedOver(ctx)
	return nil
}

// stop ends the servers: gently, and after a while not.
func (s *Server) stop(ctx context.Context, servers []*http.Server) {
	s.gate.host.Drain()
	s.gate.draining.Store(true)
	close(s.stopping)
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(ctx) != nil {
			s.logger.Warn("calls were cut off because they did not end in time", "waited", stopWithin)
			_ = server.Close()
		}
	}
}

func (s *Server) httpServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     30 * time.Second,
		},
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
}
