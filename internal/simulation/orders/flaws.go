package orders

// A Flaw is a mistake in how a host feeds its index.
type Flaw uint8

// The flaws.
const (
	NoFlaw             Flaw = iota
	PriorityUntold          // a change of the priority does not come to the index
	RemovalUntold           // a host does not tell its index what it took off the board
	AmendsLikeNews          // what amends an entry is taken as news of a new job
	PositionOfDelivery      // news have a later position than their own
	ReservationKept         // a reservation is not given back
	SnapshotOfItsEnd        // a snapshot is said to be as of its end, not as of its beginning
	NotRescored             // jobs keep their places when the order is another one
	ForgetsTooMuch          // removals are forgotten before late news of them can have come
	NoTick                  // nobody looks when the time of a job has come
	flaws
)

var flawNames = [flaws]string{
	"none", "a priority is not told", "a removal is not told", "what amends is taken as news", "a position of the delivery",
	"a reservation is kept", "a snapshot as of its end", "jobs are not scored again", "removals are forgotten too soon",
	"no tick",
}

// String returns what is wrong.
func (f Flaw) String() string { return flawNames[f] }

// Flaws returns all of them.
func Flaws() []Flaw {
	var all []Flaw
	for f := NoFlaw + 1; f < flaws; f++ {
		all = append(all, f)
	}
	return all
}
