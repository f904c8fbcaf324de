package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/config"
)

func TestTracing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Tracing{
		`endpoint = "http://127.0.0.1:4318"`:                                              {Endpoint: "http://127.0.0.1:4318/v1/traces", SampleRatio: 0.1},
		"endpoint = \"https://otel.example.org/otlp/x\"\n sample_ratio = 1":               {Endpoint: "https://otel.example.org/otlp/x", SampleRatio: 1},
		"endpoint = \"http://localhost:1/\"\n sample_ratio = 0\n headers = { k = \"v\" }": {Endpoint: "http://localhost:1/v1/traces", Headers: map[string]string{"k": "v"}},
		"": {Endpoint: "http://collector:4318/v1/traces", SampleRatio: 0.1},
	} {
		dir := write(t, map[string]string{"a.hcl": "tracing {\n" + text + "\n}\n"})
		got := load(t, config.Source{Paths: []string{dir}, Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")}).Tracing
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
	dir := write(t, map[string]string{"a.hcl": "tracing {}\n"})
	got := load(t, config.Source{Paths: []string{dir}, Env: env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318/own", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://other")}).Tracing
	if got.Endpoint != "http://collector:4318/own" {
		t.Errorf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: %q", got.Endpoint)
	}
	if c := load(t, config.Source{Env: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")}); c.Tracing != nil {
		t.Error("traces are on though nothing says so")
	}
}
