package plugin

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/go-hclog"
)

func orDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// toHclog is the handler of a driver's logger: what it gets comes out as lines of
// hclog's JSON, which the host reads.
type toHclog struct {
	out    hclog.Logger
	prefix string // of attributes, from groups; ends with a dot
	args   []any
}

func (h toHclog) Enabled(_ context.Context, level slog.Level) bool {
	return hclogLevel(level) >= h.out.GetLevel()
}

func (h toHclog) Handle(_ context.Context, r slog.Record) error {
	args := append([]any(nil), h.args...)
	r.Attrs(func(a slog.Attr) bool {
		args = flat(args, h.prefix, a)
		return true
	})
	h.out.Log(hclogLevel(r.Level), r.Message, args...)
	return nil
}

func (h toHclog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.args = append([]any(nil), h.args...)
	for _, a := range attrs {
		h.args = flat(h.args, h.prefix, a)
	}
	return h
}

func (h toHclog) WithGroup(name string) slog.Handler {
	if name != "" {
		h.prefix += name + "."
	}
	return h
}

// flat appends a as key and value; the members of a group get its name before
// theirs.
func flat(args []any, prefix string, a slog.Attr) []any {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if a.Key == "" {
			return args
		}
		switch v := value.Any().(type) {
		case error:
			return append(args, prefix+a.Key, v.Error())
		case time.Duration:
			return append(args, prefix+a.Key, v.String())
		default:
			return append(args, prefix+a.Key, v)
		}
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, member := range value.Group() {
		args = flat(args, prefix, member)
	}
	return args
}

func hclogLevel(l slog.Level) hclog.Level {
	switch {
	case l < slog.LevelDebug:
		return hclog.Trace
	case l < slog.LevelInfo:
		return hclog.Debug
	case l < slog.LevelWarn:
		return hclog.Info
	case l < slog.LevelError:
		return hclog.Warn
	}
	return hclog.Error
}

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace:
		return slog.LevelDebug - 4
	case hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	case hclog.NoLevel, hclog.Info, hclog.Off:
	}
	return slog.LevelInfo
}
