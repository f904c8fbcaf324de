package board

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// checkWhole reports what is wrong with a posting, and returns its labels in order and what it
// waits for in a canonical form.
func checkWhole(p *job.Posting, caps *driver.Capabilities, now time.Time) (labels []job.Label, after []job.Prerequisite, err error) {
	if labels, err = checkPosting(p, caps, now); err != nil {
		return nil, nil, err
	}
	if after, err = checkAfter(p); err != nil {
		return nil, nil, err
	}
	return labels, after, checkOperations(p.Operations)
}

// checkPosting reports what is wrong with a posting itself, and returns its labels in
// order.
func checkPosting(p *job.Posting, caps *driver.Capabilities, now time.Time) ([]job.Label, error) {
	if err := checkText("name", p.Name, job.MaxName); err != nil {
		return nil, err
	}
	if p.Name == "" {
		return nil, job.Errorf(job.Invalid, "name: want a name of 1 to %d bytes", job.MaxName)
	}
	if p.Priority < job.VeryHigh || p.Priority > job.VeryLow {
		return nil, job.Errorf(job.Invalid, "priority: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW")
	}
	if err := checkText("book.uuid", p.Book.UUID, job.MaxBookName); err != nil {
		return nil, err
	}
	if err := checkText("book.name", p.Book.Name, job.MaxBookName); err != nil {
		return nil, err
	}
	if p.MaxAttempts < 0 {
		return nil, job.Errorf(job.Invalid, "maxAttempts: want 0 (the board's) or more, got %d", p.MaxAttempts)
	}
	if p.NotBefore.After(now.AddDate(0, 0, job.MaxNotBeforeDays)) {
		return nil, job.Errorf(job.Invalid, "notBefore: want a time at most %d days ahead", job.MaxNotBeforeDays)
	}
	if err := checkTimeout(p, caps); err != nil {
		return nil, err
	}
	if err := checkUnique(&p.Unique, caps); err != nil {
		return nil, err
	}
	if err := checkBatchOf(p, caps); err != nil {
		return nil, err
	}
	if err := checkContent(p, caps); err != nil {
		return nil, err
	}
	return checkLabels("labels", p.Labels)
}

// checkOperations reports what is wrong with the operations of a posting.
func checkOperations(list []job.NewOperation) error {
	if len(list) > job.MaxOperations {
		return job.Errorf(job.Invalid, "operations: %d are too many: want at most %d", len(list), job.MaxOperations)
	}
	size := 0
	for i := range list {
		op, at := &list[i], "operations["+strconv.Itoa(i)+"]"
		if err := checkText(at+".name", op.Name, job.MaxName); err != nil {
			return err
		}
		if op.Name == "" {
			return job.Errorf(job.Invalid, "%s.name: want a name of 1 to %d bytes", at, job.MaxName)
		}
		if op.Priority < job.MinOperationPriority || op.Priority > job.MaxOperationPriority {
			return job.Errorf(job.Invalid, "%s.priority: want %d to %d, got %d", at, job.MinOperationPriority, job.MaxOperationPriority, op.Priority)
		}
		if err := jsontext.CheckValue(at+".input", op.Input, job.MaxOperationInput); err != nil {
			return err
		}
		size += len(op.Name) + len(op.Input)
	}
	if size > job.MaxOperationInputs {
		return job.Errorf(job.Invalid, "operations: %d bytes of names and inputs are too many: want at most %d", size, job.MaxOperationInputs)
	}
	return nil
}

func checkText(what, text string, most int) error {
	if problem := textProblem(text, most); problem != "" {
		return job.Errorf(job.Invalid, "%s: %s", what, problem)
	}
	return nil
}

func textProblem(text string, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("%d bytes are too many: want at most %d", len(text), most)
	case !utf8.ValidString(text):
		return "the text is not valid UTF-8"
	case strings.IndexByte(text, 0) >= 0:
		return "the text holds a zero byte"
	}
	return ""
}

// checkLabels returns labels sorted by key; no key may be there twice.
func checkLabels(what string, labels []job.Label) ([]job.Label, error) {
	if len(labels) == 0 {
		return nil, nil
	}
	if len(labels) > job.MaxLabels {
		return nil, job.Errorf(job.Invalid, "%s: %d are too many: want at most %d", what, len(labels), job.MaxLabels)
	}
	byKey := func(a, b job.Label) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(labels, byKey) {
		labels = slices.SortedFunc(slices.Values(labels), byKey)
	}
	for i, l := range labels {
		if l.Key == "" {
			return nil, job.Errorf(job.Invalid, "%s: a key is empty: want 1 to %d bytes", what, job.MaxLabelKey)
		}
		if i > 0 && labels[i-1].Key == l.Key {
			return nil, job.Errorf(job.Invalid, "%s: the key %q is there twice", what, l.Key)
		}
		if problem := textProblem(l.Key, job.MaxLabelKey); problem != "" {
			return nil, job.Errorf(job.Invalid, "%s: a key: %s", what, problem)
		}
		if problem := textProblem(l.Value, job.MaxLabelValue); problem != "" {
			return nil, job.Errorf(job.Invalid, "%s.%s: %s", what, l.Key, problem)
		}
	}
	return labels, nil
}

func checkContent(p *job.Posting, caps *driver.Capabilities) error {
	what, data, encoding := "details", p.Details, job.JSON
	if p.Raw != nil {
		if p.Details != nil {
			return job.Errorf(job.Invalid, "details: want either details or detailsRaw, not both")
		}
		what, data, encoding = "detailsRaw", p.Raw.Data, p.Raw.Encoding
	}
	if !slices.Contains(caps.Encodings, encoding.String()) {
		return job.Errorf(job.Invalid, "%s: this store does not keep the encoding %q: want one of %s",
			what, encoding.String(), strings.Join(caps.Encodings, ", "))
	}
	most := job.MaxDetails
	if caps.MaxDetails > 0 {
		most = min(most, caps.MaxDetails)
	}
	if len(data) > most {
		return job.Errorf(job.Invalid, "%s: %d bytes are too many: want at most %d", what, len(data), most)
	}
	switch {
	case encoding == job.JSON && (p.Raw != nil || data != nil):
		return jsontext.Check(data)
	case encoding == job.Msgpack && !isMsgpackMap(data):
		return job.Errorf(job.Invalid, "detailsRaw: want a msgpack map")
	}
	return nil
}

// isMsgpackMap looks at the first byte only: the rest is for the store.
func isMsgpackMap(data []byte) bool {
	return len(data) > 0 && (data[0]&0xf0 == 0x80 || data[0] == 0xde || data[0] == 0xdf)
}
