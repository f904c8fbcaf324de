package api

import (
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/boardd/boardd/host/board"
)

// The numbers of the fields of boarddv1.Operation, and of a job's operations; a test
// compares what is written by them with what boarddv1 writes.
const (
	jobOperations = 20

	operationIndex      = 1
	operationName       = 2
	operationInput      = 3
	operationPriority   = 4
	operationStatus     = 5
	operationResult     = 6
	operationStartedAt  = 7
	operationExecutedAt = 8
	operationEndedAt    = 9
)

// step writes an operation as a field of a boarddv1.Job.
func (w *protowriter) step(s *board.Step) {
	end := w.open(jobOperations)
	w.number(operationIndex, int64(s.Index))
	if name := s.Name; utf8.Valid(name) {
		w.bytes(operationName, name)
	} else {
		w.text(operationName, clean(string(name)))
	}
	w.bytes(operationInput, s.Input)
	w.number(operationPriority, int64(s.Priority))
	w.number(operationStatus, int64(toOperationStatus(s.Status)))
	w.bytes(operationResult, s.Result)
	w.micro(operationStartedAt, s.StartedAt)
	w.micro(operationExecutedAt, s.ExecutedAt)
	w.micro(operationEndedAt, s.EndedAt)
	w.close(end)
}

// micro writes a time in microseconds since 1970; 0: none.
func (w *protowriter) micro(field protowire.Number, us int64) {
	if us != 0 {
		w.time(field, time.UnixMicro(us))
	}
}
