package api_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// TestReloadUnderLoad changes everything that a reload can change while jobs are
// posted, claimed and consumed. No call may fail.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	store, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	program := memdriver.Program()
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return lasting{store}, nil }
	var turn atomic.Int64
	certificates, transport := renewals(t, 6)
	defer transport.CloseIdleConnections()
	first := settings()
	first.TLS = &certificates[0]
	next := func() (*config.Config, error) {
		n := turn.Add(1)
		c := settings()
		c.TLS = &certificates[n]
		b := &c.Boards[0]
		b.Lease, b.IdempotencyWindow, b.Limits = time.Duration(30+n)*time.Second, time.Hour+time.Duration(n)*time.Second, config.Limits{OpenJobs: 1_000_000 + n}
		c.Tokens = append(c.Tokens, token("default", fmt.Sprint("more", n), fmt.Sprint("another-secret-of-the-test-", n), tenant.Viewer))
		c.Limits = map[string]config.Limits{"default": {RequestsPerSecond: 1_000_000 + n}}
		c.Boards = append(c.Boards, boardOf("default", fmt.Sprint("new", n)))
		return &c, nil
	}
	var running *api.Server
	h, err := host.Open(t.Context(), host.Config{
		Config: first, Logger: quiet(), Drivers: map[string]driver.Program{"memory": program}, Load: next,
		Swap: func(c *config.Config) error { return running.UseTLS(c.TLS) },
	})
	if err != nil {
		t.Fatal(err)
	}
	running, err = api.NewServer(h, api.Config{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	s := &server{url: "https://" + running.Addr().String(), client: &http.Client{Transport: transport}}
	var callers sync.WaitGroup
	var calls atomic.Int64
	loading, enough := context.WithCancel(t.Context())
	for i := range 4 {
		callers.Go(func() {
			for loading.Err() == nil && !t.Failed() {
				s.round(t, i)
				calls.Add(3)
			}
		})
	}
	for range 5 {
		if _, err := h.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		before := calls.Load()
		for calls.Load() < before+60 && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
	}
	enough()
	callers.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	_ = store.Close()
	t.Logf("%d calls", calls.Load())
}

// renewals returns so many certificates, each of an authority of its own, and what
// trusts all of these. It makes a connection for each call, so that each sees which
// certificate is there.
func renewals(t *testing.T, n int) ([]config.TLS, *http.Transport) {
	t.Helper()
	roots, list := x509.NewCertPool(), make([]config.TLS, n)
	for i := range list {
		c := testserver.NewCertificates(t)
		list[i] = config.TLS{CertFile: c.ServerCert, KeyFile: c.ServerKey}
		text, err := os.ReadFile(c.CA)
		if err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(text)
	}
	return list, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
}

// lasting is a store that outlives those who close it.
type lasting struct{ driver.Driver }

func (lasting) Close() error { return nil }

// round posts a job, claims it, and ends it.
func (s *server) round(t *testing.T, i int) {
	t.Helper()
	must := func(secret, call, body string, into any) bool {
		r := s.call(t, secret, call, body)
		if r.status != http.StatusOK {
			t.Errorf("%s: %d %s", call, r.status, r.body)
			return false
		}
		return json.Unmarshal([]byte(r.body), into) == nil
	}
	var posted wireResults
	var claimed wireClaims
	name := fmt.Sprint("mine", i)
	if !must(rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"`+name+`"}]}`, &posted) ||
		!must(workerSecret, "ClaimJobs", `{"board":"default","owner":"w","names":["`+name+`"],"wait":"20s"}`, &claimed) {
		return
	}
	if len(claimed.Claims) != 1 {
		t.Errorf("claimed %+v", claimed)
		return
	}
	if must(workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+claimed.Claims[0].ref()+`]}`, &posted) {
		posted.noErrors(t, 1)
	}
}
