package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Tracing says where traces go.
type Tracing struct {
	Endpoint    string            // URL of a receiver of OTLP over HTTP
	CAFile      string            // empty: the system's roots
	Headers     map[string]string // with each request to it; secrets
	SampleRatio float64           // of the calls that bring no trace of their caller
}

// DefaultSampleRatio is how many calls are traced where nothing says otherwise.
const DefaultSampleRatio = 0.1

// tracing reads the tracing block.
func (l *loader) tracing(s *section) {
	defer s.close("tracing", "")
	t := &Tracing{SampleRatio: DefaultSampleRatio, Headers: s.headers()}
	l.config.Tracing = t
	t.CAFile = l.certificate(s, "ca_file", false)
	if ratio, ok := s.fraction("sample_ratio"); ok {
		t.SampleRatio = ratio
	}
	t.Endpoint = l.receiver(s, "traces", t.Headers)
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// headers reads an object of texts. No message repeats one.
func (s *section) headers() map[string]string {
	value, ok := s.value("headers")
	if !ok {
		return nil
	}
	if t := value.Type(); !t.IsObjectType() && !t.IsMapType() {
		s.wrong("headers", "want an object { NAME = TEXT }, got %s", kindOf(value))
		return nil
	}
	headers := map[string]string{}
	given := value.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text := given[name]
		unsendable := func(r rune) bool { return r < ' ' || r > '~' }
		if !headerName.MatchString(name) || text.IsNull() || text.Type() != cty.String || strings.ContainsFunc(text.AsString(), unsendable) {
			s.wrong("headers", "%s: want the name of a header, and printable ASCII for its value", clip(name))
			continue
		}
		headers[name] = text.AsString()
	}
	return headers
}

// fraction reads a number from 0 to 1.
func (s *section) fraction(name string) (float64, bool) {
	value, ok := s.value(name)
	if !ok {
		return 0, false
	}
	if value.Type() == cty.Number {
		if f, _ := value.AsBigFloat().Float64(); f >= 0 && f <= 1 {
			return f, true
		}
	}
	s.wrong(name, "want a number from 0 to 1")
	return 0, false
}
