package trace

import (
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxByCallers is how many traces in a second callers may ask for, all of them
// together. Those above it are recorded as often as those that nobody asked for.
const maxByCallers = 100

// newSampler decides which calls are recorded: of those that bring no trace, this
// part; of those whose callers record them, each, up to maxByCallers.
func newSampler(ratio float64) sdktrace.Sampler {
	share := sdktrace.TraceIDRatioBased(ratio)
	return sdktrace.ParentBased(share, sdktrace.WithRemoteParentSampled(&asked{otherwise: share}), sdktrace.WithRemoteParentNotSampled(sdktrace.NeverSample()))
}

// asked records what callers ask for, within bounds.
type asked struct {
	otherwise sdktrace.Sampler

	mu     sync.Mutex
	second int64
	count  int
}

// ShouldSample decides about one call.
func (a *asked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	now := time.Now().Unix()
	a.mu.Lock()
	if a.second != now {
		a.second, a.count = now, 0
	}
	a.count++
	over := a.count > maxByCallers
	a.mu.Unlock()
	if over {
		return a.otherwise.ShouldSample(p)
	}
	return sdktrace.AlwaysSample().ShouldSample(p)
}

// Description names the sampler.
func (a *asked) Description() string { return "asked for by callers" }

// complaints logs what goes wrong with sending, not more often than once a minute.
type complaints struct {
	logger *slog.Logger

	mu   sync.Mutex
	last time.Time
}

func (c *complaints) handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < time.Minute {
		return
	}
	c.last = time.Now()
	c.logger.Warn("traces could not be sent", "error", err)
}
