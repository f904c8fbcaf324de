package connect

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
)

// tlsSettings say how a server is recognised, and how this client shows who it
// is.
type tlsSettings struct {
	CAFile             string `json:"ca_file"`
	CertFile           string `json:"cert_file"`
	KeyFile            string `json:"key_file"`
	ServerName         string `json:"server_name"`
	InsecureSkipVerify bool   `json:"insecure_skip_verify"`
}

var tlsFields = []driver.Field{
	{Name: "ca_file", Type: driver.String, Doc: "the authorities that are trusted, as PEM; absent: the system's"},
	{Name: "cert_file", Type: driver.String, Doc: "this client's certificate, as PEM, with key_file"},
	{Name: "key_file", Type: driver.String, Doc: "the key of cert_file, as PEM"},
	{Name: "server_name", Type: driver.String, Doc: "the name that the server's certificate must have; absent: the host of its address"},
	{Name: "insecure_skip_verify", Type: driver.Boolean, Doc: "takes any certificate: whoever stands between can read and change everything"},
}

// What ssl_cert_reqs says, in TaskFlow's words, which are Python's.
const (
	certRequired = "required"
	certOptional = "optional"
	certNone     = "none"
)

var certReqs = []string{certRequired, certOptional, certNone}

func (s *settings) checkReqs() error {
	switch {
	case s.SSLCertReqs == "":
	case s.TLS == nil && !strings.HasPrefix(s.URL, "rediss:"):
		return wrong("ssl_cert_reqs", "there is no TLS: want tls = {} as well")
	case s.TLS != nil && s.TLS.InsecureSkipVerify && s.SSLCertReqs != certNone:
		return wrong("ssl_cert_reqs", "tls.insecure_skip_verify takes any certificate: want it in one place")
	}
	return nil
}

// require has the server's certificate looked at as ssl_cert_reqs says.
func (s *settings) require(c *tls.Config) *tls.Config {
	if c == nil || s.SSLCertReqs == "" || s.SSLCertReqs == certRequired {
		return c
	}
	c = c.Clone()
	c.InsecureSkipVerify = true // of the name, at least
	if s.SSLCertReqs == certOptional {
		c.VerifyConnection = func(state tls.ConnectionState) error { return vouched(&state, c.RootCAs) }
	}
	return c
}

// vouched returns nil if an authority vouches for the certificate of a server, whatever
// the server's name.
func vouched(state *tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(o)
	return err
}

// config returns how to speak TLS to the server at an address, or nil where no
// TLS is wanted. name is the setting's, for errors.
func (t *tlsSettings) config(name string) (*tls.Config, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // no settings are no TLS
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, wrong(name+".ca_file", "%v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, wrong(name+".ca_file", "%s has no certificate: want PEM, -----BEGIN CERTIFICATE-----", t.CAFile)
		}
	}
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "":
		return nil, wrong(name+".cert_file", "it is missing: want the certificate of key_file")
	case t.KeyFile == "":
		return nil, wrong(name+".key_file", "it is missing: want the key of cert_file")
	default:
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, wrong(name+".cert_file", "%v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// to returns the configuration for one server: each is to have its own name.
func to(c *tls.Config, address string) *tls.Config {
	if c == nil || c.ServerName != "" {
		return c
	}
	c = c.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address) // it was checked, or a server names it
	return c
}
