package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// What a terminal is told.
const (
	screenBegin = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	screenEnd   = "\x1b[?25h\x1b[?1049l" // what was there before
	screenHome  = "\x1b[H"
	lineRest    = "\x1b[K" // nothing in the rest of the line
	screenRest  = "\x1b[J" // and below
)

// live draws the boards on a terminal until somebody ends it.
func (t *top) live(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	defer func() { cancel(); looking.Wait() }()
	in, ok := t.in.(*os.File)
	if !ok {
		return usagef("standard input is no terminal; want --once")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	if _, err := io.WriteString(t.out, screenBegin); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(t.out, screenEnd) }()
	keys := make(chan byte)
	go readKeys(ctx, in, keys) // it ends with the program: a read of a terminal cannot be ended
	looked := make(chan topLooked)
	looking.Go(func() { t.lookForever(ctx, looked) })
	var last topLooked
	for {
		select {
		case l := <-looked:
			if l.err != nil && last.at.IsZero() {
				return l.err // it never was there
			}
			if l.err != nil {
				l.rows = last.rows
			}
			last = l
		case k := <-keys:
			if t.view.key(k) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := t.draw(&last); err != nil {
			return err
		}
	}
}

// topLooked is what a look at the boards found.
type topLooked struct {
	rows []topRow
	err  error
	at   time.Time
}

// lookForever looks at the boards again and again.
func (t *top) lookForever(ctx context.Context, looked chan<- topLooked) {
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for {
		rows, err := t.look(ctx)
		select {
		case looked <- topLooked{rows, err, time.Now()}:
		case <-ctx.Done():
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// readKeys hands on what is typed, but for what keys such as the arrows send.
func readKeys(ctx context.Context, in io.Reader, keys chan<- byte) {
	buffer := make([]byte, 64)
	for {
		n, err := in.Read(buffer)
		if err != nil {
			return
		}
		if n > 1 && buffer[0] == '\x1b' {
			continue
		}
		for _, k := range buffer[:n] {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// draw writes the boards over what was drawn before. What is wider or higher than the terminal
// is left out.
func (t *top) draw(l *topLooked) error {
	width, height := terminalSize(t.out)
	rows := t.view.arrange(l.rows)
	var text bytes.Buffer
	fmt.Fprintln(&text, t.view.line(len(rows), len(l.rows), l.at))
	if l.err != nil {
		fmt.Fprintln(&text, printable(l.err.Error()))
	} else {
		fmt.Fprintln(&text)
	}
	if err := topTable(rows).write(&text); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	var over strings.Builder
	over.WriteString(screenHome)
	for i, line := range lines {
		if runes := []rune(line); width > 0 && len(runes) > width {
			line = string(runes[:width])
		}
		if i > 0 {
			over.WriteString("\r\n")
		}
		over.WriteString(line + lineRest)
	}
	over.WriteString(screenRest)
	_, err := io.WriteString(t.out, over.String())
	return err
}
