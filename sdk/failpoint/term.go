package failpoint

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The actions of a point.
const (
	kill   = "kill"
	exit   = "exit"
	panics = "panic"
	sleeps = "sleep"
	fails  = "error"
	cross  = "cross"
)

// term is what a point was armed with. The zero value does nothing.
type term struct {
	action      string
	text        string        // of the error
	pause       time.Duration // of sleep
	hit         int           // the only one; 0: each
	probability float64       // 0: always
	random      *rand.Rand    // what draws
	once        bool
}

// parse reads what a file says. One that is empty says nothing.
func parse(text string) (term, error) {
	var t term
	words := strings.Fields(text)
	if len(words) == 0 {
		return t, nil
	}
	var seed uint64
	for i, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		if i == 0 {
			err = t.parseAction(name, value)
		} else {
			err = t.parseWhen(name, value, &seed)
		}
		if err != nil {
			return term{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	t.random = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // drawn again by its seed
	return t, nil
}

func (t *term) parseAction(name, value string) (err error) {
	t.action, t.text = name, "it fails"
	switch {
	case name == sleeps:
		t.pause, err = time.ParseDuration(value)
		return err
	case name == fails && value != "":
		t.text = value
		return nil
	case value != "":
		return fmt.Errorf("%s takes no value", name)
	}
	switch name {
	case kill, exit, panics, fails, cross:
		return nil
	}
	return fmt.Errorf("there is no action %q: want kill, exit, panic, sleep=DURATION, error or cross", name)
}

func (t *term) parseWhen(name, value string, seed *uint64) (err error) {
	switch name {
	case "hit":
		t.hit, err = strconv.Atoi(value)
		if err == nil && t.hit < 1 {
			err = fmt.Errorf("hit=%d: want 1 or more", t.hit)
		}
	case "probability":
		t.probability, err = strconv.ParseFloat(value, 64)
		if err == nil && !(t.probability > 0 && t.probability <= 1) {
			err = fmt.Errorf("probability=%s: want more than 0 and at most 1", value)
		}
	case "seed":
		*seed, err = strconv.ParseUint(value, 10, 64)
	case "once":
		t.once = true
	default:
		err = fmt.Errorf("there is no %q: want hit=N, probability=P, seed=N or once", name)
	}
	return err
}

// due reports whether something is to happen at this hit, the first one being 1.
func (t *term) due(hit int) bool {
	switch {
	case t.action == "" || t.hit > 0 && t.hit != hit:
		return false
	case t.probability > 0:
		return t.random.Float64() < t.probability
	}
	return true
}
