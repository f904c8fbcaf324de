package connect

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// LogEvery is how often the client library says one thing at most. It repeats itself with
// each connection that fails, hundreds of times a minute while Redis is away.
const LogEvery = time.Minute

// Log has what the client library says come out as lines of a logger, for all clients of
// the process.
func Log(logger *slog.Logger) {
	redis.SetLogger(&libraryLog{logger: logger, said: map[string]*saying{}})
}

// A libraryLog passes on the first of lines that are alike, and says with the next one how
// many there were meanwhile.
type libraryLog struct {
	logger *slog.Logger

	mu   sync.Mutex
	said map[string]*saying // by their format, of which the library has some dozens
}

type saying struct {
	last    time.Time
	omitted int
}

// Printf is called by the library.
func (l *libraryLog) Printf(ctx context.Context, format string, values ...any) {
	omitted, ok := l.due(format)
	if !ok {
		return
	}
	attributes := []any{"library", "go-redis", "text", fmt.Sprintf(format, values...)}
	if omitted > 0 {
		attributes = append(attributes, "omitted", omitted)
	}
	l.logger.WarnContext(ctx, "the client of Redis says something", attributes...)
}

// due reports whether a line is to be passed on, and how many were not since the last one.
func (l *libraryLog) due(format string) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.said[format]
	if s == nil {
		s = &saying{}
		l.said[format] = s
	} else if time.Since(s.last) < LogEvery {
		s.omitted++
		return 0, false
	}
	omitted, s.omitted, s.last = s.omitted, 0, time.Now()
	return omitted, true
}
