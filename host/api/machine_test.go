package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.issue("", nil)
	return a
}

// issue makes a certificate for a DNS name, signed by the authority, or the
// authority's own.
func (a *authority) issue(name string, ips []net.IP) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	return a.issueUntil(name, ips, time.Now().Add(time.Hour))
}

// issueUntil makes a certificate that ends. A name with a colon is a URI.
func (a *authority) issueUntil(name string, ips []net.IP, end time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "root.example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, signer := template, key
	if a.cert == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage, template.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	} else {
		template.DNSNames, parent, signer = []string{name}, a.cert, a.key
		if u, err := url.Parse(name); err == nil && u.Scheme != "" {
			template.DNSNames, template.URIs = nil, []*url.URL{u}
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// write writes a certificate and its key in a folder, and returns their names.
func (a *authority) write(cert *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	a.t.Helper()
	dir := a.t.TempDir()
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert.Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// machines is a server that lets in by certificates of an authority, with a
// configuration that may be changed and read anew.
type machines struct {
	authority *authority
	host      *host.Host
	addr      string
	roots     *x509.CertPool
	next      config.Config
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	a := newAuthority(t)
	m := &machines{authority: a, roots: x509.NewCertPool(), next: settings()}
	m.roots.AddCert(a.cert)
	caFile, _ := a.write(a.cert, a.key)
	certFile, keyFile := a.write(a.issue("server.example.org", []net.IP{net.IPv4(127, 0, 0, 1)}))
	m.next.TLS = &config.TLS{CertFile: certFile, KeyFile: keyFile, ClientCAFile: caFile}
	m.next.Tokens = append(m.next.Tokens,
		tenant.Token{Name: "machine", Tenant: "acme", Roles: []tenant.Role{tenant.Viewer}, Certificate: "ci.example.org"},
		tenant.Token{Name: "workload", Tenant: "acme", Roles: []tenant.Role{tenant.Worker}, Certificate: "spiffe://example.org/ns/ci/sa/worker"})
	h, err := host.Open(t.Context(), host.Config{
		Config: m.next, Logger: quiet(), Drivers: map[string]driver.Program{"memory": memdriver.Program()},
		Load: func() (*config.Config, error) { next := m.next; return &next, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	running, err := api.NewServer(h, api.Config{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	m.host, m.addr = h, running.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// with is a client with a certificate.
func (m *machines) with(t *testing.T, cert *x509.Certificate, key *ecdsa.PrivateKey) *server {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: m.roots, Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &server{url: "https://" + m.addr, client: &http.Client{Transport: transport}}
}

func (m *machines) named(t *testing.T, name string) *server {
	t.Helper()
	cert, key := m.authority.issue(name, nil)
	return m.with(t, cert, key)
}

// TestMachines: a certificate that the authority has signed and that a token is
// for lets in, without a secret. A secret goes before it.
func TestMachines(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	var who struct{ Tenant, TokenName string }
	machine := m.named(t, "ci.example.org")
	machine.must(t, "", "WhoAmI", "{}", &who)
	if who.Tenant != "acme" || who.TokenName != "machine" {
		t.Errorf("the certificate is %+v", who)
	}
	machine.must(t, rootSecret, "WhoAmI", "{}", &who)
	if who.Tenant != "default" || who.TokenName != "root" {
		t.Errorf("with a secret it is %+v", who)
	}
	m.named(t, "spiffe://example.org/ns/ci/sa/worker").must(t, "", "WhoAmI", "{}", &who)
	if who.TokenName != "workload" {
		t.Errorf("the URI is %+v", who)
	}
	for what, r := range map[string]reply{
		"a wrong secret":                machine.call(t, "not-the-right-secret", "WhoAmI", "{}"),
		"another scheme":                machine.do(t, http.MethodPost, "/boardd.v1.BoardService/WhoAmI", "", "{}", "Authorization", "Basic eDp5"),
		"a certificate without a token": m.named(t, "root.example.org").call(t, "", "WhoAmI", "{}"),
		"a name above":                  m.named(t, "example.org").call(t, "", "WhoAmI", "{}"),
		"a name below":                  m.named(t, "a.ci.example.org").call(t, "", "WhoAmI", "{}"),
		"a wildcard":                    m.named(t, "*.example.org").call(t, "", "WhoAmI", "{}"),
		"a URI below":                   m.named(t, "spiffe://example.org/ns/ci/sa/worker/x").call(t, "", "WhoAmI", "{}"),
	} {
		if r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	if r := machine.call(t, "", "PostJobs", `{"board":"default","jobs":[{"name":"x"}]}`); r.status != http.StatusForbidden {
		t.Errorf("more than its roles allow: %d %s", r.status, r.body)
	}
}

// TestCertificatesOfStrangers come no further than the handshake.
func TestCertificatesOfStrangers(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	other := newAuthority(t)
	strange, strangeKey := other.issue("ci.example.org", nil)
	old, oldKey := m.authority.issueUntil("ci.example.org", nil, time.Now().Add(-time.Minute))
	for what, s := range map[string]*server{
		"another authority's": m.with(t, strange, strangeKey),
		"one that has ended":  m.with(t, old, oldKey),
		"none":                {url: "https://" + m.addr, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.roots}}}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := s.client.Do(r); err == nil {
			_ = answer.Body.Close()
			t.Errorf("%s: %d", what, answer.StatusCode)
		}
	}
}

// TestMachinesComeAndGo: a renewed certificate is the same machine; one that was
// taken out of the configuration is nobody, and what went on in its name ends.
func TestMachinesComeAndGo(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	first, renewed := m.named(t, "ci.example.org"), m.named(t, "ci.example.org")
	var who struct{ TokenName string }
	for _, s := range []*server{first, renewed} {
		if s.must(t, "", "WhoAmI", "{}", &who); who.TokenName != "machine" {
			t.Errorf("it is %+v", who)
		}
	}
	waiting := first.during(t, "", "ListEvents", `{"board":"default","wait":"50s"}`)
	m.next.Tokens = slices.DeleteFunc(slices.Clone(m.next.Tokens), func(t tenant.Token) bool { return t.Name == "machine" })
	if changes, err := m.host.Reload(t.Context()); err != nil || !slices.Equal(changes, []string{"token acme/machine: removed"}) {
		t.Fatalf("%v, %v", changes, err)
	}
	if status, answer := waiting(); status != http.StatusUnauthorized {
		t.Errorf("what went on: %d %s", status, answer)
	}
	for _, s := range []*server{first, renewed} {
		if r := s.call(t, "", "WhoAmI", "{}"); r.status != http.StatusUnauthorized {
			t.Errorf("after it was taken out: %d %s", r.status, r.body)
		}
	}
}

// TestProvidersComeAndGo: an oidc block that was taken out of the configuration, or
// changed, lets nobody in any more by what it was before.
func TestProvidersComeAndGo(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	p, k := identitytest.New(t), identitytest.ECDSA(t, "e")
	p.Set(k)
	s := m.named(t, "ci.example.org")
	secret := k.Sign(t, p.Claims(nil))
	reload := func(issuers ...config.Issuer) {
		t.Helper()
		m.next.Issuers = issuers
		if _, err := m.host.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.call(t, secret, "WhoAmI", "{}"); r.status != http.StatusUnauthorized {
		t.Errorf("before there is a block: %d %s", r.status, r.body)
	}
	reload(p.Settings())
	s.must(t, secret, "WhoAmI", "{}", nil)
	waiting := s.during(t, secret, "ListEvents", `{"board":"default","wait":"50s"}`)
	without := p.Settings()
	without.Refuse = []string{"alice"}
	reload(without)
	if status, answer := waiting(); status != http.StatusUnauthorized {
		t.Errorf("what went on: %d %s", status, answer)
	}
	if r := s.call(t, secret, "WhoAmI", "{}"); r.status != http.StatusUnauthorized || !strings.Contains(r.body, "list refuse") {
		t.Errorf("who is refused: %d %s", r.status, r.body)
	}
	broken := p.Settings()
	broken.CAFile = "/nowhere/ca.pem"
	m.next.Issuers = []config.Issuer{broken}
	if _, err := m.host.Reload(t.Context()); err == nil {
		t.Error("a block whose ca_file is not there was taken")
	}
	if r := s.call(t, secret, "WhoAmI", "{}"); !strings.Contains(r.body, "list refuse") {
		t.Errorf("after a reload that failed: %d %s", r.status, r.body)
	}
}
