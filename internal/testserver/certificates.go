package testserver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are files with an authority and what it has signed: a server at
// 127.0.0.1 and localhost, and a client. The Both files have a certificate and
// its key, as ZooKeeper wants them.
type Certificates struct {
	CA                                string
	ServerCert, ServerKey, ServerBoth string
	ClientCert, ClientKey, ClientBoth string
}

// NewCertificates makes certificates for a test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	authority, authorityKey := certificate(t, 1, nil, nil)
	write(t, at("ca.pem"), authority, nil)
	for i, name := range []string{"server", "client"} {
		cert, key := certificate(t, int64(i+2), authority, authorityKey)
		write(t, at(name+".pem"), cert, nil)
		write(t, at(name+"-key.pem"), nil, key)
		write(t, at(name+"-both.pem"), cert, key)
	}
	return &Certificates{
		CA: at("ca.pem"), ServerCert: at("server.pem"), ServerKey: at("server-key.pem"), ServerBoth: at("server-both.pem"),
		ClientCert: at("client.pem"), ClientKey: at("client-key.pem"), ClientBoth: at("client-both.pem"),
	}
}

// Client returns how a client talks to a server with these certificates.
func (c *Certificates) Client(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

func certificate(t testing.TB, serial int64, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprintf("boardd test %d", serial)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if parent == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// write writes a certificate, a key, or both.
func write(t testing.TB, path string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	var out bytes.Buffer
	if key != nil {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		_ = pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: der}) // a bytes.Buffer takes everything
	}
	if cert != nil {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
