package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

func TestFilterMatches(t *testing.T) {
	t.Parallel()
	s := &Subject{
		Name: "resize", Owner: "w-1", Priority: job.High, Attempt: 3,
		CreatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		Labels:    []job.Label{{Key: "customer", Value: "acme"}, {Key: "size", Value: "12"}},
	}
	details := []byte(`{"path":"/a \"b\"","size":9,"ok":true,"half":0.5,"nothing":null,"a.b":"dotted"}`)
	tests := []struct {
		text string
		want bool
	}{
		{``, true},
		{`  `, true},
		{`name = resize`, true},
		{`name=resize`, true},
		{`name = "resize"`, true},
		{`name != resize`, false},
		{`name > a AND name < z`, true},
		{`name > a and name < b`, false},
		{`owner = w-1`, true},
		{`owner = ""`, false},
		{`priority = HIGH`, true},
		{`priority = high`, true},
		{`priority > NORMAL`, true},
		{`priority >= VERY_HIGH`, false},
		{`priority < VERY_HIGH`, true},
		{`attempt >= 3`, true},
		{`attempt < 3`, false},
		{`createdAt >= 2026-05-01T12:00:00Z`, true},
		{`createdAt > 2026-05-01T12:00:00Z`, false},
		{`createdAt < 2026-05-01T14:30:00+02:00`, true},
		{`labels.customer = acme`, true},
		{`labels.customer != acme`, false},
		{`labels.none = acme`, false},
		{`labels.none != acme`, true},
		{`labels.none < acme`, false},
		{`labels.size = 12.0`, true},
		{`labels.size > 9`, true},
		{`labels.customer > 9`, false},
		{`details.path = "/a \"b\""`, true},
		{`details.size = 9`, true},
		{`details.size < 10`, true},
		{`details.size > 10`, false},
		{`details.size = "9.0"`, true},
		{`details.ok = true`, true},
		{`details.ok > a`, false},
		{`details.half <= 0.5`, true},
		{`details.nothing = null`, true},
		{`details.none = 1`, false},
		{`details.a.b = dotted`, true},
		{`name = resize AND details.size = 8`, false},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			f, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Matches(s) && f.MatchesDetails(details); got != tt.want {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFilterErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{`priorty = HIGH`, `at character 1: there is no field "priorty" (did you mean "priority"?)`},
		{`state = CLAIMED`, `there is no field "state": want one of name, owner, `},
		{`name`, "at character 5: want one of = != < <= > >= after name"},
		{`name ~ x`, "at character 6: want one of"},
		{`name =`, "at character 7: want a value"},
		{`labels.team == a`, "at character 13: want one of = != < <= > >= after labels.team, not =="},
		{`name = x OR name = y`, "at character 10: want AND"},
		{`name = x AND`, "at character 13: want a field"},
		{`name = "x`, "at character 8: the quoted value has no end"},
		{`name = "x\n"`, `at character 10: want \" or \\`},
		{`labels. = x`, "at character 1: want a key after labels."},
		{`priority = URGENT`, `at character 12: "URGENT" is no priority`},
		{`attempt = many`, `"many" is no whole number`},
		{`createdAt > yesterday`, `"yesterday" is no time`},
		{`name = é AND x = 1`, "at character 14: there is no field"},
		{"name = \xff", "not valid UTF-8"},
		{strings.Repeat(" ", Max+1), "too many"},
		{`= x`, "at character 1: want a field"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) || job.KindOf(err) != job.Invalid {
			t.Errorf("%q: got %v, want it to say %q", tt.text, err, tt.want)
		}
	}
}

// A filter's canonical form is a filter that means the same.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`name = a AND labels.x != "y z"`, `details.a >= 1.5`, `priority<LOW and attempt > 2`, `createdAt > 2026-01-01T00:00:00Z`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		if err != nil {
			return
		}
		second, err := Parse(first.Text)
		if len(first.Text) > Max {
			return
		}
		if err != nil || second.Text != first.Text || len(second.terms) != len(first.terms) {
			t.Fatalf("%q became %q, which became %q (%v)", text, first.Text, second.Text, err)
		}
		s := &Subject{Name: "a", Labels: []job.Label{{Key: "x", Value: "2"}}, Attempt: 2}
		details := []byte(`{"a":2,"b":"text"}`)
		if first.Matches(s) != second.Matches(s) || first.MatchesDetails(details) != second.MatchesDetails(details) {
			t.Fatalf("%q and %q do not mean the same", text, first.Text)
		}
	})
}
