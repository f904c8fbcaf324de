package workload

import (
	"errors"
	"net"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// answer puts into an op what its client may conclude from the error, by what is
// documented: an item's error is definite but for OUTCOME_UNKNOWN; after a whole call
// that failed with unavailable, deadline_exceeded, canceled, internal or a cut
// connection, some items may be done.
func answer(op *history.Op, err error) {
	if err == nil {
		op.Outcome = history.Done
		return
	}
	op.Outcome, op.Kind, op.Text = history.Refused, job.KindOf(err), err.Error()
	var known *job.Error
	item := errors.As(err, &known) && known.Job != (job.ID{})
	switch op.Kind {
	case job.OutcomeUnknown, job.Interrupted, job.Internal:
		op.Outcome = history.Unknown
	case job.Unavailable:
		if !item && !unconnected(err) {
			op.Outcome = history.Unknown
		}
	}
}

// unconnected reports whether a call failed before there was a connection.
func unconnected(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}
