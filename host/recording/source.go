package recording

import (
	"github.com/boardd/boardd/host/board"
)

// Standing is where a log learns which jobs are open: board.Board has it.
type Standing interface {
	Standing(most int) (list []board.Happening, more int64)
}

// source is one board that tells the log what happens. The last one that was made
// is listened to.
type source struct {
	log   *Log
	board Standing
}

// Source returns what a board is to tell its happenings to, and a function that
// takes the board as soon as there is one. Boards that were given one before are
// not listened to any more.
func (l *Log) Source() (board.Recorder, func(Standing)) {
	s := &source{log: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = s
	l.drop(l.queue)
	l.queue = nil
	return s, func(b Standing) {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.board = b
	}
}

// Restart implements board.Recorder.
func (s *source) Restart() {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == s {
		l.drop(l.queue)
		l.queue = nil
	}
}

// Tell implements board.Recorder.
func (s *source) Tell(list []board.Happening) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.source != s:
		return
	case len(l.queue)+len(list) > MaxQueued:
		l.drop(l.queue)
		l.drop(list)
		l.queue = nil
	default:
		l.queue = append(l.queue, list...)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
