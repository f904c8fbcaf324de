package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// The exit codes. Scripts rely on them.
const (
	exitDone        = 0
	exitRefused     = 1 // the server said no to something, or a check has findings
	exitUsage       = 2
	exitUnreachable = 3
	exitNothing     = 4 // nothing there, or the wait ran out
	exitUnknown     = 5 // a change may have taken effect or not
	exitInterrupted = 130
)

// usageError is a command line or an input that is wrong.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// codeError ends the program with a code of its own. Its text may be empty.
type codeError struct {
	code int
	text string
}

func (e codeError) Error() string { return e.text }

// nothing is the end of a command that found nothing, or waited in vain.
func nothing(format string, args ...any) error {
	return codeError{exitNothing, fmt.Sprintf(format, args...)}
}

// findings is the end of a check that found something.
func findings(format string, args ...any) error {
	return codeError{exitRefused, fmt.Sprintf(format, args...)}
}

// exit writes err for people and returns the code for scripts.
func (p *program) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	var s signaled
	if errors.As(context.Cause(ctx), &s) && job.KindOf(err) == job.Interrupted {
		return exitInterrupted
	}
	var code codeError
	var usage usageError
	var problems config.Problems
	switch {
	case errors.As(err, &code):
		p.complain(code.text)
		return code.code
	case errors.As(err, &usage), !p.started:
		p.complain(plainly(err.Error()))
		return exitUsage
	case errors.As(err, &problems):
		p.complain(problems.Error())
		return exitUsage
	}
	p.complainOf(err)
	return exitCode(err)
}

// complain writes a message, every line of it marked as ours.
func (p *program) complain(text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(p.err, "boardd: "+printable(strings.TrimSuffix(line, "\n")))
	}
}

// sendHeader is how a server says what a call without a token lacks.
const sendHeader = "send the header Authorization: Bearer SECRET"

// complainOf writes an error with its code, and each of the items that failed
// on a line of its own.
func (p *program) complainOf(err error) {
	if failures, ok := errors.AsType[client.Failures](err); ok {
		for _, item := range failures.Unwrap() {
			p.complainOf(item)
		}
		return
	}
	var known *job.Error
	if !errors.As(err, &known) {
		p.complain(err.Error())
		return
	}
	text := known.Kind.String() + ": " + err.Error()
	if known.Owner != "" && !strings.Contains(text, known.Owner) {
		text += " (held by " + known.Owner + ")"
	}
	if known.Kind == job.Unauthenticated { // that flags say how to send one, which the advice names
		text = strings.NewReplacer(": "+sendHeader, "", "; "+sendHeader, "").Replace(text)
	}
	p.complain(text + p.advice(known, err))
}

// advice says which flag or command may help with an error, or nothing. known is
// the error of a whole call where it names no job.
func (p *program) advice(known *job.Error, err error) string {
	switch {
	case known.Kind == job.Unauthenticated && p.token != "":
		return "; is it the right one in --token or BOARDD_TOKEN?"
	case known.Kind == job.Unauthenticated && p.tokenFile != "":
		return "; is it the right one in --token-file or BOARDD_TOKEN_FILE?"
	case known.Kind == job.Unauthenticated:
		return "; give --token, --token-file, BOARDD_TOKEN or BOARDD_TOKEN_FILE"
	case noBoard(known):
		return `; "boardd board list" shows yours`
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; is a boardd running? --addr says where"
	case known.Kind == job.Unavailable && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.Contains(err.Error(), "malformed HTTP")):
		return "; is it a boardd that listens there?"
	case errors.Is(err, client.ErrUntrusted) && p.caFile == "":
		return "; --ca-file or BOARDD_CA_FILE names the certificates to trust"
	case errors.Is(err, client.ErrUntrusted):
		return "; " + p.caFile + " in --ca-file or BOARDD_CA_FILE has not signed it"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; try --addr " + otherScheme(p.addrs)
	}
	return ""
}

// noBoard reports whether an error says that there is no such board.
func noBoard(err *job.Error) bool {
	return err.Kind == job.NotFound && err.Job == job.ID{} && strings.HasPrefix(err.Message, "there is no board")
}

// otherScheme writes addresses with TLS where they have none, and the other way round.
func otherScheme(addrs []string) string {
	other := make([]string, len(addrs))
	for i, addr := range addrs {
		if rest, ok := strings.CutPrefix(addr, "https://"); ok {
			other[i] = "http://" + rest
		} else {
			other[i] = "https://" + strings.TrimPrefix(addr, "http://")
		}
	}
	return strings.Join(other, ",")
}

// exitCode says what the error of a command means to a script.
func exitCode(err error) int {
	if failures, ok := errors.AsType[client.Failures](err); ok {
		for _, item := range failures.Unwrap() {
			if job.KindOf(item) == job.OutcomeUnknown {
				return exitUnknown
			}
		}
		return exitRefused
	}
	switch job.KindOf(err) {
	case job.Unavailable:
		return exitUnreachable
	case job.OutcomeUnknown:
		return exitUnknown
	case job.Interrupted:
		return exitUnreachable // a deadline of the server's: it did not get there
	default:
		return exitRefused
	}
}

// onlyMissing reports whether err says no more than that jobs are not there.
func onlyMissing(err error) bool {
	var failures client.Failures
	if !errors.As(err, &failures) {
		var whole *job.Error
		return errors.As(err, &whole) && whole.Kind == job.NotFound && !noBoard(whole)
	}
	for _, item := range failures.Unwrap() {
		if job.KindOf(item) != job.NotFound {
			return false
		}
	}
	return true
}

// reading turns the error of a command that only looks for jobs: none there is
// no refusal.
func (p *program) reading(err error) error {
	if err == nil || !onlyMissing(err) {
		return err
	}
	p.complainOf(err)
	return codeError{code: exitNothing}
}
