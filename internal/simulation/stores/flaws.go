package stores

// A Flaw is a mistake that somebody who writes a store can make. An Optimist has one
// when it is told to, so that it can be seen that the simulation finds it.
type Flaw uint8

// The flaws.
const (
	NoFlaw             Flaw = iota
	TokenUnchecked          // an op by token ends whoever's claim there is
	EpochStands             // a claim raises no epoch
	SumNotLowered           // a release leaves its claim counted
	LapsedKeepsSum          // a claim that takes over a lapsed one leaves that counted
	FirstLimitOnly          // only the first limit is looked at
	ForgetsEarly            // repetitions are forgotten after half of the window
	KeyWithoutJob           // a repetition is recognised by its request alone, whatever the job
	HoldIgnored             // a job that is held back can be claimed
	BelievesRefusals        // a refusal is made of what the host believes
	CommitsBlindly          // the commit does not look whether the decision still holds
	LapsedCountsAsHeld      // a lease stands at the moment at which it ends
	LeaseOnWallClock        // leases move with the wall clock
	VersionStands           // an update raises no version
	NoTombstone             // an ending leaves no tombstone
	TrashDropsAttached      // the trash keeps no attached records
	UpdateUntold            // an update without a status is not told to watchers
	LossUnseen              // that the store was put back is not noticed
	ClaimsOutliveLoss       // claims stand when changes were lost
	AnswersBeforeDisk       // ops are answered before they are on the disk
	flaws
)

var flawNames = [flaws]string{
	"none", "a token is not checked", "an epoch is not raised", "a sum is not lowered at a release",
	"a lapsed claim stays counted", "only the first limit is checked", "a repetition is forgotten too early",
	"a request is recognised on another job", "a hold is ignored", "a refusal of what is only believed",
	"a commit without a look", "a lease stands at its end", "a lease on the wall clock", "a version is not raised",
	"no tombstone is left", "the trash drops attached records", "a change is not told", "a loss is not noticed",
	"claims outlive a loss", "an answer before the disk has it",
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
