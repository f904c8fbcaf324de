package store

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"url":"postgres://u:secret@h:1/d"}`:                                                "",
		`{"url":"host=h dbname=d user=u"}`:                                                   "",
		`{"url":"postgres://u@a,b/d?target_session_attrs=any"}`:                              "",
		`{"url":"postgres://u@h/d","schema":"jobs_2","max_connections":3,"migrate":"check"}`: "",
		`{"url":"http://h/d"}`:                                                               "url:",
		`{"url":"postgres://u:secret@h:x/d"}`:                                                "url:",
		`{"schema":""}`:                                                                      "schema:",
		`{"schema":"Jobs"}`:                                                                  "schema:",
		`{"schema":"1jobs"}`:                                                                 "schema:",
		`{"schema":"pg_jobs"}`:                                                               "schema:",
		`{"schema":"a\"b"}`:                                                                  "schema:",
		`{"max_connections":2}`:                                                              "max_connections:",
		`{"max_connections":1001}`:                                                           "max_connections:",
		`{"migrate":"never"}`:                                                                "migrate:",
		`{"url":1}`:                                                                          "cannot be read",
	} {
		s, err := readSettings([]byte(raw))
		if want == "" {
			if err != nil || s.pool.ConnConfig.ValidateConnect == nil {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want INVALID that names %s", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

func TestBoardSettings(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{``: defaultEvents, `{}`: defaultEvents, `{"events":7}`: 7, `{"events":0}`: 0, `{"events":"x"}`: 0} {
		got, err := readBoardSettings(&driver.BoardSpec{Name: "b", Settings: []byte(raw)})
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", raw, got, err, want)
		}
	}
}
