package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/filter"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// Work ends and extends a worker's claims and gives it others.
func (s *service) Work(ctx context.Context, r *connect.Request[boarddv1.WorkRequest]) (*connect.Response[boarddv1.WorkResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "Work")
	if err != nil {
		return nil, err
	}
	request, err := fromWork(ctx, r.Msg)
	if err != nil {
		return nil, err
	}
	owner := r.Msg.GetOwner()
	endings := sift(r.Msg.GetEndings(), func(e *boarddv1.WorkEnding) (board.WorkEnding, error) { return fromEnding(owner, e) })
	extend := sift(r.Msg.GetExtend(), func(e *boarddv1.WorkExtension) (board.WorkExtension, error) {
		id, err := fromID("uuid", e.GetUuid())
		return board.WorkExtension{Ref: refIn(id, owner, e.GetToken()), Begun: e.GetBegun()}, err
	})
	request.Endings, request.Extend = endings.good, extend.good
	wait := request.Claims.Wait
	if len(r.Msg.GetEndings())+len(r.Msg.GetExtend()) > 0 {
		wait = 0 // also where none of them can be read
	}
	got, err := s.work(ctx, b, &request, wait)
	if err != nil {
		return nil, err
	}
	s.metrics.call(r.Msg, &got)
	response := &boarddv1.WorkResponse{Idle: boarddv1.Idle_Enum(got.Idle), Notices: toNotices(b, got.Notices)}
	response.Claims = newStraight(r.Header().Get("Content-Type"), len(got.Claims)).claims(b, got.Claims, got.Steps)
	response.Ended = toEnded(r.Msg.GetEndings(), endings, got.Ended)
	response.Extended = toExtended(r.Msg.GetExtend(), extend, got.Extended)
	if got.RetryAfter > 0 {
		response.RetryAfter = toDuration(got.RetryAfter)
	}
	return answer(response)
}

// work makes the call, and waits if it may.
func (s *service) work(ctx context.Context, b *board.Board, request *board.WorkRequest, wait time.Duration) (got board.WorkResponse, err error) {
	if wait > 0 {
		s.metrics.waiting.Inc()
		defer func() { s.metrics.waited(&got, err) }()
	}
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) (err error) {
		request.Claims.Wait = wait
		got, err = b.Work(ctx, *request)
		return err
	}, false)
	if ended, ok := errors.AsType[*host.Ended](context.Cause(ctx)); ok && err == nil && wait > 0 && len(got.Claims) == 0 {
		err = ended // not an empty answer, as if the time were over
	}
	return got, err
}

func fromWork(ctx context.Context, m *boarddv1.WorkRequest) (board.WorkRequest, error) {
	claims := board.ClaimRequest{
		Owner: m.GetOwner(), Max: int(m.GetMax()), Names: m.GetNames(), Filter: m.GetFilter(), NoExpiry: m.GetNoExpiry(),
		WorkerLabels: job.LabelsOf(m.GetWorkerLabels()), RequestID: m.GetRequestId(),
	}
	request := board.WorkRequest{Ahead: int(m.GetAhead())}
	if m.GetMax() < 0 || m.GetMax() > board.MaxBatch {
		return request, invalid("max", "want 0 to %d, got %d", board.MaxBatch, m.GetMax())
	}
	if m.GetAhead() < 0 || m.GetAhead() > board.MaxBatch {
		return request, invalid("ahead", "want 0 to %d, got %d", board.MaxBatch, m.GetAhead())
	}
	if err := only("noExpiry", "lease", m.GetNoExpiry() && m.Lease != nil); err != nil {
		return request, err
	}
	if len(m.GetRequestId()) > board.MaxRequestID {
		return request, invalid("requestId", "want at most %d bytes, got %d", board.MaxRequestID, len(m.GetRequestId()))
	}
	if len(m.GetFilter()) > filter.Max {
		return request, invalid("filter", "want at most %d bytes, got %d", filter.Max, len(m.GetFilter()))
	}
	var err error
	if claims.Lease, err = fromDuration("lease", m.GetLease(), job.MinLease); err != nil {
		return request, err
	}
	claims.Wait, err = waitOf(ctx, m.GetWait())
	request.Claims = claims
	return request, err
}

// refIn names a claim in a call of its worker's: by its token, or where the board goes by
// names by the worker's.
func refIn(id job.ID, owner, token string) board.Ref {
	if token != "" {
		owner = ""
	}
	return board.Ref{ID: id, Owner: owner, Token: token}
}

func fromEnding(owner string, m *boarddv1.WorkEnding) (board.WorkEnding, error) {
	id, err := fromID("uuid", m.GetUuid())
	if err != nil {
		return board.WorkEnding{}, err
	}
	e := board.WorkEnding{Ref: refIn(id, owner, m.GetToken())}
	e.AbandonOptions = board.AbandonOptions{Reason: m.GetReason(), RefundAttempt: m.GetRefundAttempt(), Begun: m.GetBegun()}
	switch m.GetHow() {
	case boarddv1.How_CONSUME:
		e.How = board.ToConsume
	case boarddv1.How_ABANDON:
		e.How = board.ToAbandon
	case boarddv1.How_TRASH:
		e.How, e.Reason = board.ToTrash, m.GetReason()
	case boarddv1.How_CANCEL:
		e.How, e.Outcome = board.ToConsume, job.Canceled
	default:
		return e, invalid("how", "want CONSUME, ABANDON, TRASH or CANCEL, got %s", m.GetHow())
	}
	if m.RetryAfter != nil {
		after, err := fromDuration("retryAfter", m.GetRetryAfter(), 0)
		if err != nil {
			return e, err
		}
		e.RetryAfter = &after
	}
	return e, nil
}

func toEnded(asked []*boarddv1.WorkEnding, sifted sifted[board.WorkEnding], errs []error) []*boarddv1.WorkEnded {
	ended := merge(sifted, errs, func(err error) error { return err })
	answers, made := make([]*boarddv1.WorkEnded, len(asked)), make([]boarddv1.WorkEnded, len(asked))
	for i, e := range asked {
		answers[i] = &made[i]
		made[i].Uuid, made[i].Token = clean(e.GetUuid()), clean(e.GetToken())
		made[i].Error = itemError(ended[i])
	}
	return answers
}

func toExtended(asked []*boarddv1.WorkExtension, sifted sifted[board.WorkExtension], results []board.ExtendResult) []*boarddv1.WorkExtended {
	all := merge(sifted, results, func(err error) board.ExtendResult { return board.ExtendResult{Err: err} })
	answers := make([]*boarddv1.WorkExtended, len(asked))
	for i, e := range asked {
		answers[i] = &boarddv1.WorkExtended{Uuid: clean(e.GetUuid()), Token: clean(e.GetToken())}
		if err := all[i].Err; err != nil {
			answers[i].Error = itemError(err)
			continue
		}
		answers[i].Lease, answers[i].LeaseExpiresAt = toDuration(all[i].Lease), toTime(all[i].LeaseExpiresAt)
		answers[i].CancelRequested = all[i].CancelRequested
	}
	return answers
}

func toNotices(b *board.Board, notices []board.Notice) []*boarddv1.WorkNotice {
	answers := make([]*boarddv1.WorkNotice, len(notices))
	for i, n := range notices {
		answers[i] = &boarddv1.WorkNotice{Uuid: n.ID.String(), What: boarddv1.What_Enum(n.What), Reason: clean(n.Reason)}
		if !n.Token.IsZero() {
			answers[i].Token = b.FormatToken(n.ID, n.Token)
		}
	}
	return answers
}
