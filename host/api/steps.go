package api

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
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

// isBinary reports whether the answer to a request with this content type is written
// in the binary form.
func isBinary(contentType string) bool { return !strings.Contains(contentType, "json") }

// setSteps puts the operations of claims' jobs into an answer. In the binary form they
// are written at once, into the bytes that a message carries along for fields that its
// program does not know: a boarddv1.Operation of each would be most of what a claim of
// a job with twenty operations costs. Whoever reads the answer sees no difference.
func setSteps(claims []*boarddv1.Claim, steps []board.Steps, binary bool) {
	size := 0
	for i := range steps {
		if binary && steps[i].Len() > 0 {
			size += steps[i].Size() + 16*steps[i].Len()
		}
	}
	all := make([]byte, 0, size)
	for i := range steps {
		switch begin := len(all); {
		case steps[i].Len() == 0:
		case binary:
			steps[i].Each(func(s *board.Step) { all = appendStepField(all, s) })
			claims[i].GetJob().ProtoReflect().SetUnknown(all[begin:len(all):len(all)])
		default:
			claims[i].GetJob().Operations = toOperations(steps[i].List())
		}
	}
}

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

// appendMicro writes a google.protobuf.Timestamp, whose fields are the seconds and the
// nanoseconds.
func appendMicro(dst []byte, field protowire.Number, us int64) []byte {
	if us == 0 {
		return dst
	}
	var at timestamppb.Timestamp
	fill(&at, time.UnixMicro(us))
	var room [24]byte
	one := appendInt(appendInt(room[:0], 1, at.GetSeconds()), 2, int64(at.GetNanos()))
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), one)
}
