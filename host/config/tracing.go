package config

import (
	"maps"
	"net/url"
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

// tracing reads the tracing block. Where no endpoint is named, it is that of
// OpenTelemetry's own environment.
func (l *loader) tracing(s *section) {
	defer s.close("tracing", "")
	t := &Tracing{SampleRatio: DefaultSampleRatio, Headers: s.headers()}
	l.config.Tracing = t
	t.CAFile = l.certificate(s, "ca_file", false)
	if ratio, ok := s.fraction("sample_ratio"); ok {
		t.SampleRatio = ratio
	}
	var ok bool
	if t.Endpoint, ok = s.text("endpoint"); !ok && !s.has("endpoint") {
		t.Endpoint = l.tracesEndpoint()
	}
	if t.Endpoint == "" {
		if ok || !s.has("endpoint") {
			s.wrong("endpoint", "it is missing; want the URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318, here or in OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		return
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		s.wrong("endpoint", "%q is no URL of a receiver; want one such as https://collector.example.org:4318", clip(t.Endpoint))
	case u.User != nil:
		s.wrong("endpoint", "want no user and password in it; put them into headers")
	case u.Scheme == "http" && len(t.Headers) > 0 && !Loopback(u.Hostname()):
		s.wrong("endpoint", "headers would cross the network in the clear; want https")
	case u.Path == "" || u.Path == "/":
		t.Endpoint = strings.TrimSuffix(t.Endpoint, "/") + "/v1/traces"
	}
}

// tracesEndpoint is what OpenTelemetry's environment says.
func (l *loader) tracesEndpoint() string {
	if l.source.Env == nil {
		return ""
	}
	if text, ok := l.source.Env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); ok && text != "" {
		return text
	}
	if text, ok := l.source.Env("OTEL_EXPORTER_OTLP_ENDPOINT"); ok && text != "" {
		return strings.TrimSuffix(text, "/") + "/v1/traces"
	}
	return ""
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
