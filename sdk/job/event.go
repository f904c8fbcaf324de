package job

// EventType says what happened to a job.
type EventType uint8

// The events that a board's watchers see. The last two are made by the host
// alone: Heartbeat at the beginning of a watch from now on and when a board has
// been still for a while, and Resync when a watcher asked for more of the past
// than the board remembers.
const (
	NoEvent EventType = iota
	Posted
	ClaimedEvent
	Extended
	Abandoned
	Expired
	ConsumedEvent
	TrashedEvent
	Restored
	PurgedEvent
	CanceledEvent
	OperationEvent
	ForeignChange // a change by another program, perhaps several merged
	Heartbeat
	Resync
)

var eventNames = [...]string{
	"NONE", "POSTED", "CLAIMED", "EXTENDED", "ABANDONED", "EXPIRED", "CONSUMED", "TRASHED",
	"RESTORED", "PURGED", "CANCELED", "OPERATION", "CHANGED", "HEARTBEAT", "RESYNC",
}

// String returns the public name, as in the API.
func (t EventType) String() string { return name(eventNames[:], int(t)) }
