package connect

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"

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
