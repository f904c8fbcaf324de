package plugin

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// kindTrailer names the kind of a whole call's error.
const kindTrailer = "boardd-kind"

// maxErrorText bounds what is said of one error, in bytes: it travels in a
// header, and a driver is a stranger.
const maxErrorText = 2 << 10

var kindCodes = map[job.Kind]codes.Code{
	job.NotFound: codes.NotFound, job.AlreadyExists: codes.AlreadyExists, job.QuotaExceeded: codes.ResourceExhausted,
	job.Invalid: codes.InvalidArgument, job.Unavailable: codes.Unavailable, job.Unauthenticated: codes.Unauthenticated,
	job.PermissionDenied: codes.PermissionDenied, job.Precondition: codes.FailedPrecondition, job.Aborted: codes.Aborted,
	job.Unsupported: codes.Unimplemented, job.Corrupt: codes.DataLoss, job.Interrupted: codes.DeadlineExceeded,
	job.Internal: codes.Internal,
}

var codeKinds = func() map[codes.Code]job.Kind {
	m := map[codes.Code]job.Kind{codes.Canceled: job.Interrupted}
	for kind, code := range kindCodes {
		m[code] = kind
	}
	return m
}()

var trailerKinds = func() map[string]job.Kind {
	m := make(map[string]job.Kind)
	for k := range 256 {
		if kind := job.Kind(uint8(k)); kind != job.NoKind && kind.String() != "INVALID_KIND" {
			m[kind.String()] = kind
		}
	}
	return m
}()

// failure returns a driver's error as a gRPC status and the trailer beside it.
func failure(err error) (error, metadata.MD) { //nolint:revive,staticcheck // the trailer goes with the error
	kind := job.KindOf(err)
	code, ok := kindCodes[kind]
	if !ok {
		code = codes.Unknown
	}
	message := err.Error()
	if e, ok := err.(*job.Error); ok { //nolint:errorlint // the outermost message stands for the whole
		bare := *e
		bare.Kind = kind
		message = bare.Error()
	}
	return status.Error(code, tame(message, maxErrorText)), metadata.Pairs(kindTrailer, kind.String())
}

// A call describes a call to a driver, as far as the meaning of its error depends on it.
type call struct {
	op      string
	changes bool // the driver may have changed something
}

// failed returns the error of a call to a driver: from the trailer where there is
// one, else from the status.
func (c call) failed(ctx context.Context, err error, trailer metadata.MD) *job.Error {
	s := status.Convert(err)
	kind, told := job.NoKind, false
	if names := trailer.Get(kindTrailer); len(names) > 0 {
		kind, told = trailerKinds[names[0]], true
	}
	if kind == job.NoKind {
		told = false
		if kind = codeKinds[s.Code()]; kind == job.NoKind {
			kind = job.Internal
		}
	}
	e := &job.Error{Op: c.op, Kind: kind, Message: tame(s.Message(), maxErrorText)}
	if told {
		return e
	}
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Internal, codes.Unknown:
		if c.changes {
			e.Kind = job.OutcomeUnknown
			e.Message = "the driver did not tell whether the change took effect: " + e.Message
		} else if ctx.Err() != nil {
			e.Kind, e.Message, e.Err = job.Interrupted, "", context.Cause(ctx)
		} else if s.Code() != codes.Internal && s.Code() != codes.Unknown {
			e.Kind, e.Message = job.Unavailable, "the driver does not answer: "+e.Message
		}
	}
	return e
}

// tame makes untrusted text fit to be shown: one line of valid UTF-8 without control
// characters, at most limit bytes.
func tame(s string, limit int) string {
	if short := shorten.To(s, limit); short != s {
		s = short + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}
