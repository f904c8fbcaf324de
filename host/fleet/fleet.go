// Package fleet knows which servers of one catalog live, and which of them is to serve a
// board. The store decides every change of a job by its token, so two servers may serve
// a board at once: which one does is a question of cost, and nothing here has to be
// right. That is why there is no election, no lease and nothing stored but what each
// server says of itself.
//
// View and Placement are arithmetic, without a clock and a goroutine of their own, so that a
// test can play years of a fleet. Member is what says and reads the words in a store. Key
// seals what servers tell each other.
//
// Locks. Member.mu and Window.mu are held alone, while memory is read or written.
package fleet

import "time"

// State is what a server is about.
type State string

// The states. A server that is not Serving is given no board.
const (
	Joining  State = "joining"  // it is opening the boards that it will be given
	Serving  State = "serving"  // it takes calls
	Draining State = "draining" // it hands its boards over
	Left     State = "left"     // it has ended, as it was told to
)

// Word is what a server says of itself, once a second.
type Word struct {
	ID        string    `json:"id"`   // of the server, the same after a restart where it has a data folder
	Boot      string    `json:"boot"` // of this run of it: random
	Beat      uint64    `json:"beat"` // how often it has said so in this run
	Advertise string    `json:"advertise"`
	Public    string    `json:"public,omitempty"`
	Version   string    `json:"version"`
	Since     time.Time `json:"since"` // of this run
	State     State     `json:"state"`
	Limits    string    `json:"limits,omitempty"` // how it counts those of tenants: see host/ledger; empty: it is of a version that divides them
	Stores    []string  `json:"stores"`           // the identities of the stores that it reaches, sorted
	Digest    string    `json:"digest"`           // of the boards and policies that its configuration declares
	Boards    int       `json:"boards"`           // that it has open
}

// Timing of words.
const (
	SayEvery    = time.Second      // a server says that it lives
	GoneAfter   = 5 * time.Second  // of silence that counts
	MostSilence = 2 * time.Second  // that counts between two looks, however long ago the last one was
	FirstWait   = 10 * time.Second // before a server that was gone counts again, doubled each time
	MostWait    = 5 * time.Minute
	forgetAfter = 10 * time.Minute // of silence, what was known of a server that is gone
)
