package config

import (
	"net/url"
	"strings"
	"time"
)

// Metrics says where metrics are sent, besides being there to be asked for.
type Metrics struct {
	Endpoint string            // URL of a receiver of OTLP over HTTP
	CAFile   string            // empty: the system's roots
	Headers  map[string]string // with each request to it; secrets
	Every    time.Duration
}

// How often metrics are sent.
const (
	DefaultMetricsEvery = time.Minute
	MinMetricsEvery     = time.Second
	MaxMetricsEvery     = time.Hour
)

// metrics reads the metrics block.
func (l *loader) metrics(s *section) {
	defer s.close("metrics", "")
	m := &Metrics{Every: DefaultMetricsEvery, Headers: s.headers()}
	l.config.Metrics = m
	m.CAFile = l.certificate(s, "ca_file", false)
	if every, ok := s.duration("every", MinMetricsEvery, MaxMetricsEvery); ok {
		m.Every = every
	}
	m.Endpoint = l.receiver(s, "metrics", m.Headers)
}

// receiver reads where a signal of OpenTelemetry goes. Where no endpoint is named, it is
// that of OpenTelemetry's own environment.
func (l *loader) receiver(s *section, signal string, headers map[string]string) string {
	endpoint, ok := s.text("endpoint")
	if !ok && !s.has("endpoint") {
		endpoint = l.receiverOfEnvironment(signal)
	}
	if endpoint == "" {
		if ok || !s.has("endpoint") {
			s.wrong("endpoint", "it is missing; want the URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318, here or in OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		return ""
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		s.wrong("endpoint", "%q is no URL of a receiver; want one such as https://collector.example.org:4318", clip(endpoint))
	case u.User != nil:
		s.wrong("endpoint", "want no user and password in it; put them into headers")
	case u.Scheme == "http" && len(headers) > 0 && !Loopback(u.Hostname()):
		s.wrong("endpoint", "headers would cross the network in the clear; want https")
	case u.Path == "" || u.Path == "/":
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/" + signal
	}
	return endpoint
}

func (l *loader) receiverOfEnvironment(signal string) string {
	if l.source.Env == nil {
		return ""
	}
	if text, ok := l.source.Env("OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_ENDPOINT"); ok && text != "" {
		return text
	}
	if text, ok := l.source.Env("OTEL_EXPORTER_OTLP_ENDPOINT"); ok && text != "" {
		return strings.TrimSuffix(text, "/") + "/v1/" + signal
	}
	return ""
}
