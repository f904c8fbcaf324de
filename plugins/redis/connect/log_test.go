package connect

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A page is what a logger has written.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Split(strings.TrimSuffix(p.text.String(), "\n"), "\n")
}

// TestLogIsBounded checks that lines that are alike come once a minute, and that the next
// one says how many did not.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p page
		l := &libraryLog{logger: slog.New(slog.NewTextHandler(&p, nil)), said: map[string]*saying{}}
		say := func() { l.Printf(context.Background(), "failed to dial after %d attempts", 5) }
		for range 3 {
			say()
		}
		l.Printf(context.Background(), "something else")
		time.Sleep(LogEvery - time.Nanosecond)
		say()
		if lines := p.lines(); len(lines) != 2 || !strings.Contains(lines[0], `text="failed to dial after 5 attempts"`) || strings.Contains(lines[0], "omitted") {
			t.Errorf("within a minute: %q", lines)
		}
		time.Sleep(time.Nanosecond)
		say()
		if lines := p.lines(); len(lines) != 3 || !strings.Contains(lines[2], "omitted=3") {
			t.Errorf("after a minute: %q", lines)
		}
	})
}

// TestLibraryIsHeard has the library fail to connect again and again: it says so in our
// log, once.
func TestLibraryIsHeard(t *testing.T) { //nolint:paralleltest // the library has one log for all
	var p page
	Log(slog.New(slog.NewTextHandler(&p, nil)))
	defer Log(slog.New(slog.DiscardHandler))
	client, err := Open([]byte(`{"address":"127.0.0.1:1"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 20 {
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Fatal("somebody answers")
		}
	}
	n := 0
	for _, line := range p.lines() {
		if strings.Contains(line, "failed to dial") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it says %d times that it failed to dial, want once: %q", n, p.lines())
	}
}
