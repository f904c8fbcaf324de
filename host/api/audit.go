package api

import (
	"context"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// changes returns the calls of both services that change something.
func changes() map[string]bool {
	names := map[string]bool{}
	for _, methods := range []protoreflect.MethodDescriptors{boardMethods(), adminMethods()} {
		for i := range methods.Len() {
			options, _ := methods.Get(i).Options().(*descriptorpb.MethodOptions)
			if options.GetIdempotencyLevel() != descriptorpb.MethodOptions_NO_SIDE_EFFECTS && !methods.Get(i).IsStreamingServer() {
				names[string(methods.Get(i).Name())] = true
			}
		}
	}
	return names
}

// work are the calls by which programs post jobs and do them. There are as many as
// there are jobs, so that they are in the audit log only where the configuration
// asks for all calls; and TrashJobs, where it names claims.
var work = map[string]bool{
	"PostJobs": true, "ClaimJobs": true, "Work": true, "ExtendClaims": true, "ConsumeJobs": true, "AbandonJobs": true, "StartOperation": true,
	"FinishOperation": true, "MarkOperations": true, "AppendLog": true, "RegisterEntity": true, "PutBook": true,
}

// isWork reports whether a call is one of them.
func isWork(call string, request any) bool {
	trash, ok := request.(*boarddv1.TrashJobsRequest)
	return work[call] || ok && len(trash.GetClaims()) > 0
}

// callOf returns the name of a call without its service.
func callOf(spec connect.Spec) string {
	return spec.Procedure[strings.LastIndexByte(spec.Procedure, '/')+1:]
}

// refusals are the codes of calls that the caller was not permitted to make.
var refusals = map[connect.Code]bool{connect.CodePermissionDenied: true, connect.CodeUnauthenticated: true}

// visits reports whether a call looks at a tenant's boards by its name, which is
// always in the audit log.
func visits(ctx context.Context) bool {
	session, ok := ctx.Value(sessionKey{}).(*host.Session)
	return ok && session.Visits()
}

// audited reports whether a call that was not refused belongs into the audit log:
// every look at another tenant's boards, and every change, or every one that is not
// work.
func (o *observer) audited(call string, request any, looks bool) bool {
	return looks || o.changes[call] && (!isWork(call, request) || o.host.Settings().Audit.Calls == config.AuditAll)
}

// audit puts a call into the audit log, if it belongs there, or was refused. What was
// done to jobs is there soon, all else before the answer.
func (o *observer) audit(ctx context.Context, r connect.AnyRequest, answer connect.AnyResponse, err error) error {
	if passedOn(ctx) != nil {
		return nil // the server that let the caller in has done so
	}
	call := callOf(r.Spec())
	refused := err != nil && refusals[connect.CodeOf(err)]
	looks := visits(ctx)
	if !refused && !o.audited(call, r.Any(), looks) {
		return nil
	}
	record := recordOf(ctx, call, err)
	describeRequest(&record, r.Any())
	signRecord(ctx, &record)
	if refused {
		return o.host.Auditor().Refused(record)
	}
	if answer != nil && err == nil {
		record.Failed = failures(answer.Any())
		asks := false
		switch m := answer.Any().(type) {
		case *boarddv1.ClaimJobsResponse:
			asks, record.Items = true, int64(len(m.GetClaims()))
		case *boarddv1.WorkResponse:
			asks, record.Items = true, record.Items+int64(len(m.GetClaims()))
		}
		if asks && record.Items+record.Failed == 0 {
			return nil // somebody asked, and there was nothing
		}
	}
	return o.host.Auditor().Record(record, !looks && strings.HasPrefix(r.Spec().Procedure, "/"+boarddv1connect.BoardServiceName+"/"))
}

// auditStream is audit for a call with a stream of answers that was refused.
func (o *observer) auditStream(ctx context.Context, spec connect.Spec, board string, err error) error {
	if err == nil || !refusals[connect.CodeOf(err)] || passedOn(ctx) != nil {
		return nil
	}
	record := recordOf(ctx, callOf(spec), err)
	record.Board = board
	signRecord(ctx, &record)
	return o.host.Auditor().Refused(record)
}

// copies are the streams that are always in the audit log: what they send is everything
// that there is.
var copies = map[string]bool{"BackupBackend": true, "ExportBoard": true}

// auditVisit records a stream that looks at another tenant's board, or at more than one
// tenant's, as it begins: it may go on for days.
func (o *observer) auditVisit(ctx context.Context, spec connect.Spec, board string, request any) error {
	if !visits(ctx) && !copies[callOf(spec)] {
		return nil
	}
	record := recordOf(ctx, callOf(spec), nil)
	describeRequest(&record, request)
	record.Board = board
	signRecord(ctx, &record)
	return o.host.Auditor().Record(record, false)
}

func recordOf(ctx context.Context, call string, err error) audit.Record {
	record := audit.Record{Call: call, Result: "ok"}
	if err != nil {
		record.Result = connect.CodeOf(err).String()
	}
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		record.Remote, record.Request = q.remote, q.id
	}
	return record
}

// signRecord says who made the call.
func signRecord(ctx context.Context, record *audit.Record) {
	if session, ok := ctx.Value(sessionKey{}).(*host.Session); ok {
		session.Caller(record)
	}
}

// describeRequest says what a request was about, and nothing of what it held.
func describeRequest(record *audit.Record, message any) {
	if m, ok := message.(interface{ GetTenant() string }); ok {
		record.Tenant = m.GetTenant()
	}
	switch m := message.(type) {
	case interface{ GetBoard() string }:
		record.Board = m.GetBoard()
	case interface {
		GetBoard() *boarddv1.BoardSettings
	}:
		record.Board = m.GetBoard().GetName()
		record.Tenant = tenantOf(record.Tenant, m.GetBoard())
	}
	if m, ok := message.(interface{ GetName() string }); ok {
		record.Name = m.GetName()
	}
	switch m := message.(type) {
	case interface{ GetJobs() []*boarddv1.NewJob }:
		record.Items = int64(len(m.GetJobs()))
	case *boarddv1.PostAsItWasRequest:
		record.Items = int64(len(m.GetJobs()))
	case interface{ GetClaims() []*boarddv1.Claim }:
		record.Items = int64(len(m.GetClaims()))
	case *boarddv1.WorkRequest:
		record.Items = int64(len(m.GetEndings()) + len(m.GetExtend()))
	}
	if m, ok := message.(interface{ GetUuids() []string }); ok {
		record.Items += int64(len(m.GetUuids()))
	}
}

// failures counts the items of an answer that failed. An answer to a claim call
// has those that were refused.
func failures(message any) int64 {
	n := 0
	switch m := message.(type) {
	case interface{ GetResults() []*boarddv1.Result }:
		n = failed(m.GetResults())
	case interface{ GetResults() []*boarddv1.JobResult }:
		n = failed(m.GetResults())
	case interface {
		GetResults() []*boarddv1.ExtendResult
	}:
		n = failed(m.GetResults())
	case *boarddv1.WorkResponse:
		n = failed(m.GetEnded()) + failed(m.GetExtended())
	case *boarddv1.ClaimJobsResponse:
		n = len(m.GetFailures())
	}
	return int64(n)
}

func failed[T interface{ GetError() *boarddv1.Error }](results []T) int {
	n := 0
	for _, r := range results {
		if r.GetError() != nil {
			n++
		}
	}
	return n
}
