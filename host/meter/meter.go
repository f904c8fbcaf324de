// Package meter sends to a receiver of OpenTelemetry what Prometheus would ask for.
package meter

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/sdk/job"
)

// sendWithin is how long one sending may take, the last one included.
const sendWithin = 5 * time.Second

// Meter sends metrics.
type Meter struct {
	every    time.Duration
	reader   metric.Reader
	provider *metric.MeterProvider // says whose metrics they are
	exporter metric.Exporter
	logger   *slog.Logger
	failing  bool
}

// New returns a Meter of what there is to be gathered, or nil for no settings. Nobody is
// asked whether the receiver is there.
func New(ctx context.Context, c *config.Metrics, from prometheus.Gatherer, version, host string, logger *slog.Logger) (*Meter, error) {
	if c == nil {
		return nil, nil
	}
	options := []otlpmetrichttp.Option{
		otlpmetrichttp.WithEndpointURL(c.Endpoint), otlpmetrichttp.WithHeaders(c.Headers), otlpmetrichttp.WithTimeout(sendWithin),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}), // the next ones have all that these had
	}
	if c.CAFile != "" {
		roots, err := config.Roots(c.CAFile)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "metrics: ca_file: %v", err)
		}
		options = append(options, otlpmetrichttp.WithTLSClientConfig(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))
	}
	exporter, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "metrics: %v", err)
	}
	reader := metric.NewManualReader(metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))))
	return &Meter{
		every: c.Every, reader: reader, exporter: exporter, logger: logger,
		provider: metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(trace.Resource(ctx, version, host, logger))),
	}, nil
}

// Run sends until ctx ends, and then once more. A nil Meter has nothing to send.
func (m *Meter) Run(ctx context.Context) {
	if m == nil {
		return
	}
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.send(ctx)
			continue
		case <-ctx.Done():
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
		defer cancel()
		m.send(last)
		_ = m.provider.Shutdown(last) // it holds nothing that could be lost
		_ = m.exporter.Shutdown(last)
		return
	}
}

// send sends what there is now. What the receiver does not take is not sent again: all
// counts begin with the server.
func (m *Meter) send(ctx context.Context) {
	var all metricdata.ResourceMetrics
	err := m.reader.Collect(ctx, &all)
	if len(all.ScopeMetrics) > 0 { // what could be gathered, also where something could not
		if failed := m.exporter.Export(ctx, &all); failed != nil {
			err = failed
		}
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !m.failing:
		m.logger.Warn("metrics could not be sent; they are tried again", "every", m.every.String(), "error", err)
	case err == nil && m.failing:
		m.logger.Info("metrics are sent again")
	}
	m.failing = err != nil
}
