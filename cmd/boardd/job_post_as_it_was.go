package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// wholeWanted says what a file of such jobs is.
const wholeWanted = "want what boardd job get -o json --log wrote"

// postAsItWas posts all jobs of a file as they were. Nothing is posted if one of them cannot be
// read.
func (p *program) postAsItWas(ctx context.Context, path string) error {
	in, closed, err := p.open(path)
	if err != nil {
		return err
	}
	defer closed()
	jobs, err := readWhole(in)
	if err != nil {
		return usagef("--from %s: %v\nnothing was posted", path, err)
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	refused, unknown := 0, false
	for len(jobs) > 0 {
		part := firstOf(jobs)
		jobs = jobs[len(part):]
		posted, err := board.PostAsItWas(ctx, part...)
		if !partly(err) {
			return err
		}
		if err := p.show(&boarddv1.PostAsItWasResponse{Results: jobResults(posted, err)}, jobRows(posted)); err != nil {
			return err
		}
		for i, err := range client.Each(err, len(part)) {
			if err != nil {
				refused++
				unknown = unknown || job.KindOf(err) == job.OutcomeUnknown
				p.complain(fmt.Sprintf("%s: %v: %v", part[i].GetUuid(), job.KindOf(err), err))
			}
		}
	}
	switch {
	case unknown:
		return codeError{code: exitUnknown}
	case refused > 0:
		return findings("%d jobs were refused", refused)
	}
	return nil
}

// firstOf returns the first of the jobs, as many as one call posts.
func firstOf(jobs []*client.Job) []*client.Job {
	size := 0
	for i, j := range jobs {
		if size += proto.Size(j); i > 0 && (size > postBytes || i == postBatch) {
			return jobs[:i]
		}
	}
	return jobs
}

// readWhole reads answers that have jobs whole.
func readWhole(in io.Reader) ([]*client.Job, error) {
	var jobs []*client.Job
	for d := json.NewDecoder(in); ; {
		var text json.RawMessage
		err := d.Decode(&text)
		switch {
		case errors.Is(err, io.EOF) && len(jobs) == 0:
			return nil, errors.New("there is nothing in it: " + wholeWanted)
		case errors.Is(err, io.EOF):
			return jobs, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("it was cut off: it ends within a job")
		case err != nil:
			return nil, fmt.Errorf("it is no JSON: %w", err)
		}
		some, err := readWholeAnswer(text)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
}

// readWholeAnswer reads one answer of GetJobs.
func readWholeAnswer(text []byte) ([]*client.Job, error) {
	var loose struct {
		Results []struct {
			Job map[string]json.RawMessage `json:"job"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &loose); err != nil || len(loose.Results) == 0 {
		return nil, errors.New("it has no results: " + wholeWanted)
	}
	for i, r := range loose.Results {
		var whole struct {
			Format int64 `json:"format"`
		}
		switch err := json.Unmarshal(r.Job["asItWas"], &whole); {
		case r.Job == nil:
			return nil, fmt.Errorf("results[%d] is no job, but an error: want it without, as of another boardd job get", i)
		case r.Job["asItWas"] == nil:
			return nil, fmt.Errorf("results[%d].job: there is no asItWas: %s, without --fields", i, wholeWanted)
		case err != nil || whole.Format < 1:
			return nil, fmt.Errorf("results[%d].job.asItWas.format: want %d", i, job.AsItWasFormat)
		case whole.Format > job.AsItWasFormat:
			return nil, fmt.Errorf("results[%d].job.asItWas.format: it is %d, of a newer version of boardd, and this one reads %d: use a program of the version that wrote it, or a later one",
				i, whole.Format, job.AsItWasFormat)
		}
	}
	answer := &boarddv1.GetJobsResponse{}
	if err := wirejson.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("%w; it may be of a newer version of boardd: use a program of the version that wrote it, or a later one", err)
	}
	jobs := make([]*client.Job, len(answer.GetResults()))
	for i, r := range answer.GetResults() {
		jobs[i] = r.GetJob()
		jobs[i].GivenFields = slices.Sorted(maps.Keys(loose.Results[i].Job)) // so that what was changed to nothing is compared, too
	}
	return jobs, nil
}
