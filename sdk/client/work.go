package client

import (
	"context"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// What Work asks for and gives.
type (
	// WorkRequest is what a call of Work is to end, to extend and to give.
	WorkRequest = boarddv1.WorkRequest
	// WorkEnding says how one claim ends.
	WorkEnding = boarddv1.WorkEnding
	// WorkExtension names a claim whose lease is to begin anew.
	WorkExtension = boarddv1.WorkExtension
	// WorkNotice is what the server has to say of a claim in hand.
	WorkNotice = boarddv1.WorkNotice
)

// Worked is what a call of Work did. The errors are nil for the items that were done.
type Worked struct {
	*boarddv1.WorkResponse

	EndErrors, ExtendErrors []error // in the order of the request

	tries int // it was made; in between, notices may have been lost
}

// Work extends claims, ends claims and claims more jobs, in one call. Without endings and
// extensions it waits, as long as the request says, for a claim or for a notice of a claim
// that the owner has in hand. The request's board is this one, and it gets a request id
// where it asks for claims and has none.
//
// A server of an older version does not know the call: the error is job.Unsupported.
func (b *Board) Work(ctx context.Context, request *WorkRequest) (Worked, error) {
	request.Board = b.name
	if request.RequestId == "" && request.Max+request.Ahead > 0 {
		request.RequestId = NewUUID()
	}
	tries := 0
	do := func(ctx context.Context, r *connect.Request[WorkRequest]) (*connect.Response[boarddv1.WorkResponse], error) {
		tries++
		return b.client.rpc.Work(ctx, r)
	}
	answer, unsure, err := tried(ctx, b.client, "work", request.GetWait().AsDuration(), do, request)
	if err != nil {
		return Worked{}, err
	}
	if err := checkCount("work", len(answer.Ended), len(request.Endings)); err != nil {
		return Worked{}, err
	}
	if err := checkCount("work", len(answer.Extended), len(request.Extend)); err != nil {
		return Worked{}, err
	}
	w := Worked{answer, make([]error, len(answer.Ended)), make([]error, len(answer.Extended)), tries}
	for i, e := range answer.Ended {
		w.EndErrors[i] = workError(e.Uuid, refusedLater(e.Error, unsure))
	}
	for i, e := range answer.Extended {
		w.ExtendErrors[i] = workError(e.Uuid, e.Error)
	}
	return w, nil
}

func workError(uuid string, e *boarddv1.Error) error {
	if e == nil {
		return nil
	}
	return itemError("work", uuid, e)
}
