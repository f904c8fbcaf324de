package api

import (
	"context"
	"log/slog"
)

// LogRequests returns a handler of log lines that adds the name of its request to
// each line that is written on the way of a call.
func LogRequests(h slog.Handler) slog.Handler { return requestLog{h} }

type requestLog struct{ slog.Handler }

// Handle adds the name, if the line has none of its own.
func (l requestLog) Handle(ctx context.Context, r slog.Record) error {
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		named := false
		r.Attrs(func(a slog.Attr) bool {
			named = a.Key == "request"
			return !named
		})
		if !named {
			r = r.Clone()
			r.AddAttrs(slog.String("request", q.id))
		}
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs keeps the names of requests.
func (l requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the names of requests.
func (l requestLog) WithGroup(name string) slog.Handler { return requestLog{l.Handler.WithGroup(name)} }
