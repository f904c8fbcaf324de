package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/config"
)

func TestMetricsBlock(t *testing.T) {
	t.Parallel()
	environment := env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")
	for text, want := range map[string]config.Metrics{
		`endpoint = "http://127.0.0.1:4318"`:                                            {Endpoint: "http://127.0.0.1:4318/v1/metrics", Every: time.Minute},
		"endpoint = \"https://otel.example.org/otlp/x\"\n every = \"1h\"":               {Endpoint: "https://otel.example.org/otlp/x", Every: time.Hour},
		"endpoint = \"http://localhost:1/\"\n every = \"1s\"\n headers = { k = \"v\" }": {Endpoint: "http://localhost:1/v1/metrics", Every: time.Second, Headers: map[string]string{"k": "v"}},
		"": {Endpoint: "http://collector:4318/v1/metrics", Every: time.Minute},
	} {
		dir := write(t, map[string]string{"a.hcl": "metrics {\n" + text + "\n}\n"})
		if diff := cmp.Diff(&want, load(t, config.Source{Paths: []string{dir}, Env: environment}).Metrics); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
	dir := write(t, map[string]string{"a.hcl": "metrics {}\n"})
	if got := load(t, config.Source{Paths: []string{dir}, Env: env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://collector:4318/own", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://other")}).Metrics; got.Endpoint != "http://collector:4318/own" {
		t.Errorf("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: %q", got.Endpoint)
	}
	if load(t, config.Source{Env: environment}).Metrics != nil {
		t.Error("metrics are sent though nothing says so")
	}
	for text, want := range map[string]string{
		"":                            "endpoint: it is missing",
		`endpoint = "collector:4318"`: "is no URL of a receiver",
		`every = "999ms"`:             "want a duration from 1s to 1h",
		`every = "61m"`:               "want a duration from 1s to 1h",
		"headers = { k = \"v\" }\n endpoint = \"http://collector.example.org\"": "headers would cross the network in the clear",
		`sample_ratio = 1`: "sample_ratio",
	} {
		dir := write(t, map[string]string{"a.hcl": "metrics {\n" + text + "\n}\n"})
		if _, err := config.Load(config.Source{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
