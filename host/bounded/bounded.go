// Package bounded does things at the same time, a few of them at once.
package bounded

import "sync"

// Group is things that are done at the same time. One goroutine calls its methods.
type Group struct {
	places  chan struct{} // one for each that is being done
	working sync.WaitGroup
}

// New returns a group that does at most so many things at once.
func New(most int) *Group { return &Group{places: make(chan struct{}, most)} }

// Go does something in a goroutine of its own, and waits until there is a place for it. What it
// is to do has to end by itself: a group knows of no context.
func (g *Group) Go(do func()) {
	g.places <- struct{}{}
	g.working.Go(func() {
		defer func() { <-g.places }()
		do()
	})
}

// Wait waits until everything is done. After that the group may be used again.
func (g *Group) Wait() { g.working.Wait() }
