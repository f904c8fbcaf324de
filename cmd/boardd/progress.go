package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress is a bar on a terminal; anywhere else it shows nothing.
type progress struct {
	w     io.Writer // nil: not a terminal
	total int64
	at    int64
	shown time.Time
}

func newProgress(w io.Writer, total int64) *progress {
	if !terminal(w) || total <= 0 {
		return &progress{}
	}
	return &progress{w: w, total: total}
}

// add moves the bar on. It draws at most ten times a second.
func (b *progress) add(n int) {
	b.at += int64(n)
	if b.w == nil || time.Since(b.shown) < 100*time.Millisecond {
		return
	}
	b.shown = time.Now()
	const width = 40
	share := float64(min(b.at, b.total)) / float64(b.total)
	full := int(share * width)
	fmt.Fprintf(b.w, "\r[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", width-full), share*100)
}

// clear takes the bar away, so that something else can be written.
func (b *progress) clear() {
	if b.w != nil && !b.shown.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

func (b *progress) done() { b.clear() }
