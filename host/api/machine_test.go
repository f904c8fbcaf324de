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
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "root.example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, signer := template, key
	if a.cert == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage, template.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	} else {
		template.DNSNames, parent, signer = []string{name}, a.cert, a.key
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

// TestMachines: a certificate that the authority has signed and that a token is
// for lets in, without a secret. A secret goes before it.
func TestMachines(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	caFile, _ := a.write(a.cert, a.key)
	certFile, keyFile := a.write(a.issue("server.example.org", []net.IP{net.IPv4(127, 0, 0, 1)}))
	c := settings()
	c.TLS = &config.TLS{CertFile: certFile, KeyFile: keyFile, ClientCAFile: caFile}
	c.Tokens = append(c.Tokens, tenant.Token{Name: "machine", Tenant: "acme", Roles: []tenant.Role{tenant.Viewer}, Certificate: "ci.example.org"})
	h, err := host.Open(t.Context(), host.Config{Config: c, Logger: quiet(), Drivers: map[string]driver.Program{"memory": memdriver.Program()}})
	if err != nil {
		t.Fatal(err)
	}
	running, err := api.NewServer(h, api.Config{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	with := func(name string) *server {
		cert, key := a.issue(name, nil)
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &server{url: "https://" + running.Addr().String(), client: &http.Client{Transport: transport}}
	}
	var who struct{ Tenant, TokenName string }
	machine := with("ci.example.org")
	machine.must(t, "", "WhoAmI", "{}", &who)
	if who.Tenant != "acme" || who.TokenName != "machine" {
		t.Errorf("the certificate is %+v", who)
	}
	machine.must(t, rootSecret, "WhoAmI", "{}", &who)
	if who.Tenant != "default" || who.TokenName != "root" {
		t.Errorf("with a secret it is %+v", who)
	}
	for what, r := range map[string]reply{
		"a wrong secret":                machine.call(t, "not-the-right-secret", "WhoAmI", "{}"),
		"another scheme":                machine.do(t, http.MethodPost, "/boardd.v1.BoardService/WhoAmI", "", "{}", "Authorization", "Basic eDp5"),
		"a certificate without a token": with("root.example.org").call(t, "", "WhoAmI", "{}"),
	} {
		if r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	if r := machine.call(t, "", "PostJobs", `{"board":"default","jobs":[{"name":"x"}]}`); r.status != http.StatusForbidden {
		t.Errorf("more than its roles allow: %d %s", r.status, r.body)
	}
}
