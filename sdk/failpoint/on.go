//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Enabled says whether this program has its points.
const Enabled = true

// exitStatus is what a process ends with at the action exit.
const exitStatus = 3

// folder is where the points are armed; empty: nowhere.
var folder = os.Getenv(Variable) //nolint:forbidigo // no program of a release has this

// points are what this process knows of its points, by name.
var points struct {
	sync.Mutex

	known map[string]*state
}

// state is one point in this process.
type state struct {
	text string // the file, as last seen
	term term
	hits int // since then
}

// Hit marks a place where a process may end or wait. The name is a constant.
func Hit(name string) {
	if err := Fail(name); err != nil {
		panic(fmt.Sprintf("the point %s cannot fail: want kill, exit, panic, sleep or cross", name))
	}
}

// Fail marks a place where a process may end or wait, or an operation fail.
func Fail(name string) error {
	if folder == "" {
		return nil
	}
	path := filepath.Join(folder, strings.ReplaceAll(name, "/", "."))
	t, err := due(name, path)
	switch {
	case err != nil:
		panic(fmt.Sprintf("the point %s: %v", name, err))
	case t == nil || t.once && os.Rename(path, path+".fired") != nil: // another process was faster
		return nil //nolint:nilerr // the rename says who comes first
	}
	return t.act(name)
}

// due returns what is to happen now, or nil.
func due(name, path string) (*term, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	points.Lock()
	defer points.Unlock()
	s := points.known[name]
	if s == nil {
		if points.known == nil {
			points.known = map[string]*state{}
		}
		s = &state{}
		points.known[name] = s
		if err := os.WriteFile(path+".crossed", nil, 0o600); err != nil {
			return nil, err
		}
	}
	if string(text) != s.text {
		s.text, s.hits = string(text), 0
		if s.term, err = parse(s.text); err != nil {
			return nil, err
		}
	}
	s.hits++
	if !s.term.due(s.hits) {
		return nil, nil
	}
	t := s.term
	return &t, nil
}

// act does what a point was armed with.
func (t *term) act(name string) error {
	switch t.action {
	case kill:
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			os.Exit(exitStatus)
		}
		select {} // until the signal has come
	case exit:
		os.Exit(exitStatus)
	case panics:
		panic("at the point " + name)
	case sleeps:
		time.Sleep(t.pause) //nolint:forbidigo // that is what was asked for
	case fails:
		return fmt.Errorf("%s, as the point %s was told to", t.text, name)
	}
	return nil
}

// Environment is what a child process is given so that its points are those of this one.
func Environment() []string {
	if folder == "" {
		return nil
	}
	return []string{Variable + "=" + folder}
}
