package job_test

import (
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

func TestParsePriority(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want job.Priority
		ok   bool
	}{
		{"VERY_HIGH", job.VeryHigh, true},
		{"HIGH", job.High, true},
		{"NORMAL", job.Normal, true},
		{"LOW", job.Low, true},
		{"VERY_LOW", job.VeryLow, true},
		{"", job.Normal, false},
		{"high", job.Normal, false},
		{"VERY HIGH", job.Normal, false},
		{"INVALID", job.Normal, false},
	} {
		if got, ok := job.ParsePriority(tc.text); got != tc.want || ok != tc.ok {
			t.Errorf("%q: got %v, %v; want %v, %v", tc.text, got, ok, tc.want, tc.ok)
		}
		if tc.ok && tc.want.String() != tc.text {
			t.Errorf("%q prints as %v", tc.text, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want string }{
		{job.Unknown.String(), "UNKNOWN"},
		{job.Trashed.String(), "TRASHED"},
		{job.State(99).String(), "INVALID"},
		{job.NoOutcome.String(), "NONE"},
		{job.Purged.String(), "PURGED"},
		{job.Outcome(99).String(), "INVALID"},
		{job.Priority(-3).String(), "INVALID"},
		{job.Priority(3).String(), "INVALID"},
		{job.JSON.String(), "json"},
		{job.Msgpack.String(), "msgpack"},
		{job.Encoding(99).String(), "INVALID"},
		{job.Posted.String(), "POSTED"},
		{job.ForeignChange.String(), "CHANGED"},
		{job.Resync.String(), "RESYNC"},
		{job.EventType(99).String(), "INVALID"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

func TestTokenIsZero(t *testing.T) {
	t.Parallel()
	if !(job.Token{}).IsZero() {
		t.Error("the zero token is one")
	}
	for _, token := range []job.Token{{Generation: 1}, {Epoch: 1}, {Nonce: [16]byte{15: 1}}} {
		if token.IsZero() {
			t.Errorf("%+v is none", token)
		}
	}
}
