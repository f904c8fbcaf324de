package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/sdk/job"
)

// refuseRole answers somebody whose roles do not allow a call. Nobody has looked at
// what else it asks for.
func (g *gate) refuseRole(w http.ResponseWriter, r *http.Request, session *host.Session, call string, err error) {
	ctx, done := g.traced(r)
	defer done()
	r = r.WithContext(context.WithValue(ctx, sessionKey{}, session))
	record := audit.Record{Call: call, Remote: r.RemoteAddr, Request: w.Header().Get(requestHeader)}
	code := callError(ctx, err).Code().String()
	record.Result = code
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		q.code = code
		g.metrics.call(call, code, time.Since(q.begun))
	}
	g.refuseRecorded(w, r, session, record, err)
}

// refuseLogin answers somebody who could not be let in.
func (g *gate) refuseLogin(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable // who it is cannot be told now
	if job.KindOf(err) == job.Unauthenticated {
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="boardd"`)
	}
	if failed := g.host.Auditor().Refused(audit.Record{
		Call: path.Base(r.URL.Path), Result: callError(r.Context(), err).Code().String(), Remote: r.RemoteAddr, Request: w.Header().Get(requestHeader),
	}); failed != nil {
		g.logger.Error("a refusal could not be put into the audit log", "error", failed)
	}
	g.refuse(w, r, status, err)
}

// refuseVisit answers somebody who may not look at a tenant's boards, or at those
// of a tenant that doesn't exist.
func (g *gate) refuseVisit(w http.ResponseWriter, r *http.Request, session *host.Session, err error) {
	status := http.StatusForbidden
	if job.KindOf(err) == job.NotFound {
		status = http.StatusNotFound
	}
	record := audit.Record{
		Call: path.Base(r.URL.Path), Name: "of tenant " + clip(r.Header.Get(tenantHeader)), Result: callError(r.Context(), err).Code().String(),
		Remote: r.RemoteAddr, Request: w.Header().Get(requestHeader),
	}
	session.Caller(&record)
	if failed := g.host.Auditor().Refused(record); failed != nil {
		g.logger.Error("a refusal could not be put into the audit log", "error", failed)
	}
	g.refuse(w, r, status, err)
}

// refuseCall answers somebody who may not have what is no call of a service.
func (g *gate) refuseCall(w http.ResponseWriter, r *http.Request, session *host.Session, err error) {
	g.refuseRecorded(w, r, session, audit.Record{
		Call: clip(r.URL.Path), Result: callError(r.Context(), err).Code().String(), Remote: r.RemoteAddr, Request: w.Header().Get(requestHeader),
	}, err)
}

// refuseRecorded answers a caller whose session has ended or does not permit the call,
// and puts that into the audit log.
func (g *gate) refuseRecorded(w http.ResponseWriter, r *http.Request, session *host.Session, record audit.Record, err error) {
	status := http.StatusForbidden
	switch job.KindOf(err) {
	case job.Unauthenticated:
		status = http.StatusUnauthorized
	case job.Unavailable:
		status = http.StatusServiceUnavailable
	}
	session.Caller(&record)
	if failed := g.host.Auditor().Refused(record); failed != nil {
		g.logger.Error("a refusal could not be put into the audit log", "error", failed)
	}
	g.refuse(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, session)), status, err)
}

// refuse answers a request that reaches no call, in the words of its protocol.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	answer := callError(r.Context(), err)
	code := answer.Code().String()
	g.metrics.refused.WithLabelValues(code).Inc()
	attrs := []slog.Attr{
		slog.String("path", clip(r.URL.Path)), slog.String("code", code), slog.Int("status", status), slog.String("remote", r.RemoteAddr),
		slog.String("request", w.Header().Get(requestHeader)), slog.String("error", answer.Message()),
	}
	caller := peerOf(r.RemoteAddr)
	if session, ok := r.Context().Value(sessionKey{}).(*host.Session); ok {
		who := session.WhoAmI()
		attrs = append(attrs, slog.String("tenant", who.Tenant), slog.String("token", who.TokenName))
		caller = callerOf(session)
	}
	g.refusals.log(r.Context(), caller, "refused", attrs...)
	leaveBody(w, r)
	contentType := r.Header.Get("Content-Type")
	if strings.HasPrefix(contentType, "application/grpc") || strings.HasPrefix(contentType, "application/connect+") {
		if g.errors.Write(w, r, answer) == nil {
			return
		}
	}
	writeError(w, status, answer)
}

// What of a refused request is read all the same, so that the connection can be used
// again, and for how long its client may take.
const (
	leftoverBytes  = 64 << 10
	leftoverWithin = time.Second
)

// leaveBody sees to it that an answer is not held up by a body that nobody wants:
// net/http would wait for as much as it may take.
func leaveBody(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.ProtoMajor > 1 || r.ContentLength == 0: // streams end by themselves
	case r.ContentLength < 0 || r.ContentLength > leftoverBytes:
		w.Header().Set("Connection", "close")
	default:
		if controller, ok := r.Context().Value(controllerKey{}).(*http.ResponseController); ok {
			_ = controller.SetReadDeadline(time.Now().Add(leftoverWithin)) // what takes none is not a network
		}
	}
}

// writeError answers with Connect's form of an error.
func writeError(w http.ResponseWriter, status int, answer *connect.Error) {
	type wireDetail struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	}
	body := struct {
		Code    string       `json:"code"`
		Message string       `json:"message"`
		Details []wireDetail `json:"details,omitempty"`
	}{Code: answer.Code().String(), Message: answer.Message()}
	for _, d := range answer.Details() {
		body.Details = append(body.Details, wireDetail{d.Type(), base64.RawStdEncoding.EncodeToString(d.Bytes())})
	}
	data, err := json.Marshal(body)
	if err != nil {
		data = []byte(`{"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has gone needs no answer
}
