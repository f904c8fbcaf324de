package job_test

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	const good = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, tc := range []struct {
		name, text, want, problem string
	}{
		{"lower case", good, good, ""},
		{"upper case", strings.ToUpper(good), good, ""},
		{"no version or variant", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001", ""},
		{"all ones", "ffffffff-ffff-ffff-ffff-ffffffffffff", "ffffffff-ffff-ffff-ffff-ffffffffffff", ""},
		{"all zeros", "00000000-0000-0000-0000-000000000000", "", "all zeros"},
		{"empty", "", "", "8-4-4-4-12"},
		{"without dashes", strings.ReplaceAll(good, "-", ""), "", "8-4-4-4-12"},
		{"in braces", "{" + good + "}", "", "8-4-4-4-12"},
		{"urn", "urn:uuid:" + good, "", "8-4-4-4-12"},
		{"one digit short", good[:35], "", "8-4-4-4-12"},
		{"one digit more", good + "0", "", "8-4-4-4-12"},
		{"a dash out of place", "6ba7b81-09dad-11d1-80b4-00c04fd430c8", "", "8-4-4-4-12"},
		{"not hexadecimal", "6ba7b810-9dad-11d1-80b4-00c04fd430cg", "", "8-4-4-4-12"},
		{"a dash for a digit", "6ba7b810-9dad-11d1-80b4-00c04fd430-8", "", "8-4-4-4-12"},
		{"space around it", " " + good[1:], "", "8-4-4-4-12"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			id, err := job.ParseID(tc.text)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || id != (job.ID{}) {
					t.Fatalf("got %v and %v, want no id and an error with %q", id, err, tc.problem)
				}
				return
			}
			if err != nil || id.String() != tc.want {
				t.Errorf("got %v (%v), want %s", id, err, tc.want)
			}
		})
	}
}

func TestParseIDOfLongTextIsShort(t *testing.T) {
	t.Parallel()
	_, err := job.ParseID(strings.Repeat("x", 10_000))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	f.Add("00000000-0000-0000-0000-000000000000")
	f.Add("6BA7B810-9DAD-11D1-80B4-00C04FD430C8")
	f.Add("not a uuid")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := job.ParseID(text)
		if err != nil {
			if id != (job.ID{}) {
				t.Errorf("an id beside the error %v", err)
			}
			return
		}
		if id == (job.ID{}) || id.String() != strings.ToLower(text) {
			t.Errorf("%q became %v", text, id)
		}
	})
}

func FuzzIDString(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var id job.ID
		copy(id[:], raw)
		if id == (job.ID{}) {
			return
		}
		if back, err := job.ParseID(id.String()); err != nil || back != id {
			t.Errorf("%v came back as %v (%v)", id, back, err)
		}
	})
}
