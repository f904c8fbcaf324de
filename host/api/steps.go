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

// appendStepField writes an operation as a field of a boarddv1.Job.
func appendStepField(dst []byte, s *board.Step) []byte {
	var room [512]byte
	dst = protowire.AppendTag(dst, jobOperations, protowire.BytesType)
	return protowire.AppendBytes(dst, appendStep(room[:0], s))
}

// appendStep writes the fields of a boarddv1.Operation.
func appendStep(dst []byte, s *board.Step) []byte {
	dst = appendInt(dst, operationIndex, int64(s.Index))
	if name := s.Name; utf8.Valid(name) {
		dst = appendBytes(dst, operationName, name)
	} else {
		dst = appendBytes(dst, operationName, []byte(clean(string(name))))
	}
	dst = appendBytes(dst, operationInput, s.Input)
	dst = appendInt(dst, operationPriority, int64(s.Priority))
	dst = appendInt(dst, operationStatus, int64(toOperationStatus(s.Status)))
	dst = appendBytes(dst, operationResult, s.Result)
	dst = appendMicro(dst, operationStartedAt, s.StartedAt)
	dst = appendMicro(dst, operationExecutedAt, s.ExecutedAt)
	return appendMicro(dst, operationEndedAt, s.EndedAt)
}

func appendInt(dst []byte, field protowire.Number, n int64) []byte {
	if n == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), uint64(n)) //nolint:gosec // a negative one is written so
}

func appendBytes(dst []byte, field protowire.Number, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), data)
}

// appendMicro writes a google.protobuf.Timestamp.
func appendMicro(dst []byte, field protowire.Number, us int64) []byte {
	if us == 0 {
		return dst
	}
	w := protowriter{dst}
	w.time(field, time.UnixMicro(us))
	return w.b
}
