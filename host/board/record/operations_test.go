package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// The letters that the tables below write statuses with.
var letters = map[byte]job.OperationStatus{
	'q': job.OpQueued, 'w': job.OpWaiting, 'g': job.OpCanceling, 'r': job.OpRunning, 'c': job.OpCanceled, 's': job.OpSuccess, 'e': job.OpError,
}

func opsOf(text string) Operations {
	var o Operations
	for i := range len(text) {
		o.Statuses = append(o.Statuses, byte(letters[text[i]]))
	}
	return o
}

func (o *Operations) text() string {
	var b strings.Builder
	for i := range o.Statuses {
		for letter, s := range letters {
			if s == o.At(i) {
				b.WriteByte(letter)
			}
		}
	}
	return b.String()
}

// reference is the rule of Ganeti's documentation, read anew and in its own words.
func reference(o *Operations) job.OperationStatus {
	if o.Len() == 0 {
		return job.NoOperation
	}
	if !slices.ContainsFunc(o.Statuses, func(s byte) bool { return job.OperationStatus(s) != job.OpSuccess }) {
		return job.OpSuccess
	}
	for _, s := range o.Statuses {
		if s := job.OperationStatus(s); s == job.OpCanceling || s == job.OpError || s == job.OpCanceled {
			return s
		}
	}
	for i := o.Len() - 1; i >= 0; i-- {
		if s := o.At(i); s == job.OpWaiting || s == job.OpRunning {
			return s
		}
	}
	return job.OpQueued
}

func TestStatusOfJob(t *testing.T) {
	t.Parallel()
	table := map[string]job.OperationStatus{
		"": job.NoOperation, "q": job.OpQueued, "w": job.OpWaiting, "g": job.OpCanceling, "r": job.OpRunning,
		"c": job.OpCanceled, "s": job.OpSuccess, "e": job.OpError,
		"qqq": job.OpQueued, "sss": job.OpSuccess, "ssq": job.OpQueued, "swq": job.OpWaiting, "srq": job.OpRunning,
		"wr": job.OpRunning, "rw": job.OpWaiting, "gec": job.OpCanceling, "ecg": job.OpError, "ceg": job.OpCanceled,
		"rge": job.OpCanceling, "see": job.OpError, "scc": job.OpCanceled, "sgg": job.OpCanceling,
	}
	for text, want := range table {
		if o := opsOf(text); o.Status() != want {
			t.Errorf("%q is %s, want %s", text, o.Status(), want)
		}
	}
	// Every arrangement of up to four, against the rule in other words.
	var try func(text string)
	try = func(text string) {
		if o := opsOf(text); o.Status() != reference(&o) {
			t.Errorf("%q is %s, want %s", text, o.Status(), reference(&o))
		}
		for letter := range letters {
			if len(text) < 4 {
				try(text + string(letter))
			}
		}
	}
	try("")
}

func TestPriorityOfJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text       string
		priorities []int32
		want       int32
	}{
		{"", nil, 0},
		{"qqq", nil, 0},
		{"qqq", []int32{5, -3, 7}, -3},
		{"sqq", []int32{-20, 4, 9}, 4},
		{"srw", []int32{-20, 19, 3}, 3},
		{"g", []int32{2}, 2},
		{"sss", []int32{-5, -6, -7}, 0},
		{"see", []int32{-5, -6, -7}, 0},
		{"scc", []int32{5, 6, 7}, 0},
		{"qq", []int32{19, 19}, 19},
	} {
		o := opsOf(tt.text)
		for i, p := range tt.priorities {
			o.SetPriority(i, p)
		}
		if got := o.Priority(); got != tt.want {
			t.Errorf("%s %v: got %d, want %d", tt.text, tt.priorities, got, tt.want)
		}
	}
}

// Each status with each call, on the second of three operations of which the
// first succeeded. A want that begins with ! is the kind of the refusal.
func TestOperationCalls(t *testing.T) {
	t.Parallel()
	calls := map[string]func(o *Operations) error{
		"wait":    func(o *Operations) error { _, err := o.Start(1, job.OpWaiting, time.Now()); return err },
		"run":     func(o *Operations) error { _, err := o.Start(1, job.OpRunning, time.Now()); return err },
		"success": func(o *Operations) error { return o.Finish(1, job.OpSuccess, NoResult, time.Now()) },
		"error":   func(o *Operations) error { return o.Finish(1, job.OpError, 2, time.Now()) },
		"cancel": func(o *Operations) error {
			return o.Finish(1, job.OpCanceled, CanceledResult, time.Now())
		},
		"requeue": func(o *Operations) error { o.Requeue(); return nil },
		"again":   func(o *Operations) error { o.Again(); return nil },
		"stop":    func(o *Operations) error { o.Mark(job.OpCanceling, NoResult, time.Now()); return nil },
		"consume": func(o *Operations) error { o.Conclude(job.NoOutcome, time.Now()); return nil },
		"fail":    func(o *Operations) error { o.Conclude(job.Failed, time.Now()); return nil },
		"dismiss": func(o *Operations) error { o.Conclude(job.Canceled, time.Now()); return nil },
	}
	refused := "!FAILED_PRECONDITION"
	table := map[string]map[string]string{
		//       wait, run, success, error, cancel, requeue, again, stop, consume, fail, dismiss
		"sqq": {"wait": "swq", "run": "srq", "success": "ssq", "error": "see", "cancel": "scc", "requeue": "sqq", "again": "sqq", "stop": "sgg", "consume": "sss", "fail": "see", "dismiss": "scc"},
		"swq": {"wait": "swq", "run": "srq", "success": "ssq", "error": "see", "cancel": "scc", "requeue": "sqq", "again": "sqq", "stop": "sgg", "consume": "sss", "fail": "see", "dismiss": "scc"},
		"srq": {"wait": refused, "run": "srq", "success": "ssq", "error": "see", "cancel": "scc", "requeue": "sqq", "again": "sqq", "stop": "sgg", "consume": "sss", "fail": "see", "dismiss": "scc"},
		"sgg": {"wait": "sgg", "run": "sgg", "success": "ssg", "error": "see", "cancel": "scc", "requeue": "sgg", "again": "sqq", "stop": "sgg", "consume": "scc", "fail": "see", "dismiss": "scc"},
		"scc": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "scc", "again": "sqq", "stop": "scc", "consume": "scc", "fail": "scc", "dismiss": "scc"},
		"ssq": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "ssq", "again": "ssq", "stop": "ssg", "consume": "sss", "fail": "sse", "dismiss": "ssc"},
		"see": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "see", "again": "sqq", "stop": "see", "consume": "see", "fail": "see", "dismiss": "see"},
		// The one before is not finished.
		"qqq": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "qqq", "again": "qqq", "stop": "ggg", "consume": "sss", "fail": "eee", "dismiss": "ccc"},
		"wqq": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "qqq", "again": "qqq", "stop": "ggg", "consume": "sss", "fail": "eee", "dismiss": "ccc"},
		"rqq": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "qqq", "again": "qqq", "stop": "ggg", "consume": "sss", "fail": "eee", "dismiss": "ccc"},
		"ggg": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "ggg", "again": "qqq", "stop": "ggg", "consume": "ccc", "fail": "eee", "dismiss": "ccc"},
		"sss": {"wait": refused, "run": refused, "success": refused, "error": refused, "cancel": refused, "requeue": "sss", "again": "sss", "stop": "sss", "consume": "sss", "fail": "sss", "dismiss": "sss"},
	}
	for from, row := range table {
		if len(row) != len(calls) {
			t.Errorf("%s: %d calls, want %d", from, len(row), len(calls))
		}
		for name, want := range row {
			o := opsOf(from)
			var got string
			if err := calls[name](&o); err != nil {
				got = "!" + job.KindOf(err).String()
				if o.text() != from {
					t.Errorf("%s %s: refused, and yet it is %s", from, name, o.text())
				}
			} else {
				got = o.text()
			}
			if got != want {
				t.Errorf("%s %s: got %s, want %s", from, name, got, want)
			}
			if first := o.Unfinished(); slices.ContainsFunc(o.Statuses[first:], func(s byte) bool { return job.OperationStatus(s).Finished() }) {
				t.Errorf("%s %s: %s has a finished operation behind an unfinished one", from, name, o.text())
			}
		}
	}
}

func TestOperationIndexes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		i    int
		want job.Kind
	}{
		{"", 0, job.Invalid},
		{"q", -1, job.Invalid},
		{"q", 1, job.Invalid},
		{"q", 0, job.NoKind},
		{"qq", 1, job.Precondition},
		{"sq", 1, job.NoKind},
		{"sq", 0, job.Precondition},
	} {
		o := opsOf(tt.text)
		if err := o.Next(tt.i); job.KindOf(err) != tt.want {
			t.Errorf("%s, %d: %v, want %v", tt.text, tt.i, err, tt.want)
		}
	}
	o := opsOf("q")
	for _, s := range []job.OperationStatus{job.NoOperation, job.OpQueued, job.OpCanceling, job.OpSuccess, 99} {
		_, err := o.Start(0, s, time.Now())
		if job.KindOf(err) != job.Invalid {
			t.Errorf("start as %v: %v", s, err)
		}
	}
	for _, s := range []job.OperationStatus{job.NoOperation, job.OpQueued, job.OpWaiting, job.OpCanceling, job.OpRunning, 99} {
		if err := o.Finish(0, s, NoResult, time.Now()); job.KindOf(err) != job.Invalid {
			t.Errorf("finish as %v: %v", s, err)
		}
	}
}

// What is left is ended as the worker says, else as the operations say.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		given job.Outcome
		want  job.Outcome
		after string
	}{
		{"sss", job.NoOutcome, job.Consumed, "sss"},
		{"srq", job.NoOutcome, job.Consumed, "sss"},
		{"see", job.NoOutcome, job.Failed, "see"},
		{"scc", job.NoOutcome, job.Canceled, "scc"},
		{"sgg", job.NoOutcome, job.Canceled, "scc"},
		{"sgg", job.Consumed, job.Consumed, "sss"},
		{"srq", job.Canceled, job.Canceled, "scc"},
		{"srq", job.Failed, job.Failed, "see"},
		{"see", job.Consumed, job.Consumed, "see"},
	} {
		o := opsOf(tt.text)
		if got := o.Conclude(tt.given, time.Now()); got != tt.want || o.text() != tt.after {
			t.Errorf("%s %s: got %s %s, want %s %s", tt.text, tt.given, got, o.text(), tt.want, tt.after)
		}
	}
}

// Times are set once, in order, and go when the operation is queued again.
func TestOperationTimes(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	o := opsOf("qq")
	step := func(_ bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(o.Start(0, job.OpWaiting, at(1)))
	step(o.Start(0, job.OpWaiting, at(2)))
	step(o.Start(0, job.OpRunning, at(3)))
	step(o.Start(0, job.OpRunning, at(4)))
	step(true, o.Finish(0, job.OpSuccess, NoResult, at(5)))
	step(true, o.Finish(1, job.OpSuccess, NoResult, at(6)))
	if got, want := fmt.Sprint(o.Times), "[{1000000 3000000 5000000} {6000000 6000000 6000000}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o = opsOf("q")
	step(o.Start(0, job.OpRunning, at(1)))
	o.Requeue()
	if o.TimesOf(0) != (OpTimes{}) {
		t.Errorf("queued again: %v", o.Times)
	}
}

func TestOperationsOwn(t *testing.T) {
	t.Parallel()
	o := opsOf("sr")
	o.SetPriority(1, 3)
	o.SetResult(0, 1)
	o.Begin(0).Ended = 7
	before := fmt.Sprintf("%+v", o)
	copied := o.Own()
	copied.Requeue()
	copied.SetPriority(1, 4)
	copied.SetResult(0, 2)
	copied.Begin(0).Ended = 8
	if after := fmt.Sprintf("%+v", o); after != before {
		t.Errorf("a change of the copy changed %s to %s", before, after)
	}
}
