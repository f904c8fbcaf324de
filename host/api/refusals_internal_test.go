package api

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to it.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns what was written since the last time.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.b.String()
	l.b.Reset()
	return text
}

// remembered is how many callers a log of refusals knows.
func remembered(f *refusalLog) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.callers)
}

// TestRefusalsAreBounded: one caller has so many lines, then a number; many callers have
// no more than a few together; and a while later everybody has his again.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b lines
		f := &refusalLog{logger: slog.New(slog.NewTextHandler(&b, nil))}
		for range 4178 {
			f.log(t.Context(), "acme/ci", "refused")
		}
		f.log(t.Context(), "acme/other", "refused")
		if n := strings.Count(b.take(), "msg=refused"); n != MaxRefusalLines+1 {
			t.Errorf("%d lines, want %d of one caller and 1 of another", n, MaxRefusalLines)
		}
		time.Sleep(refusalsWithin)
		synctest.Wait()
		want := fmt.Sprintf(`msg="refusals were left out of the log" caller=acme/ci left_out=%d within=10s`, 4178-MaxRefusalLines)
		if said := b.take(); strings.Count(said, "left_out") != 1 || !strings.Contains(said, want) {
			t.Errorf("the log does not say how many were left out:\n%s", said)
		}
		for i := range 10_000 {
			f.log(t.Context(), fmt.Sprint("caller", i), "refused")
		}
		if n := strings.Count(b.take(), "msg=refused"); n != maxRefusedCaller+MaxRefusalLines || remembered(f) != maxRefusedCaller+1 {
			t.Errorf("%d lines of 10,000 callers", n)
		}
		time.Sleep(refusalsWithin)
		synctest.Wait()
		if n := remembered(f); n != 0 || !f.allow("acme/ci") {
			t.Errorf("%d callers are remembered", n)
		}
		time.Sleep(refusalsWithin)
	})
}

func TestPeerOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"10.1.2.3:44": "10.1.2.3", "[2001:db8:1:2:3:4:5:6]:44": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64", "[::ffff:10.0.0.1]:1": "::ffff:10.0.0.1", "pipe": "pipe",
	} {
		if got := peerOf(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
