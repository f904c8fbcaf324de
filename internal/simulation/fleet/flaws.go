package fleet

// A Flaw is a mistake in what the servers of a fleet do.
type Flaw uint8

// The flaws.
const (
	NoFlaw          Flaw = iota
	PlacedByModulo       // a board's server is the hash of its name modulo the number of servers
	BelievesSilence      // a store that is silent is taken for one that answers as before
	OpensAtOnce          // all boards that become a server's own are opened at once
	ClosesFirst          // a board is closed before its next server has it open
	ForgetsRest          // what the pace held back is not opened later
	flaws
)

var flawNames = [flaws]string{
	"none", "boards are placed by modulo", "a silent store is believed", "all boards are opened at once", "a board is closed too early",
	"what was held back is forgotten",
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
