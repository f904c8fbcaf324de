package api

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// lostBefore is what is said of a refusal that comes after an answer that was lost.
const lostBefore = "the server that had the board was lost before it answered, and perhaps has done what was asked; of the next try it was said: "

// afterLost is the answer to a call that was asked for again, where unsure says that an
// earlier try may have made the change. That a later one was refused says nothing of that,
// which may still be on its way to the store: nobody knows what was done.
func afterLost(ctx context.Context, unsure bool, answer connect.AnyResponse, err error) (connect.AnyResponse, error) {
	switch {
	case !unsure:
	case err != nil:
		return nil, refusedLater(ctx, err)
	default:
		if m, ok := answer.Any().(proto.Message); ok {
			itemsRefusedLater(m.ProtoReflect())
		}
	}
	return answer, err
}

// refusedLater is afterLost of a call that was refused as a whole.
func refusedLater(ctx context.Context, err error) error {
	var from *connect.Error
	if !errors.As(err, &from) {
		from = callError(ctx, err)
	}
	switch from.Code() {
	case connect.CodeCanceled, connect.CodeDeadlineExceeded, connect.CodeInternal: // these say that something may be done
		return err
	}
	answer := callError(ctx, job.Errorf(job.OutcomeUnknown, "%s%s", lostBefore, from.Message()))
	maps.Copy(answer.Meta(), from.Meta())
	return answer
}

// itemsRefusedLater is afterLost of a message with an error for each item. What a store says
// of an item is true of an earlier try as well, since it would have known that again. That it
// could not be asked, or that the limits which are counted in a server refused it, is not.
func itemsRefusedLater(m protoreflect.Message) {
	if e, ok := m.Interface().(*boarddv1.Error); ok {
		switch e.GetCode() {
		case boarddv1.Code_UNAVAILABLE, boarddv1.Code_QUOTA_EXCEEDED:
			e.Code, e.Message, e.Retryable = boarddv1.Code_OUTCOME_UNKNOWN, lostBefore+e.GetMessage(), job.OutcomeUnknown.Retryable()
		}
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				itemsRefusedLater(v.List().Get(i).Message())
			}
		default:
			itemsRefusedLater(v.Message())
		}
		return true
	})
}
