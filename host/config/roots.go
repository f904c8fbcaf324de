package config

import (
	"crypto/x509"
	"fmt"
)

// Roots reads a file of certificates that vouch for others.
func Roots(path string) (*x509.CertPool, error) {
	pem, err := readFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return roots, nil
}
