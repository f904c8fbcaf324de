package api

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// PostAsItWas puts jobs on a board as GetJobs gave them.
func (s *service) PostAsItWas(ctx context.Context, r *connect.Request[boarddv1.PostAsItWasRequest]) (*connect.Response[boarddv1.PostAsItWasResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "PostAsItWas")
	if err != nil {
		return nil, err
	}
	jobs := sift(r.Msg.GetJobs(), func(given *boarddv1.Job) (*board.WholeJob, error) { return fromWhole(b, given) })
	posted, err := b.PostAsItWas(ctx, jobs.good)
	if err = turnedAway(posted, err, func(r board.JobResult) error { return r.Err }); err != nil {
		return nil, err
	}
	form := func(answer *boarddv1.JobResult, j *job.Job) { answer.Job = toJob(j) }
	return answer(&boarddv1.PostAsItWasResponse{Results: jobResults(jobs, posted, form)})
}

// fromWhole reads a job whole. What else is given of it has to say the same, or a change that
// somebody made there would be lost without a word.
func fromWhole(b *board.Board, given *boarddv1.Job) (*board.WholeJob, error) {
	var a *job.AsItWas
	if g := given.GetAsItWas(); g != nil {
		a = &job.AsItWas{Format: g.GetFormat(), Record: g.GetRecord(), SHA256: g.GetSha256()}
	}
	whole, err := b.ReadAsItWas(a)
	if err != nil {
		return nil, err
	}
	kept, err := fieldTexts(toJob(whole.Shown))
	if err != nil {
		return nil, err
	}
	said, err := fieldTexts(given)
	if err != nil {
		return nil, err
	}
	for _, name := range saidFields(given) {
		if !bytes.Equal(said[name], kept[name]) {
			return nil, invalid(name, "want %s, as asItWas has it, got %s: what is posted is asItWas alone, which cannot be changed", clip(text(kept[name])), clip(text(said[name])))
		}
	}
	return whole, nil
}

// ofBoard are the fields of a job that its board gives it anew, or that are of a claim.
var ofBoard = []string{"sequence", "modifiedAt", "leaseExpiresAt", "claimedAt", "claimLease", "asItWas"}

// saidFields are the names of the fields of a job that are to be compared.
func saidFields(j *boarddv1.Job) (names []string) {
	m := j.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		name := fields.Get(i).JSONName()
		if name != "givenFields" && !slices.Contains(ofBoard, name) && (m.Has(fields.Get(i)) || slices.Contains(j.GetGivenFields(), name)) {
			names = append(names, name)
		}
	}
	return names
}

// fieldTexts are the fields of a job as JSON without white space.
func fieldTexts(j *boarddv1.Job) (map[string][]byte, error) {
	all := &boarddv1.Job{}
	j.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Name() != "given_fields" && f.Name() != "as_it_was" {
			all.ProtoReflect().Set(f, v)
		}
		return true
	})
	encoded, err := codec{"json"}.Marshal(all)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, invalid("job", "want a job: %v", err)
	}
	texts := make(map[string][]byte, len(fields))
	for name, value := range fields {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, invalid(name, "want JSON: %v", err)
		}
		texts[name] = compact.Bytes()
	}
	return texts, nil
}

// text is a field's value for people.
func text(value []byte) string {
	if value == nil {
		return "none"
	}
	return string(value)
}
