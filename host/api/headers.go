package api

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// maxTimeoutDigits is how many digits a deadline in milliseconds has at most, by Connect.
const maxTimeoutDigits = 10

// wrongHeaders returns what is wrong with the headers of a call by Connect, or nil: Connect
// itself would refuse it as well, without an Error in the answer. gRPC has others.
func wrongHeaders(r *http.Request, stream bool) error {
	if base, _ := parseType(r.Header.Get("Content-Type")); isGRPC(base) {
		return nil
	}
	if text := r.Header.Get("Connect-Timeout-Ms"); text != "" && (len(text) > maxTimeoutDigits || strings.Trim(text, "0123456789") != "") {
		return job.Errorf(job.Invalid, "the header Connect-Timeout-Ms: want milliseconds, 1 to %d digits, got %q", maxTimeoutDigits, clip(text))
	}
	if version := r.Header.Get("Connect-Protocol-Version"); version != "" && version != "1" {
		return job.Errorf(job.Invalid, `the header Connect-Protocol-Version: want "1" or none, got %q`, clip(version))
	}
	encoding := "Content-Encoding"
	if stream {
		encoding = "Connect-Content-Encoding"
	}
	if r.Method == http.MethodPost {
		return wrongCompression("the header "+encoding, r.Header.Get(encoding))
	}
	return nil
}

// wrongCompression refuses a compression that there is none for.
func wrongCompression(where, name string) error {
	switch name {
	case "", "identity", "gzip":
		return nil
	}
	return job.Errorf(job.Unsupported, "%s: want gzip or identity, got %q", where, clip(name))
}

// wrongQuery returns what is wrong with the address of a call by GET, or nil.
func wrongQuery(r *http.Request, call string, q url.Values) error {
	if encoding := q.Get("encoding"); encoding != "json" && encoding != "proto" {
		return job.Errorf(job.Invalid, "%s by GET wants encoding=json or encoding=proto in its address, got %q", call, clip(encoding))
	}
	if !q.Has("message") {
		return job.Errorf(job.Invalid, "message: %s by GET wants its request in the address, as message={}", call)
	}
	if version := q.Get("connect"); version != "" && version != "v1" {
		return job.Errorf(job.Invalid, "connect: want v1 or none, got %q", clip(version))
	}
	if r.ContentLength != 0 {
		return job.Errorf(job.Invalid, "%s by GET has its request in the address: want no body", call)
	}
	if err := wrongCompression("compression", q.Get("compression")); err != nil || q.Get("base64") != "1" {
		return err
	}
	if _, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(q.Get("message"), "=")); err != nil {
		return job.Errorf(job.Invalid, "message: with base64=1 want base64 as it is for addresses: %v", err)
	}
	return nil
}

// detailed adds an Error to one of Connect's own, which are about a message that is cut off or
// in a form that it was not announced in.
func detailed(e *connect.Error) *connect.Error {
	if len(e.Details()) > 0 {
		return e
	}
	kind := job.Internal
	for of, code := range connectCodes {
		if code == e.Code() && (kind == job.Internal || of < kind) {
			kind = of
		}
	}
	answer := &boarddv1.Error{
		Code: boarddv1.Code_Enum(boarddv1.Code_Enum_value[kind.String()]), Message: clean(e.Message()),
		Retryable: kind == job.Interrupted || kind == job.Unavailable, // the same message is as wrong again
	}
	if d, err := connect.NewErrorDetail(answer); err == nil {
		e.AddDetail(d)
	}
	return e
}
