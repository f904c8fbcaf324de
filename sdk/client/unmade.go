package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// ErrUntrusted is in the error of a call to a server whose certificate is not trusted:
// see Config.CAFile.
var ErrUntrusted = errors.New("the certificate is not trusted")

// unmade is the error of a request that never reached a server, so that nothing of it was
// carried out, and that would fail in the same way if it were retried.
type unmade struct {
	message string
	err     error
}

// Error says why.
func (e *unmade) Error() string { return e.message }

// Unwrap returns the cause.
func (e *unmade) Unwrap() error { return e.err }

// told is the error that a caller sees.
func (e *unmade) told(op string) *job.Error {
	return &job.Error{Op: op, Kind: job.Unavailable, Message: e.message, Err: e.err}
}

// wrongDoor is what a Go server with TLS answers to a request without TLS.
const wrongDoor = "Client sent an HTTP request to an HTTPS server."

// schemes tells apart from other failures those of a wrong scheme or an untrusted
// certificate.
type schemes struct{ next http.RoundTripper }

// RoundTrip makes a request.
func (s schemes) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, unmadeBy(r, err)
	}
	if r.URL.Scheme != "http" || answer.StatusCode != http.StatusBadRequest || answer.ContentLength >= 0 || answer.ProtoAtLeast(1, 1) {
		return answer, nil
	}
	head := make([]byte, len(wrongDoor))
	n, err := io.ReadFull(answer.Body, head)
	if err != nil || string(head) != wrongDoor {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head[:n]), answer.Body), answer.Body}
		return answer, nil //nolint:nilerr // whoever reads the body meets the error
	}
	_ = answer.Body.Close() // there is no more to it
	return nil, &unmade{r.URL.Host + " speaks TLS: want https:// in place of http://", http.ErrSchemeMismatch}
}

// unmadeBy makes the error of a connection that came to nothing.
func unmadeBy(r *http.Request, err error) error {
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		text := strings.TrimPrefix(failed.Err.Error(), "x509: ")
		return &unmade{"the certificate of " + r.URL.Host + " is not trusted: " + text, errors.Join(ErrUntrusted, err)}
	}
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(header.RecordHeader[:]) == "HTTP/" {
		return &unmade{r.URL.Host + " speaks no TLS: want http:// in place of https://", http.ErrSchemeMismatch}
	}
	return err
}
