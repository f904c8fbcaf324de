package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/config"
)

// certify writes a certificate of its own with a serial number, as if it had been
// written at some time.
func certify(t *testing.T, c config.TLS, serial int64, at time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: raw}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// serial is what a new connection is shown.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // the test looks at the certificate itself
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		t.Errorf("the protocol is %q, want h2", state.NegotiatedProtocol)
	}
	return state.PeerCertificates[0].SerialNumber.Int64()
}

// TestCertificatesAreReadAnew: a renewed certificate is shown to new connections,
// and one that cannot be used to nobody.
func TestCertificatesAreReadAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := config.TLS{CertFile: filepath.Join(dir, "a.pem"), KeyFile: filepath.Join(dir, "a.key")}
	certify(t, c, 1, time.Unix(1, 0))
	s, err := newCertificates(&c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", s.config())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}()
		}
	}()
	address := listener.Addr().String()
	if got := serial(t, address); got != 1 {
		t.Errorf("certificate %d, want 1", got)
	}
	certify(t, c, 2, time.Unix(2, 0))
	s.look()
	if got := serial(t, address); got != 2 {
		t.Errorf("after it was renewed: certificate %d, want 2", got)
	}
	if err := os.WriteFile(c.KeyFile, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.look()
	if got := serial(t, address); got != 2 {
		t.Errorf("after it was spoilt: certificate %d, want 2", got)
	}
	other := config.TLS{CertFile: filepath.Join(dir, "b.pem"), KeyFile: filepath.Join(dir, "b.key")}
	if err := s.use(other); err == nil {
		t.Error("files that are not there were used")
	}
	certify(t, other, 3, time.Unix(3, 0))
	if err := s.use(other); err != nil {
		t.Error(err)
	}
	if got := serial(t, address); got != 3 {
		t.Errorf("after a reload: certificate %d, want 3", got)
	}
}

// TestNamesIn takes names from where those who sign check them.
func TestNamesIn(t *testing.T) {
	t.Parallel()
	uri, err := url.Parse("spiffe://example.org/ci")
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "root.example.org"}, URIs: []*url.URL{uri}, DNSNames: []string{"ci.example.org"}, EmailAddresses: []string{"a@example.org"},
	}
	if got, want := strings.Join(namesIn(c), " "), "spiffe://example.org/ci ci.example.org"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
