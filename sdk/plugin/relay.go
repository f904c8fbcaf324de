package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Limits on what is taken from a driver's output, in bytes and lines.
const (
	maxLogLine  = 64 << 10 // longer ones are cut
	maxLogText  = 4 << 10  // of one line, in the log
	maxLogBurst = 1000     // lines at once
	maxLogRate  = 200      // lines a second after that
	maxExcerpt  = 1 << 10  // quoted in an error
)

// logLines calls each for every line until the input ends.
func logLines(in *bufio.Reader, each func(line []byte)) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := maxLogLine - len(line); len(part) > room {
			line = append(line, part[:max(room, 0)]...)
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			each([]byte(text))
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_, _ = io.Copy(io.Discard, in)
			}
			return
		}
		line = line[:0]
	}
}

// An excerpt keeps a little of what a driver printed.
type excerpt struct{ text []byte }

// add keeps the beginning.
func (e *excerpt) add(b []byte) {
	if room := maxExcerpt - len(e.text); room > 0 {
		e.text = append(e.text, b[:min(room, len(b))]...)
	}
}

// end keeps the end, by lines.
func (e *excerpt) end(line []byte) {
	e.text = append(append(e.text, line[:min(len(line), maxExcerpt)]...), '\n')
	if n := len(e.text) - maxExcerpt; n > 0 {
		e.text = e.text[:copy(e.text, e.text[n:])]
	}
}

// String returns it in one line, fit to be shown.
func (e *excerpt) String() string { return tame(strings.TrimSpace(string(e.text)), maxExcerpt) }

// A logRelay lets a driver's log lines come out of a logger, as many of them as a
// log can bear.
type logRelay struct {
	out *slog.Logger

	mu      sync.Mutex
	tokens  float64
	last    time.Time
	dropped int
	panics  bool // the lines after a panic have no level of their own
}

func newLogRelay(out *slog.Logger) *logRelay {
	return &logRelay{out: out, tokens: maxLogBurst, last: time.Now()}
}

func (l *logRelay) line(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens = min(maxLogBurst, l.tokens+now.Sub(l.last).Seconds()*maxLogRate)
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return
	}
	l.tokens--
	l.tell()
	record, ok := fromHclog(line)
	if !ok {
		record = l.plain(now, string(line))
	}
	if h := l.out.Handler(); h.Enabled(context.Background(), record.Level) {
		_ = h.Handle(context.Background(), record)
	}
}

// flush says how many lines were left out at the end.
func (l *logRelay) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

// tell says how many lines were left out. The caller holds l.mu.
func (l *logRelay) tell() {
	if l.dropped > 0 {
		l.out.Warn("the driver wrote too much; lines of its log were left out", "lines", l.dropped)
		l.dropped = 0
	}
}

// plain guesses the level of a line that is not hclog's. The caller holds l.mu.
func (l *logRelay) plain(now time.Time, line string) slog.Record {
	level := slog.LevelDebug
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "Traceback ") {
		l.panics = true
	}
	if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "]"); ok && strings.HasPrefix(line, "[") {
		if named := hclog.LevelFromString(name); named != hclog.NoLevel {
			level, line = slogLevel(named), strings.TrimSpace(rest)
		}
	} else if l.panics {
		level = slog.LevelError
	}
	return slog.NewRecord(now, level, tame(line, maxLogText), 0)
}

// fromHclog reads a line of hclog's JSON; false if it is none.
func fromHclog(line []byte) (slog.Record, bool) {
	if len(line) == 0 || line[0] != '{' {
		return slog.Record{}, false
	}
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return slog.Record{}, false
	}
	message, ok := members["@message"].(string)
	name, _ := members["@level"].(string)
	level := hclog.LevelFromString(name)
	if !ok || level == hclog.NoLevel {
		return slog.Record{}, false
	}
	at := time.Now()
	if text, ok := members["@timestamp"].(string); ok {
		if t, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", text); err == nil {
			at = t
		}
	}
	r := slog.NewRecord(at, slogLevel(level), tame(message, maxLogText), 0)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !strings.HasPrefix(key, "@") {
			r.AddAttrs(slog.Any(tame(key, 128), tamed(members[key])))
		}
	}
	return r, true
}

func tamed(v any) any {
	switch v := v.(type) {
	case string:
		return tame(v, maxLogText)
	case bool, float64, nil:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return tame(string(text), maxLogText)
}
