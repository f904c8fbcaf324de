// Package trace shows where the time of calls goes: spans of OpenTelemetry, sent
// to a receiver of OTLP. A nil Tracer traces nothing and costs nothing.
package trace

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
)

// closeWithin is how long the last spans may take to be sent.
const closeWithin = 5 * time.Second

// Tracer makes spans.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	callers  propagation.TraceContext // what they send of their own traces
}

// New returns a Tracer, or nil for no settings. Nobody is asked whether the receiver
// is there: what it does not take is lost, and the log says so.
func New(ctx context.Context, c *config.Tracing, version, host string, logger *slog.Logger) (*Tracer, error) {
	if c == nil {
		return nil, nil
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(c.Endpoint), otlptracehttp.WithHeaders(c.Headers)}
	if c.CAFile != "" {
		roots, err := config.Roots(c.CAFile)
		if err != nil {
			return nil, job.Errorf(job.Invalid, "tracing: ca_file: %v", err)
		}
		options = append(options, otlptracehttp.WithTLSClientConfig(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "tracing: %v", err)
	}
	words := &complaints{logger: logger}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(words.handle))
	t := &Tracer{provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(Resource(ctx, version, host, logger)), sdktrace.WithSampler(newSampler(c.SampleRatio)),
	)}
	t.tracer = t.provider.Tracer("github.com/boardd/boardd", trace.WithInstrumentationVersion(version))
	return t, nil
}

// Resource says whose traces or metrics they are. What OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES say goes before.
func Resource(ctx context.Context, version, host string, logger *slog.Logger) *resource.Resource {
	who, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "boardd"), attribute.String("service.version", version), attribute.String("service.instance.id", host)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		logger.Warn("what the environment says of this server is not all understood", "error", err)
	}
	return who
}

// Close sends what is left.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the log has it already
}

// Span is a part of a call. The zero Span is none.
type Span struct{ span trace.Span }

// Call begins the span of a whole call, within the trace of its caller where the
// headers name one. Its time begins at begun.
func (t *Tracer) Call(ctx context.Context, header http.Header, name string, begun time.Time, with ...Attribute) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx = t.callers.Extract(ctx, propagation.HeaderCarrier(header))
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(begun))
	return ctx, Span{span}.with(with)
}

// Inject names the trace that ctx is in to whom a request with these headers goes.
func (t *Tracer) Inject(ctx context.Context, header http.Header) {
	if t != nil {
		t.callers.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Start begins a span within the one of ctx. Outside of a call that is traced
// there is none.
func (t *Tracer) Start(ctx context.Context, name string, with ...Attribute) (context.Context, Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, Span{span}.with(with)
}

// Attribute says something of a span: never what a job holds, a name of a job or a
// secret.
type Attribute struct {
	Key   string
	Text  string
	Count int // where Text is empty
}

func (s Span) with(list []Attribute) Span {
	if !s.span.IsRecording() {
		return s
	}
	for _, a := range list {
		if a.Text != "" {
			s.span.SetAttributes(attribute.String(a.Key, a.Text))
		} else {
			s.span.SetAttributes(attribute.Int(a.Key, a.Count))
		}
	}
	return s
}

// Set adds to what the span says.
func (s Span) Set(with ...Attribute) {
	if s.span != nil {
		s.with(with)
	}
}

// End ends the span. The code is that of an error, or empty; texts of errors are
// for the log.
func (s Span) End(code string) {
	if s.span == nil {
		return
	}
	if code != "" {
		s.span.SetStatus(codes.Error, code)
	}
	s.span.End()
}

// ID returns the id of the trace that ctx is in, or "" where it is not recorded.
func ID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}
