// Package logevent gives the lines of the log names that stay, for programs: texts are for
// people, and are put better now and then.
package logevent

import (
	"context"
	_ "embed" // the table
	"log/slog"
	"strings"
	"sync"
)

//go:embed events.txt
var table string

// Event is a kind of line.
type Event struct {
	Name string // such as "server.serving"
	Text string // the line's message
}

// All returns the kinds of lines, by name.
var All = sync.OnceValue(func() (all []Event) {
	for line := range strings.Lines(table) {
		if name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && !strings.HasPrefix(line, "#") {
			all = append(all, Event{name, text})
		}
	}
	return all
})

var byText = sync.OnceValue(func() map[string]string {
	names := make(map[string]string, len(All()))
	for _, e := range All() {
		names[e.Text] = e.Name
	}
	return names
})

// Name returns the name of a line with this text, or "" for one that has none, such as what
// somebody else's driver says.
func Name(text string) string { return byText()[text] }

// Named returns a handler of log lines that adds the name of each as its field "event".
func Named(h slog.Handler) slog.Handler { return named{h} }

type named struct{ slog.Handler }

// Handle adds the name, if the line has one.
func (n named) Handle(ctx context.Context, r slog.Record) error {
	if name := Name(r.Message); name != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("event", name))
	}
	return n.Handler.Handle(ctx, r)
}

// WithAttrs keeps the names.
func (n named) WithAttrs(attrs []slog.Attr) slog.Handler { return named{n.Handler.WithAttrs(attrs)} }

// WithGroup keeps the names.
func (n named) WithGroup(name string) slog.Handler { return named{n.Handler.WithGroup(name)} }
